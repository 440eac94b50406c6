"""What the tests of the HTTP transports share: a scripted server, a sink, tickets, guards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import anyio

from mcp_client.net.endpoint import Endpoint, RunningExchange
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.messages import ExchangeSink, HttpRequest
from mcp_client.net.link import HttpLink
from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT, ClientObserver, SendGuard, Ticket as AnyTicket
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing.http_server import (
    HttpCall,
    HttpHandler,
    HttpReply,
    HttpServer,
    serve_http,
)
from mcp_client.transports.http_sse import HttpSseTransport
from mcp_client.transports.streamable_http import StreamableHttpTransport

SESSION = "a-secret-session-id"
QUICK = HttpTransportLimits(retry_seconds=0.01, retry_seconds_min=0.01, linger_seconds_max=0.05)


class RevokedError(Exception):
    """What a guard of the tests raises."""


class Guard:
    """Says yes until it is told otherwise."""

    def __init__(self) -> None:
        self.revoked = False
        self.spent = 0

    def check(self) -> None:
        if self.revoked:
            raise RevokedError

    def sent(self) -> None:
        self.spent += 1


class Ticket:
    """Remembers how its frame ended, and lets one wait for it."""

    def __init__(
        self,
        request_id: int | None = None,
        method: str = "",
        *,
        name: str = "",
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.id = request_id
        self.method = method
        self.name = name
        self.headers = headers
        self.settled = False
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.end = ""
        self.errors: list[Exception] = []
        self.ended = anyio.Event()

    def refused(self, error: Exception) -> None:
        self._finish("refused", error)

    def written(self) -> None:
        self._finish("written")

    def lost(self) -> None:
        self._finish("lost")

    def failed(self, error: Exception) -> None:
        self._finish("failed", error)

    def _finish(self, how: str, error: Exception | None = None) -> None:
        self.end = how
        if error is not None:
            self.errors.append(error)
            self.settled = True
        self.ended.set()

    async def error(self) -> Exception:
        """Wait for the error that it ended with."""
        with anyio.fail_after(30):
            while not self.errors:
                self.ended = anyio.Event()
                await self.ended.wait()
        return self.errors[0]


class Sink:
    """Keeps what arrives with the stream in which it did; settles whose answer it is."""

    def __init__(self) -> None:
        self.frames: list[tuple[bytes, int | None]] = []
        self.lost: list[Exception] = []
        self.tickets: dict[int, Ticket] = {}
        self.on_frame: Callable[[bytes], object] = lambda frame: None
        self._arrived = anyio.Event()

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        self.frames.append((frame, within))
        self.on_frame(frame)
        message = as_object(decode(frame, ClientLimits())) or {}
        ticket = self.tickets.get(within or 0)
        if ticket is not None and message.get("id") == ticket.id and "method" not in message:
            ticket.settled = True
            ticket.delivery = Delivery.ANSWERED
        self._arrived.set()

    def connection_lost(self, error: Exception) -> None:
        self.lost.append(error)
        self._arrived.set()

    async def until(self, true: Callable[[], object]) -> None:
        with anyio.fail_after(30):
            while not true():
                self._arrived = anyio.Event()
                await self._arrived.wait()

    async def frame(self, number: int) -> tuple[bytes, int | None]:
        """Wait for the frame with this number, counted from 0."""
        await self.until(lambda: len(self.frames) > number)
        return self.frames[number]


class Running:
    """An exchange of which the test says what becomes."""

    over = False

    def abort(self) -> None:
        self.over = True


class CountingEngine:
    """Takes requests, and answers none by itself."""

    def __init__(self) -> None:
        self.requests: list[HttpRequest] = []

    def exchange(
        self, request: HttpRequest, guard: SendGuard, ticket: AnyTicket, sink: ExchangeSink
    ) -> RunningExchange:
        self.requests.append(request)
        return Running()

    def close(self) -> None:
        pass


HttpTransport = TypeVar("HttpTransport", StreamableHttpTransport, HttpSseTransport)


@dataclass
class WireTo(Generic[HttpTransport]):
    """A transport to a scripted server."""

    server: HttpServer
    transport: HttpTransport
    reactor: Reactor
    session_guard: Guard = field(default_factory=Guard)
    sink: Sink = field(default_factory=Sink)

    def send(
        self,
        request_id: int | None,
        method: str,
        *,
        guard: SendGuard | None = None,
        name: str = "",
        headers: Sequence[tuple[str, str]] = (),
        params: Mapping[str, object] | None = None,
    ) -> Ticket:
        """Send one message."""
        ticket = Ticket(request_id, method, name=name, headers=headers)
        message: dict[str, object] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if request_id is not None:
            message["id"] = request_id
            self.sink.tickets[request_id] = ticket
        self.transport.send(encode(message), guard or self.session_guard, ticket)
        return ticket

    async def initialize(self, version: str = "2025-11-25") -> None:
        """Do what a session does for its handshake, up to the server's own stream."""
        self.send(1, "initialize")
        await self.sink.frame(0)
        self.transport.negotiated(version)
        notice = self.send(None, "notifications/initialized")
        with anyio.fail_after(30):
            await notice.ended.wait()

    async def answer_to(self, request_id: int) -> Mapping[str, object]:
        """Wait for the answer to a request, in its own stream."""

        def found() -> Mapping[str, object] | None:
            for frame, within in self.sink.frames:
                message = as_object(decode(frame, ClientLimits())) or {}
                if within == request_id and message.get("id") == request_id:
                    return message
            return None

        await self.sink.until(found)
        message = found()
        assert message is not None
        return message


Wire = WireTo[StreamableHttpTransport]


def result(call: HttpCall, value: object = None) -> Mapping[str, object]:
    """The answer to a request."""
    return {"jsonrpc": "2.0", "id": call.message.get("id"), "result": value or {}}


def rpc_error(call: HttpCall, code: int, message: str, **more: object) -> Mapping[str, object]:
    """An error in answer to a request."""
    error = {"code": code, "message": message, **more}
    return {"jsonrpc": "2.0", "id": call.message.get("id"), "error": error}


Special = Callable[[HttpCall, HttpReply], Awaitable[object]]


class Script:
    """A well-behaved server of sessions, but for what a test lays down for a method.

    Keys are JSON-RPC methods, or HTTP methods for requests without a message.
    """

    def __init__(self, session_id: str = SESSION) -> None:
        self.session_id = session_id
        self.special: dict[str, Special] = {}

    def on(self, key: str) -> Callable[[Special], Special]:
        """Lay down what is done about a method."""

        def lay_down(special: Special) -> Special:
            self.special[key] = special
            return special

        return lay_down

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        special = self.special.get(call.rpc_method or call.method)
        if special is not None:
            await special(call, reply)
        elif call.method != "POST":
            await reply.send(405)
        elif call.rpc_method == "initialize":
            headers = {"Mcp-Session-Id": self.session_id} if self.session_id else {}
            await reply.json(result(call), headers=headers)
        elif "id" in call.message and call.rpc_method:
            await reply.json(result(call, {"echo": call.rpc_method}))
        else:
            await reply.send(202)


TOOLS: Any = [{"name": "add", "inputSchema": {"type": "object"}}]


class Mcp(Script):
    """A server with one tool, whose sessions can be made to be forgotten."""

    def __init__(self, version: str = "2025-11-25") -> None:
        super().__init__("")
        self.version = version
        self.sessions = 0
        self.forgotten: set[str] = set()
        self.dead_status = 404
        self.tools = TOOLS

    @property
    def present(self) -> str:
        """The id of the newest session."""
        return f"session-{self.sessions}"

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        session = call.headers.get("mcp-session-id", "")
        method, request_id = call.rpc_method, call.message.get("id")
        if method in self.special or call.method in self.special:
            await super().__call__(call, reply)
        elif method == "initialize":
            self.sessions += 1
            result: Any = {
                "protocolVersion": self.version,
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "s", "version": "1"},
            }
            answer = {"jsonrpc": "2.0", "id": request_id, "result": result}
            await reply.json(answer, headers={"Mcp-Session-Id": self.present})
        elif session in self.forgotten:
            await reply.send(self.dead_status)
        elif method == "tools/list":
            await reply.json({"jsonrpc": "2.0", "id": request_id, "result": {"tools": self.tools}})
        elif method == "tools/call":
            content: Any = [{"type": "text", "text": session}]
            await reply.json({"jsonrpc": "2.0", "id": request_id, "result": {"content": content}})
        else:
            await super().__call__(call, reply)


@asynccontextmanager
async def wired(
    script: Script,
    *,
    limits: ClientLimits | None = None,
    http_limits: HttpTransportLimits = QUICK,
    headers: Mapping[str, str] | None = None,
    observer: ClientObserver = SILENT,
    wrap: Callable[[Reactor], Reactor] = lambda reactor: reactor,
    opened: bool = True,
) -> AsyncGenerator[Wire]:
    """A Streamable HTTP transport, open unless told otherwise, to a server that follows a script."""
    async with serve_http(script) as server, open_reactor() as inner:
        reactor = wrap(inner)
        transport = StreamableHttpTransport(
            HttpLink(
                endpoint=Endpoint.parse(server.url, headers=headers or {}, credential="srv"),
                engine=HttpEngine(reactor, observer=observer),
                server="srv",
                reactor=reactor,
                limits=limits or ClientLimits(close_seconds_max=0.5),
                http_limits=http_limits,
            )
        )
        async with _closing(WireTo(server, transport, reactor)) as wire:
            if opened:
                await transport.open(wire.sink)
            yield wire


@asynccontextmanager
async def sse_wired(
    handler: HttpHandler,
    *,
    limits: ClientLimits | None = None,
    headers: Mapping[str, str] | None = None,
    path: str = "/sse",
    wrap: Callable[[Reactor], Reactor] = lambda reactor: reactor,
) -> AsyncGenerator[WireTo[HttpSseTransport]]:
    """An HTTP+SSE transport, open, to a scripted server."""
    async with serve_http(handler, path=path) as server, open_reactor() as inner:
        reactor = wrap(inner)
        transport = HttpSseTransport(
            HttpLink(
                endpoint=Endpoint.parse(server.url, headers=headers or {}, credential="srv"),
                engine=HttpEngine(reactor, observer=SILENT),
                server="srv",
                reactor=reactor,
                limits=limits or ClientLimits(),
            )
        )
        async with _closing(WireTo(server, transport, reactor)) as wire:
            await transport.open(wire.sink)
            yield wire


@asynccontextmanager
async def _closing(wire: WireTo[HttpTransport]) -> AsyncGenerator[WireTo[HttpTransport]]:
    try:
        yield wire
    finally:
        await wire.transport.close()
