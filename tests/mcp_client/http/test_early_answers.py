"""Requests that are answered before their server has read them: they count as leaving no longer."""

from __future__ import annotations

import re
from collections.abc import Callable

import anyio
import pytest

from mcp_client.net.endpoint import Endpoint
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.link import HttpLink
from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.http_sse import HttpSseTransport
from mcp_client.transports.streamable_http import StreamableHttpTransport
from tests.mcp_client.http.harness import QUICK, Guard, Sink, Ticket
from tests.mcp_client.net.http.servers import Peer, answer, serving

LARGE = 8 * 1024 * 1024 - 1024
RESULT = b'{"jsonrpc":"2.0","id":2,"result":{}}'
EVENT = b"data: " + RESULT + b"\n\n"
EVENTS_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
FRAME = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"big":"%b"}}' % (b"x" * LARGE)


def streamable(url: str, reactor: Reactor) -> StreamableHttpTransport:
    return StreamableHttpTransport(
        HttpLink(
            endpoint=Endpoint.parse(url, headers={}),
            engine=HttpEngine(reactor, observer=SILENT),
            server="srv",
            reactor=reactor,
            limits=ClientLimits(frame_bytes_max=2 * LARGE),
            http_limits=QUICK,
        )
    )


def then_wait(says: bytes) -> Callable[[Peer], None]:
    """A server that says something to a request's head and reads no more of it."""

    def handle(peer: Peer) -> None:
        if peer.read_head():
            peer.send(says)
            peer.over.wait(0.5)

    return handle


@pytest.mark.requirement("I3")
@pytest.mark.parametrize(
    "says",
    [
        answer(RESULT, "Content-Type: application/json"),
        EVENTS_HEAD + EVENT,
        EVENTS_HEAD + b"id: 1\nretry: 100000\ndata:\n\n",
        answer(b"", status="503 Service Unavailable"),
    ],
    ids=["json", "events", "events to be resumed", "failure"],
)
async def test_a_request_that_is_answered_before_it_was_read_counts_as_leaving_no_longer(
    says: bytes,
) -> None:
    sink = Sink()
    ends: list[str] = []
    ticket_over = anyio.Event()

    class Told(Ticket):
        def lost(self) -> None:
            ends.append("lost")
            ticket_over.set()

    told = Told(2, "tools/call")
    sink.tickets[2] = told
    with serving(then_wait(says), buffer=4096) as server:
        async with open_reactor() as reactor:
            transport = streamable(f"http://127.0.0.1:{server.port}/mcp", reactor)
            await transport.open(sink)
            transport.send(FRAME, Guard(), told)
            with anyio.fail_after(30):
                await ticket_over.wait()
            assert told.bytes_sent < len(FRAME)
            await transport.close()
    assert ends


@pytest.mark.requirement("I3")
async def test_a_post_that_is_accepted_before_it_was_read_counts_as_leaving_no_longer() -> None:
    sink = Sink()
    over = anyio.Event()

    class Told(Ticket):
        def lost(self) -> None:
            over.set()

    told = Told(2, "tools/call")

    def handle(peer: Peer) -> None:
        head = peer.read_head()
        if head.startswith(b"GET"):
            peer.send(EVENTS_HEAD + b"event: endpoint\ndata: /post\n\n")
            peer.drain()
        elif re.match(rb"POST", head):
            peer.send(answer(b"", status="202 Accepted"))
            peer.over.wait(0.5)

    with serving(handle, buffer=4096) as server:
        async with open_reactor() as reactor:
            transport = HttpSseTransport(
                HttpLink(
                    endpoint=Endpoint.parse(f"http://127.0.0.1:{server.port}/sse", headers={}),
                    engine=HttpEngine(reactor, observer=SILENT),
                    server="srv",
                    reactor=reactor,
                    limits=ClientLimits(frame_bytes_max=2 * LARGE),
                )
            )
            await transport.open(sink)
            transport.send(FRAME, Guard(), told)
            with anyio.fail_after(30):
                await over.wait()
            assert told.bytes_sent < len(FRAME)
            await transport.close()
