"""The clients that are measured, each behind the same three functions. It measures nothing itself."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # what a client imports is part of what it costs
    from mcp import Client as Sdk, ClientSession

    from mcp_client import Client, Host

__all__ = ["HTTP", "MANY", "STDIO", "Peer", "command"]

_SERVER = Path(__file__).with_name("echo_server.py")
_INITIALIZE: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "floor", "version": "1"},
}
_HEADERS = (
    ("Accept", "application/json, text/event-stream"),
    ("Content-Type", "application/json"),
    ("Mcp-Session-Id", "0123456789abcdef"),
    ("MCP-Protocol-Version", "2025-11-25"),
)


def command(*options: int) -> list[str]:
    """Return how the echo server is started."""
    return [sys.executable, "-I", "-S", str(_SERVER), *map(str, options)]


@dataclass(frozen=True, slots=True)
class Peer:
    """One connected client: `call` a tool named `echo`; `tools` lists all, page by page."""

    call: Callable[[Mapping[str, object]], Awaitable[object]]
    tools: Callable[[], Awaitable[Sequence[object]]]


Stdio = Callable[[Sequence[str]], AbstractAsyncContextManager[Peer]]
Http = Callable[[int], AbstractAsyncContextManager[Peer]]


Page = tuple[Sequence[object], str | None]


async def _paged(page: Callable[[str | None], Awaitable[Page]]) -> Sequence[object]:
    """Return all tools of a client that leaves paging to its caller."""
    tools, cursor = await page(None)
    found = [*tools]
    while cursor:
        tools, cursor = await page(cursor)
        found += tools
    return found


# --------------------------------------------------------------------------------------- the floor


class _Pipes(asyncio.SubprocessProtocol):
    """The least that a client can do: a dict of futures, and json. No checks at all."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pieces: list[bytes] = []
        self._count = 0
        self._out: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        self._pipe = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        first, *lines = data.split(b"\n")
        self._pieces.append(first)
        for line in lines:
            message = json.loads(b"".join(self._pieces))
            self._pieces = [line]
            self._waiting.pop(message["id"]).set_result(message["result"])

    def request(self, method: str, params: object) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        self._count += 1
        future = self._waiting[self._count] = loop.create_future()
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        return future

    def _flush(self) -> None:
        self._pipe.write(b"".join(self._out))
        self._out.clear()


@asynccontextmanager
async def _floor(server: Sequence[str]) -> AsyncGenerator[Peer]:
    """Raw asyncio pipes and json."""
    loop = asyncio.get_running_loop()
    transport, pipes = await loop.subprocess_exec(_Pipes, *server)
    await pipes.request("initialize", _INITIALIZE)

    async def page(cursor: str | None) -> Page:
        result = await pipes.request("tools/list", {"cursor": cursor} if cursor else {})
        return result["tools"], result.get("nextCursor")

    try:
        yield Peer(
            lambda arguments: pipes.request("tools/call", {"name": "echo", "arguments": arguments}),
            lambda: _paged(page),
        )
    finally:
        transport.close()


class _Wire(asyncio.Protocol):
    """One HTTP connection: one write, one search for the body. No checks at all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._waiting: asyncio.Future[bytes] | None = None
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if found and self._waiting is not None:
            length = int(head[head.index(b"Content-Length: ") + 16 :])
            if len(body) >= length:
                self._received = body[length:]
                self._waiting.set_result(body[:length])

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting


@asynccontextmanager
async def _http_floor(port: int) -> AsyncGenerator[Peer]:
    """Raw asyncio sockets and json."""
    loop = asyncio.get_running_loop()
    idle: list[_Wire] = []
    opened: list[asyncio.Transport] = []
    fields = "".join(f"{name}: {value}\r\n" for name, value in _HEADERS)

    async def call(arguments: Mapping[str, object]) -> object:
        if idle:
            wire = idle.pop()
        else:
            transport, wire = await loop.create_connection(_Wire, "127.0.0.1", port)
            opened.append(transport)
        params = {"name": "echo", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        body = json.dumps(message, separators=(",", ":")).encode()
        head = f"POST /mcp HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {len(body)}\r\n\r\n"
        received = await wire.ask(head.encode() + body)
        idle.append(wire)
        return json.loads(received[received.index(b"{") :])

    async def tools() -> Sequence[object]:
        return ()

    yield Peer(call, tools)
    for transport in opened:
        transport.close()


# ------------------------------------------------------------------------------------------- ours


@asynccontextmanager
async def _client(server: Sequence[str], host: Host | None = None) -> AsyncGenerator[Peer]:
    """`mcp_client` alone, with leave to send anything."""
    from mcp_client import UNGUARDED, ServerSpec, connect

    spec = ServerSpec(name="echo", command=server[0], args=tuple(server[1:]))
    async with connect(spec, guard=UNGUARDED, host=host) as client:
        yield _ours(client)


@asynccontextmanager
async def _many_clients() -> AsyncGenerator[Stdio]:
    from mcp_client import open_host

    async with open_host() as host:
        yield lambda server: _client(server, host)


@asynccontextmanager
async def _http_client(port: int) -> AsyncGenerator[Peer]:
    from mcp_client import UNGUARDED, HttpSpec, connect

    spec = HttpSpec(name="echo", url=f"http://127.0.0.1:{port}/mcp")
    async with connect(spec, guard=UNGUARDED) as client:
        yield _ours(client)


def _ours(client: Client) -> Peer:
    async def tools() -> Sequence[object]:
        return (await client.list_tools()).tools

    return Peer(lambda arguments: client.call_tool("echo", arguments), tools)


def _road(*, recorded: bool) -> Stdio:
    @asynccontextmanager
    async def road(server: Sequence[str]) -> AsyncGenerator[Peer]:
        """The whole road of a subagent's call; with the audit log on disk, or with none."""
        from sessions import echo_view

        from orchestrator import Call

        async def tools() -> Sequence[object]:
            return view.tools

        with tempfile.TemporaryDirectory() as folder:
            audit = Path(folder, "audit.jsonl") if recorded else None
            async with echo_view(server, audit=audit) as view:
                yield Peer(lambda arguments: view.call(Call("echo", "echo", arguments)), tools)

    return road


# ----------------------------------------------------------------------------------- the official


@asynccontextmanager
async def _session(server: Sequence[str]) -> AsyncGenerator[Peer]:
    """`ClientSession` of the official SDK."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=server[0], args=list(server[1:]))
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield _theirs(session)


@asynccontextmanager
async def _sdk(server: Sequence[str]) -> AsyncGenerator[Peer]:
    """`Client` of the official SDK."""
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(command=server[0], args=list(server[1:]))
    async with Client(parameters) as client:
        yield _theirs(client)


@asynccontextmanager
async def _http_session(port: int) -> AsyncGenerator[Peer]:
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        streamable_http_client(f"http://127.0.0.1:{port}/mcp") as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        yield _theirs(session)


@asynccontextmanager
async def _http_sdk(port: int) -> AsyncGenerator[Peer]:
    from mcp import Client

    async with Client(f"http://127.0.0.1:{port}/mcp") as client:
        yield _theirs(client)


def _theirs(client: ClientSession | Sdk) -> Peer:
    from mcp import ClientSession
    from mcp_types import PaginatedRequestParams

    async def page(cursor: str | None) -> Page:
        if isinstance(client, ClientSession):
            result = await client.list_tools(params=PaginatedRequestParams(cursor=cursor))
        else:
            result = await client.list_tools(cursor=cursor)
        return result.tools, result.next_cursor

    return Peer(lambda arguments: client.call_tool("echo", dict(arguments)), lambda: _paged(page))


def _alone(connect: Stdio) -> Callable[[], AbstractAsyncContextManager[Stdio]]:
    """Return what connects to several servers, for a client whose connections share nothing."""

    @asynccontextmanager
    async def many() -> AsyncGenerator[Stdio]:
        yield connect

    return many


STDIO: dict[str, Stdio] = {
    "floor": _floor,
    "client": _client,
    "guard": _road(recorded=False),
    "remit": _road(recorded=True),
    "session": _session,
    "sdk": _sdk,
}
"""By name: how to connect to one server of this command."""

MANY: dict[str, Callable[[], AbstractAsyncContextManager[Stdio]]] = {
    "floor": _alone(_floor),
    "client": _many_clients,
    "session": _alone(_session),
    "sdk": _alone(_sdk),
}
"""By name: what connects to several."""

HTTP: dict[str, Http] = {
    "floor": _http_floor,
    "client": _http_client,
    "session": _http_session,
    "sdk": _http_sdk,
}
"""By name: how to connect to the server at this port."""
