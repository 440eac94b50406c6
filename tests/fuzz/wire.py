"""Fuzz targets of what cuts streams into messages: lines, events, HTTP responses; no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import h11

from mcp_client.net.http.h1 import Event, ResponseEnd, ResponseHead, ResponseParser, Violation
from mcp_client.net.http.limits import HttpLimits
from mcp_client.protocol.errors import FrameTooLargeError
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.http.sse import SseBlocks, SseDecoder, SseEvent

__all__ = ["http_responses", "sse_events", "stdio_lines"]

BOUND = 64
"""So small that inputs of a few hundred bytes get past it."""
_LIMITS = HttpLimits(
    head_bytes_max=512,
    header_count_max=8,
    informational_max=2,
    chunk_line_bytes_max=24,
    chunk_extension_bytes_max=40,
)
_METHODS = ("POST", "GET", "HEAD", "CONNECT")
_BLANKS_BEFORE_EXTENSION = re.compile(r"illegal chunk header: .*[0-9A-Fa-f](?: |\\\\t)+;").match
TOO_LARGE = b"<too large>"


def cut(data: bytes) -> tuple[bytes, list[bytes]]:
    """Return what an input says, and that in the pieces which its first two bytes name."""
    sizes, whole = [1 + byte % 23 for byte in data[:2]] or [1], data[2:]
    pieces: list[bytes] = []
    at = 0
    while at < len(whole):
        size = sizes[len(pieces) % len(sizes)]
        pieces.append(whole[at : at + size])
        at += size
    return whole, pieces


# --------------------------------------------------------------------------------- stdio


def stdio_lines(data: bytes) -> None:
    """The lines of any stream are those of a slow reader, however it is cut."""
    whole, pieces = cut(data)
    expected = list(_slow_lines(whole))
    assert _lines([whole]) == expected
    assert _lines(pieces) == expected


def _lines(pieces: Sequence[bytes]) -> list[bytes]:
    framer, frames = LineFramer(BOUND), list[bytes]()
    try:
        for piece in pieces:
            frames.extend(framer.feed(piece))
            assert framer.buffered <= BOUND
    except FrameTooLargeError:
        frames.append(TOO_LARGE)
    return frames


def _slow_lines(whole: bytes) -> Iterator[bytes]:
    *lines, rest = whole.split(b"\n")
    for line in lines:
        if len(line) > BOUND:
            yield TOO_LARGE
            return
        line = line.removeprefix(b"\xef\xbb\xbf")  # noqa: PLW2901
        if line.strip(b" \t\r"):
            yield line.removesuffix(b"\r")
    if len(rest) > BOUND:
        yield TOO_LARGE


# ----------------------------------------------------------------------------------- SSE


def sse_events(data: bytes) -> None:
    """The events of any stream are those of a slow reader of the standard, however it is cut."""
    whole, pieces = cut(data)
    events = _events([whole], BOUND)
    assert _events(pieces, BOUND) == events
    large = _events(pieces, 1 << 20)
    assert large == [*_slow_events(whole)]
    if events[-1:] != [None]:
        assert events == large
    blocks = _blocks([whole], BOUND)
    assert _blocks(pieces, BOUND) == blocks
    if blocks[-1:] != [TOO_LARGE]:
        # no block is the beginning of a stream, where alone a byte order mark is none of the text
        assert _events([b"\n", *blocks], 1 << 20) == large


def _events(pieces: Sequence[bytes], bound: int) -> list[SseEvent | None]:
    decoder, events = SseDecoder(bound), list[SseEvent | None]()
    try:
        for piece in pieces:
            events.extend(decoder.feed(piece))
    except FrameTooLargeError:
        events.append(None)
    return events


def _blocks(pieces: Sequence[bytes], bound: int) -> list[bytes]:
    splitter, blocks = SseBlocks(bound), list[bytes]()
    try:
        for piece in pieces:
            blocks.extend(map(bytes, splitter.feed(piece)))
    except FrameTooLargeError:
        blocks.append(TOO_LARGE)
    return blocks


def _slow_events(whole: bytes) -> Iterator[SseEvent]:
    text = whole.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    *lines, _ = text.split(b"\n")
    data: list[bytes] = []
    kind, event_id, retry, some = b"", None, None, False
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if not line:
            if some:
                shown = kind.decode("utf-8", "replace") or "message"
                yield SseEvent(b"\n".join(data), shown, event_id, retry)
            data, kind, event_id, retry, some = [], b"", None, None, False
        elif name == b"data":
            data.append(value)
            some = True
        elif name == b"event":
            kind, some = value, True
        elif name == b"id" and b"\0" not in value:
            visible = all(0x20 <= byte < 0x7F for byte in value) and len(value) <= 1_024
            event_id, some = value.decode() if visible else "", True
        elif name == b"retry" and colon and 0 < len(value) <= 9 and value.isdigit():
            retry, some = int(value), True


# ---------------------------------------------------------------------------------- HTTP


def http_responses(data: bytes) -> None:
    """What is read as a whole response is what h11 reads, and the same however it is cut."""
    method = _METHODS[data[0] % 4] if data else "POST"
    close = bool(data) and data[0] >= 0x80
    whole, pieces = cut(data[1:])
    events, clean = _responses([whole], method, close=close)
    assert (events, clean) == _responses(pieces, method, close=close)
    kinds = [type(event) for event in events]
    assert kinds.count(ResponseHead) <= 1
    assert Violation not in kinds[:-1]
    assert ResponseEnd not in kinds[:-1]
    if ResponseEnd.END in events:
        _check_against_h11(whole, method, events, close=close)


def _responses(
    pieces: Sequence[bytes], method: str, *, close: bool
) -> tuple[list[Event], tuple[bool, bool]]:
    parser, events = ResponseParser(method, _LIMITS), list[Event]()
    for piece in pieces:
        for event in parser.feed(piece):
            last = events[-1] if events else None
            if isinstance(event, bytes) and isinstance(last, bytes):
                events[-1] = last + event
            else:
                events.append(event)
    if close and parser.end_of_stream():
        events.append(ResponseEnd.END)
    return events, (parser.clean, parser.leftover)


def _check_against_h11(whole: bytes, method: str, events: list[Event], *, close: bool) -> None:
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 16)
    headers = [("host", "a"), *([("content-length", "0")] if method == "POST" else [])]
    connection.send(h11.Request(method=method, target="/", headers=headers))
    connection.send(h11.EndOfMessage())
    status, theirs, body, ended = 0, list[tuple[str, str]](), b"", False
    for piece in (whole, b"") if close else (whole,):
        connection.receive_data(piece)
        while not ended:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError as error:
                if _BLANKS_BEFORE_EXTENSION(str(error)):
                    return  # RFC 9112, 7.1.1: they are to be taken; h11 does not
                raise
            if isinstance(event, h11.Response):
                status = event.status_code
                theirs = [(n.decode(), v.decode("latin-1")) for n, v in event.headers]
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                ended = True
            elif not isinstance(event, h11.InformationalResponse):
                # the tunnel's own bytes begin behind the head
                ended = event is h11.PAUSED and method == "CONNECT"
                break
    head = next(event for event in events if isinstance(event, ResponseHead))
    ours = b"".join(event for event in events if isinstance(event, bytes))
    # h11 folds the lengths that are told twice into one
    plain = [
        pair for pair in head.headers if pair[0] not in ("content-length", "transfer-encoding")
    ]
    beside = [pair for pair in theirs if pair[0] not in ("content-length", "transfer-encoding")]
    assert (head.status, plain, ours, True) == (status, beside, body, ended)
