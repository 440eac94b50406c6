"""Recorded streams, cut anywhere: the same frames, events and ends as in one piece, on every transport."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from mcp_client.net.endpoint import Endpoint
from mcp_client.net.http.h1 import ResponseEnd, ResponseHead, ResponseParser, Violation
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import ExchangeSink, HttpRequest
from mcp_client.net.link import HttpLink
from mcp_client.ports import UNGUARDED, SendGuard, Ticket as AnyTicket
from mcp_client.protocol.connection.legacy import ClientConnection
from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.events import Event, InitializeAnswered
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ManualReactor
from mcp_client.transports.http_sse import HttpSseTransport
from mcp_client.transports.streamable_http import StreamableHttpTransport
from tests.mcp_client.http.harness import Sink, Ticket

LIMITS = ClientLimits()
ENDPOINT = Endpoint.parse("http://host.example/sse", headers={}, credential="s")

Played = Sequence[object]
Play = Callable[[Sequence[bytes]], Played]


# --------------------------------------------------------------------------- what was recorded

STDIO = (
    b"Listening on stdio...\n\r\n"
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":'
    b'{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}\r\n'
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"h\xc3\xa4"}}\n'
    b'{"jsonrpc":"2.0","id":"p","method":"ping"}\n'
    b'{"result":{"tools":[]},"jsonrpc":"2.0","id":2}\n \t \n{"jsonrpc":"2.0","id":3,"error":'
    b'{"code":-32601,"message":"\\u00e4\\""}}\n[1]\n{"jsonrpc":"2.0","id":4,"res'
)
ANSWER = b'{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"gr\xc3\xbcn\\n"}]}}'
NOTICE = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
EVENTS = (
    b"\xef\xbb\xbf: hello\r\n\r\nid: e-1\nretry: 500\ndata:\n\n"
    b"event: message\rdata: " + NOTICE + b"\r\r"
    b"event: other\ndata: nothing\n\n"
    b"id: e-2\ndata: " + ANSWER[:14] + b"\ndata:" + ANSWER[14:] + b"\r\n\r\n: bye\n"
)


def chunked(body: bytes, sizes: Sequence[int]) -> bytes:
    out, at = b"", 0
    while at < len(body):
        piece = body[at : at + sizes[at % len(sizes)]]
        out += b"%x;x=y\r\n%b\r\n" % (len(piece), piece)
        at += len(piece)
    return out + b"0\r\nX-Trailer: t\r\n\r\n"


def response(kind: str, body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    head = "".join(f"{line}\r\n" for line in (f"Content-Type: {kind}", *lines))
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


JSON, STREAM = "application/json; charset=utf-8", "text/event-stream"
CHUNKED = "Transfer-Encoding: chunked"
REPLIES = {
    "json": response(JSON, ANSWER, f"Content-Length: {len(ANSWER)}"),
    "json-in-chunks": response(JSON, chunked(ANSWER, (1, 7, 30)), CHUNKED),
    "json-after-continue": b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n"
    + response(JSON, ANSWER, f"Content-Length: {len(ANSWER)}", "Connection: close"),
    "events": response(STREAM, EVENTS, f"Content-Length: {len(EVENTS)}"),
    "events-in-chunks": response(STREAM, chunked(EVENTS, (3, 50, 11)), CHUNKED),
    "error": response(
        JSON, b'{"jsonrpc":"2.0","id":5,"error":{"code":1,"message":"m"}}', CHUNKED
    ).replace(b'{"jsonrpc"', b'39\r\n{"jsonrpc"')
    + b"\r\n0\r\n\r\n",
    "turned-away": response(JSON, b"{}", "Content-Length: 2", status="503 No"),
    "coded": response(JSON, b"\x1f\x8b", "Content-Encoding: gzip", "Content-Length: 2"),
    "two-lengths": response(JSON, b"{}", "Content-Length: 2", "Content-Length: 3"),
    "too-long-a-chunk": response(JSON, b"2\r\n{}!\r\n0\r\n\r\n", CHUNKED),
}
OLD = response(
    STREAM,
    chunked(
        b"event: endpoint\r\ndata: /messages?s=1\r\n\r\n: ping\n\ndata: " + ANSWER + b"\n\n"
        b"event: message\ndata: "
        + NOTICE
        + b"\n\ndata: "
        + ANSWER[:20]
        + b"\ndata:"
        + ANSWER[20:]
        # httpx-sse reads lines as the standard does, however they end
        + b"\r\rdata: half",
        (9, 2, 64),
    ),
    CHUNKED,
)


# ------------------------------------------------------------------------------- how it is played


@dataclass
class Taken:
    over: bool = False

    def abort(self) -> None:
        self.over = True


class CannedEngine:
    """Takes every request and answers none; whoever plays a stream feeds the sink itself."""

    def __init__(self) -> None:
        self.taken: list[tuple[HttpRequest, ExchangeSink, Taken]] = []

    def exchange(
        self, request: HttpRequest, guard: SendGuard, ticket: AnyTicket, sink: ExchangeSink
    ) -> Taken:
        ticket.delivery = Delivery.MAYBE_SENT
        self.taken.append((request, sink, taken := Taken()))
        return taken

    def close(self) -> None:
        pass


def now(step: Coroutine[object, object, None]) -> None:
    """Run what never waits."""
    with pytest.raises(StopIteration):
        step.send(None)


def feed(pieces: Sequence[bytes], engine: CannedEngine, number: int) -> None:
    request, sink, taken = engine.taken[number]
    parser = ResponseParser(request.method, HttpLimits())
    for piece in pieces:
        for event in parser.feed(piece):
            try:
                match event:
                    case _ if taken.over:
                        return
                    case ResponseHead():
                        sink.response_started(event.status, event.headers)
                    case ResponseEnd():
                        sink.ended()
                    case Violation():
                        raise RemoteProtocolError(event.reason)
                    case _:
                        sink.body(event)
            except Exception as error:  # noqa: BLE001  # as the engine does
                taken.over = True
                sink.failed(error, Delivery.MAYBE_SENT)


def outcome(sink: Sink, ticket: Ticket, engine: CannedEngine) -> Played:
    return (
        sink.frames,
        [str(error) for error in sink.lost],
        (ticket.end, ticket.settled, [str(error) for error in ticket.errors]),
        [(request.method, request.target.path) for request, _, _ in engine.taken],
    )


def over_stdio(pieces: Sequence[bytes]) -> Played:
    framer, connection = LineFramer(LIMITS.frame_bytes_max), ClientConnection(LIMITS)
    connection.frame_initialize()
    events: list[Event] = []
    for piece in pieces:
        for frame in framer.feed(piece):
            events += connection.receive(frame)
            if isinstance(events[-1], InitializeAnswered):
                connection.frame_initialized()
    return [*events, framer.buffered]


def over_streamable_http(pieces: Sequence[bytes]) -> Played:
    engine, sink, ticket = CannedEngine(), Sink(), Ticket(5, "tools/call")
    transport = StreamableHttpTransport(
        HttpLink(
            endpoint=ENDPOINT, engine=engine, server="s", reactor=ManualReactor(), limits=LIMITS
        )
    )
    sink.tickets[5] = ticket
    now(transport.open(sink))
    transport.send(b"{}", UNGUARDED, ticket)
    feed(pieces, engine, 0)
    return outcome(sink, ticket, engine)


def over_http_sse(pieces: Sequence[bytes]) -> Played:
    engine, sink, ticket = CannedEngine(), Sink(), Ticket(5, "tools/call")
    transport = HttpSseTransport(
        HttpLink(
            endpoint=ENDPOINT, engine=engine, server="s", reactor=ManualReactor(), limits=LIMITS
        )
    )
    now(transport.open(sink))
    transport.send(b"{}", UNGUARDED, ticket)
    feed(pieces, engine, 0)
    return outcome(sink, ticket, engine)


RECORDED: dict[str, tuple[bytes, Play]] = {
    "stdio": (STDIO, over_stdio),
    "http+sse": (OLD, over_http_sse),
    **{name: (reply, over_streamable_http) for name, reply in REPLIES.items()},
}


# ------------------------------------------------------------------------------------- the claims


def test_the_recorded_streams_say_what_they_should() -> None:
    frames = [(NOTICE, 5), (ANSWER[:14] + b"\n" + ANSWER[14:], 5)]
    kinds = [type(event).__name__ for event in over_stdio([STDIO])[:-1]]
    assert over_streamable_http([REPLIES["json"]])[0] == [(ANSWER, 5)]
    assert over_streamable_http([REPLIES["json-in-chunks"]])[0] == [(ANSWER, 5)]
    assert over_streamable_http([REPLIES["events"]])[0] == frames
    assert over_streamable_http([REPLIES["events-in-chunks"]])[0] == frames
    assert over_http_sse([OLD])[0] == [
        (ANSWER, None),
        (NOTICE, None),
        (ANSWER[:20] + b"\n" + ANSWER[20:], None),
    ]
    assert over_http_sse([OLD])[3] == [("GET", "/sse"), ("POST", "/messages?s=1")]
    assert kinds == [
        "PeerViolation",
        "InitializeAnswered",
        "NotificationReceived",
        "RequestReceived",
        "ResponseReceived",
        "ErrorReceived",
        "PeerViolation",
    ]


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.requirement("S-31")
def test_a_stream_cut_in_two_anywhere_plays_the_same(name: str) -> None:
    stream, play = RECORDED[name]
    expected = play([stream])
    for at in range(1, len(stream)):
        assert play([stream[:at], stream[at:]]) == expected, f"cut at {at}"


@pytest.mark.parametrize("name", RECORDED)
def test_a_stream_that_comes_byte_by_byte_plays_the_same(name: str) -> None:
    stream, play = RECORDED[name]
    assert play([stream[at : at + 1] for at in range(len(stream))]) == play([stream])


@pytest.mark.parametrize("name", RECORDED)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_stream_cut_in_many_pieces_plays_the_same(name: str, data: st.DataObject) -> None:
    stream, play = RECORDED[name]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(stream) - 1), max_size=40)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert play(pieces) == play([stream])
