"""Responses out of bytes: against h11, at every cut, and one past every bound."""

from __future__ import annotations

from collections.abc import Sequence

import h11
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mcp_client.net.http.h1 import Event, ResponseEnd, ResponseHead, ResponseParser, Violation
from mcp_client.net.http.limits import HttpLimits

LIMITS = HttpLimits()


def parse(
    pieces: Sequence[bytes],
    *,
    method: str = "POST",
    limits: HttpLimits = LIMITS,
    close: bool = False,
) -> tuple[list[Event], bool]:
    """Every event, with the body in one piece; and whether the connection can be used again."""
    parser = ResponseParser(method, limits)
    events: list[Event] = []
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, bytes) and events and isinstance(events[-1], bytes):
                events[-1] += event
            else:
                events.append(event)
    if close and parser.end_of_stream():
        events.append(ResponseEnd.END)
    return events, parser.clean


def whole(data: bytes, **options: object) -> tuple[list[Event], bool]:
    return parse([data], **options)  # pyright: ignore[reportArgumentType]


def body_of(events: Sequence[Event]) -> bytes:
    return b"".join(event for event in events if isinstance(event, bytes))


def reason(data: bytes, limits: HttpLimits = LIMITS) -> str:
    """Why it is refused; empty if it is not."""
    events, _ = parse([data], limits=limits)
    last = events[-1] if events else None
    return last.reason if isinstance(last, Violation) else ""


# ------------------------------------------------------------------------------- beside h11


def h11_reads(
    pieces: Sequence[bytes], method: str, *, close: bool
) -> tuple[int, list[tuple[str, str]], bytes, bool] | None:
    """What h11 makes of it: status, headers, body, whether it ended; None if it refuses."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
    length = [("content-length", "0")] if method == "POST" else []
    connection.send(h11.Request(method=method, target="/", headers=[("host", "a"), *length]))
    connection.send(h11.EndOfMessage())
    status, headers, body, ended = 0, list[tuple[str, str]](), b"", False
    try:
        for piece in [*pieces, *([b""] if close else [])]:
            connection.receive_data(piece)
            while True:
                event = connection.next_event()
                match event:
                    case h11.Response():
                        status = event.status_code
                        headers = [(n.decode(), v.decode("latin-1")) for n, v in event.headers]
                    case h11.Data():
                        body += bytes(event.data)
                    case h11.EndOfMessage():
                        ended = True
                    case h11.InformationalResponse():
                        pass
                    case _:
                        break
    except h11.RemoteProtocolError:
        return None
    return status, headers, body, ended


TOKENS = st.text("abcXYZ-_!#09", min_size=1, max_size=8)
VALUES = st.from_regex(r"\A(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]{0,10}[!-~\x80-\xff])?)?\Z")
PLAIN_HEADERS = st.lists(
    st.tuples(
        TOKENS.filter(lambda name: name.lower() not in {"connection", "content-length"}), VALUES
    ),
    max_size=4,
)


@st.composite
def responses(draw: st.DrawFn) -> tuple[bytes, str, bool]:
    """A response as servers may send it, the method it answers, and whether the end closes it."""
    method = draw(st.sampled_from(["POST", "GET", "HEAD"]))
    status = draw(st.sampled_from([200, 201, 202, 204, 304, 400, 401, 404, 500, 503]))
    version = draw(st.sampled_from(["1.1", "1.1", "1.0"]))
    text = draw(st.sampled_from([" OK", " ", "", " Nicht gut"]))
    headers = draw(PLAIN_HEADERS)
    body = draw(st.binary(max_size=60))
    framing = draw(st.sampled_from(["length", "close"] + ["chunked"] * (version == "1.1")))
    if draw(st.booleans()):
        headers.append(("Connection", draw(st.sampled_from(["close", "keep-alive", "x, close"]))))
    coded = body
    if framing == "length":
        headers.append(("Content-Length", str(len(body))))
    elif framing == "chunked":
        headers.append(("transfer-Encoding", "chunked"))
        coded = draw(chunks(body))
    if method == "HEAD" or status in (204, 304):
        coded = b""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    early = draw(st.sampled_from([b"", b"", b"HTTP/1.1 100 Continue\r\n\r\n"]))
    head = f"HTTP/{version} {status}{text}\r\n{lines}\r\n".encode("latin-1")
    return early + head + coded, method, framing == "close"


@st.composite
def chunks(draw: st.DrawFn, body: bytes) -> bytes:
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(body) - 1)), max_size=4)))
    out = b""
    for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        if body[start:end]:
            extension = draw(st.sampled_from([b"", b";a=b", b';q="x"']))
            out += b"%x%s\r\n%s\r\n" % (end - start, extension, body[start:end])
    return out + b"0\r\n" + draw(st.sampled_from([b"", b"x-trailer: 1\r\n"])) + b"\r\n"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(responses(), st.data())
def test_what_servers_may_send_reads_as_h11_reads_it(
    response: tuple[bytes, str, bool], data: st.DataObject
) -> None:
    raw, method, close = response
    cuts = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=5)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True) if a < b]
    events, _ = parse(pieces, method=method, close=close)
    head = next(event for event in events if isinstance(event, ResponseHead))
    ended = ResponseEnd.END in events
    assert (head.status, list(head.headers), body_of(events), ended) == h11_reads(
        pieces, method, close=close
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(responses(), st.data())
def test_what_h11_refuses_is_refused(
    response: tuple[bytes, str, bool], data: st.DataObject
) -> None:
    raw, method, close = response
    broken = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(broken) - 1))
        broken[at] = data.draw(st.sampled_from(list(b"\0\r\n :;,0aZ\x7f\xff")))
    events, _ = parse([bytes(broken)], method=method, close=close)
    theirs = h11_reads([bytes(broken)], method, close=close)
    if theirs is None:
        # refused, or not complete: never a whole response where h11 sees none
        assert ResponseEnd.END not in events or isinstance(events[-1], Violation)
    elif not isinstance(events[-1] if events else None, Violation) and ResponseEnd.END in events:
        assert body_of(events) == theirs[2]


# ------------------------------------------------------------------------------- cuts

STREAMS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\n\r\nhello",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5;e=1\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokleft over",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nbad trailer\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/2 200 OK\r\n\r\n",
    b"* OK IMAP4 ready\r\n\r\n",
]


@pytest.mark.parametrize("stream", STREAMS, ids=range(len(STREAMS)))
@pytest.mark.parametrize("close", [False, True])
def test_the_same_bytes_in_any_two_pieces_give_the_same_events(stream: bytes, close: bool) -> None:
    expected = whole(stream, close=close)
    for cut in range(1, len(stream)):
        assert parse([stream[:cut], stream[cut:]], close=close) == expected, f"cut at {cut}"


@pytest.mark.parametrize("stream", STREAMS, ids=range(len(STREAMS)))
def test_the_same_bytes_one_by_one_give_the_same_events(stream: bytes) -> None:
    assert parse([stream[i : i + 1] for i in range(len(stream))]) == whole(stream)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=80), st.data())
def test_no_bytes_make_it_fail_or_depend_on_the_cut(tail: bytes, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([b"", *[s[: len(s) // 2] for s in STREAMS], *STREAMS[:4]]))
    raw = start + tail
    cut = data.draw(st.integers(0, len(raw)))
    assert parse([raw[:cut], raw[cut:]]) == whole(raw)


# ------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "header is malformed"),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "header is malformed"),
        (b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "header is malformed"),
        (b"HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n", "header is malformed"),
        (b"HTTP/1.1 200 OK\r\n: b\r\n\r\n", "header is malformed"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "status line is malformed"),
        (b"HTTP/1.1 099 OK\r\n\r\n", "status line is malformed"),
        (b"HTTP/1.1 200 OK\nA: b\r\n\r\n", "status line is malformed"),
        (b"HTTP/1.2 200 OK\r\n\r\n", "status line is malformed"),
        (b"HTTP/1.1 101 Up\r\n\r\n", "protocol that nobody asked for"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            "a length at once",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "other than chunked"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", "other than chunked"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "other than chunked"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n", "length is malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3_0\r\n\r\n", "length is malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n", "length is malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "length is malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\n", "differ"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "length is malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx", "content coding"),
    ],
)
def test_what_is_not_plain_is_refused_with_its_reason(data: bytes, why: str) -> None:
    assert why in reason(data)


@pytest.mark.parametrize("size", [b"0x5", b"+5", b"-5", b" 5", b"5 ", b"", b"5_0", b"g", b"\xb2"])
def test_a_chunk_size_that_is_not_plain_hexadecimal_is_refused(size: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert reason(head + size + b"\r\nhello\r\n0\r\n\r\n") == "a chunk's size is malformed"


def test_the_same_length_twice_is_one_length() -> None:
    events, clean = whole(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok")
    assert (body_of(events), events[-1], clean) == (b"ok", ResponseEnd.END, True)


def test_one_length_in_two_spellings_is_refused() -> None:
    assert "differ" in reason(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 02\r\n\r\nok")


@pytest.mark.parametrize("field", ["Transfer-Encoding: chunked", "content-length: 5"])
def test_a_trailer_that_frames_the_message_is_refused(field: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert "frames" in reason(head + f"0\r\n{field}\r\n\r\n".encode())


def test_identity_is_no_coding() -> None:
    data = b"HTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\nok"
    assert body_of(whole(data)[0]) == b"ok"


def test_nothing_comes_after_a_violation() -> None:
    parser = ResponseParser("GET", LIMITS)
    assert isinstance(parser.feed(b"nonsense")[-1], Violation)
    assert parser.feed(STREAMS[0]) == []
    assert not parser.end_of_stream()


def test_a_response_to_head_or_to_connect_has_no_body() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
    for method in ("HEAD", "CONNECT"):
        events, clean = whole(head, method=method)
        assert (events[1:], clean) == ([ResponseEnd.END], True)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (b"Keep-Alive: timeout=5", 5),
        (b"Keep-Alive: max=100, timeout=72", 72),
        (b"Keep-Alive: nothing", None),
        (b"X: y", None),
    ],
)
def test_how_long_a_server_keeps_a_connection_is_read(header: bytes, seconds: int | None) -> None:
    parser = ResponseParser("GET", LIMITS)
    parser.feed(b"HTTP/1.1 200 OK\r\n" + header + b"\r\nContent-Length: 0\r\n\r\n")
    assert parser.idle_seconds == seconds


# ------------------------------------------------------------------------------- bounds


def padded(size: int) -> bytes:
    """A head of exactly so many bytes."""
    start = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nPadding: "
    return start + b"x" * (size - len(start) - 4) + b"\r\n\r\n"


def test_a_head_one_byte_too_large_is_refused() -> None:
    limits = HttpLimits(head_bytes_max=100)
    assert reason(padded(100), limits) == ""
    assert "over the bound of 100" in reason(padded(101), limits)


def test_a_head_that_never_ends_is_refused_at_its_bound() -> None:
    parser = ResponseParser("GET", HttpLimits(head_bytes_max=100))
    assert parser.feed(padded(1000)[:100]) == []
    assert isinstance(parser.feed(b"x")[-1], Violation)


def test_one_header_too_many_is_refused() -> None:
    limits = HttpLimits(header_count_max=3)
    head = b"HTTP/1.1 204 OK\r\n%s\r\n"
    assert reason(head % (b"A: b\r\n" * 3), limits) == ""
    assert reason(head % (b"A: b\r\n" * 4), limits) == "more than 3 headers"


def test_one_informational_response_too_many_is_refused() -> None:
    limits = HttpLimits(informational_max=2)
    early = b"HTTP/1.1 103 Early\r\n\r\n"
    assert reason(early * 2 + STREAMS[0], limits) == ""
    assert reason(early * 3 + STREAMS[0], limits) == "more than 2 responses of 1xx"


def chunked(*lines: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(lines)


def test_a_chunk_line_one_byte_too_long_is_refused() -> None:
    limits = HttpLimits(chunk_line_bytes_max=20)
    assert reason(chunked(b"1;" + b"x" * 18 + b"\r\na\r\n"), limits) == ""
    assert "over the bound of 20" in reason(chunked(b"1;" + b"x" * 19 + b"\r\na\r\n"), limits)


def test_too_many_chunk_extensions_are_refused() -> None:
    limits = HttpLimits(chunk_extension_bytes_max=10)
    chunk = b"1;xxxx\r\na\r\n"
    assert reason(chunked(chunk * 2), limits) == ""
    assert reason(chunked(chunk * 3), limits) == "too many chunk extensions"


def test_trailers_have_the_bounds_of_a_head() -> None:
    few = HttpLimits(header_count_max=2)
    assert reason(chunked(b"0\r\n", b"A: b\r\n" * 2, b"\r\n"), few) == ""
    assert reason(chunked(b"0\r\n", b"A: b\r\n" * 3, b"\r\n"), few) == "more than 2 trailers"
    small = HttpLimits(head_bytes_max=60)
    line = b"A: %s\r\n" % (b"x" * 27)
    assert reason(chunked(b"0\r\n", line * 2, b"\r\n"), small) == ""
    assert "trailers" in reason(chunked(b"0\r\n", line * 3, b"\r\n"), small)
