"""The client's front: connect to one server, list its tools, call them; it decides nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, cast

import anyio

from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT, ClientObserver, SendGuard, Transport
from mcp_client.protocol.capabilities import ServerCapabilities
from mcp_client.protocol.connection import ServerInfo
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    LocalProtocolError,
    RemoteProtocolError,
)
from mcp_client.protocol.jsonrpc import as_object, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.progress import Progress
from mcp_client.protocol.results import ToolResult, read_tool_result
from mcp_client.protocol.tools import QuarantinedTool, Tool, read_tool
from mcp_client.session import ClientSession
from mcp_client.transports.stdio import StdioTransport, Supervisor, open_supervisor

__all__ = [
    "Client",
    "Host",
    "ServerSource",
    "ServerSpec",
    "ToolListing",
    "connect",
    "open_host",
]

_OUR_LIMITS: Final = ClientLimits()


@dataclass(frozen=True, slots=True)
class Host:
    """What the connections of one program may share: the loop, and the supervisor of servers."""

    reactor: Reactor
    supervisor: Supervisor


class ServerSource(Protocol):
    """A server that can be connected to: a `ServerSpec`, or a scripted one in a test."""

    @property
    def name(self) -> str:
        """The host's label of the server."""
        ...

    def transport(self, host: Host, *, limits: ClientLimits, observer: ClientObserver) -> Transport:
        """Return a transport that was not opened yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """A server that is started as a child process and spoken to over its pipes.

    Attributes:
        name: the host's label of it.
        command: the program, by path or by name in its `PATH`. No shell is involved.
        args: its arguments.
        env: variables declared for it, beside those that every server gets. Never shown.
        cwd: where it starts; empty means where we are.

    Raises LocalProtocolError if it cannot name a process.
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = ""

    def __post_init__(self) -> None:
        for what, fault in (
            ("a server's name", not self.name or not self.name.isprintable()),
            ("a command", not self.command or "\0" in self.command),
            ("an argument", any("\0" in each for each in self.args)),
            ("a directory", "\0" in self.cwd),
            ("a variable's name", any(not k or "=" in k or "\0" in k for k in self.env)),
            ("a variable's value", any("\0" in value for value in self.env.values())),
        ):
            if fault:
                raise LocalProtocolError(
                    f"{what} is empty or holds a character that it cannot have",
                    server=self.name,
                    stage="start",
                )

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> StdioTransport:
        """Return the transport that will start it."""
        return StdioTransport(
            (self.command, *self.args),
            server=self.name,
            reactor=host.reactor,
            supervisor=host.supervisor,
            observer=observer,
            limits=limits,
            environment=self.env,
            directory=self.cwd,
        )


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of one server, in its own order, and those that cannot be used."""

    tools: tuple[Tool, ...]
    quarantined: tuple[QuarantinedTool, ...]


@asynccontextmanager
async def open_host() -> AsyncGenerator[Host]:
    """Yield what several connections share. No server of theirs is alive after the block."""
    async with open_reactor() as reactor, open_supervisor(reactor) as supervisor:
        yield Host(reactor, supervisor)


@asynccontextmanager
async def connect(
    source: ServerSource,
    *,
    guard: SendGuard,
    observer: ClientObserver = SILENT,
    limits: ClientLimits = _OUR_LIMITS,
    cancel_guard: SendGuard | None = None,
    on_tools_changed: Callable[[], object] | None = None,
    host: Host | None = None,
) -> AsyncGenerator[Client]:
    """Start or reach a server, complete the handshake, and yield the client of this connection.

    The task that enters the block owns the connection: the server and everything that it started
    are ended when the block is left, however it is left.

    Args:
        source: the server.
        guard: leave for what the connection sends by itself, and for calls without a guard of
            their own. `UNGUARDED` for programs that use the client alone.
        observer: told of what happens on the wire.
        limits: the bounds of the connection.
        cancel_guard: leave to tell the server that a request was given up; `guard` if None.
        on_tools_changed: called in a step of its own after the server told that its tools have
            changed, once for all that it told before that step.
        host: shared with other connections; one of its own if None.

    Raises StartError, HandshakeError, UnsupportedVersionError, ServerGoneError, CallTimeoutError
    after `initialize_seconds_max`, or what `guard` raised.
    """
    if host is None:
        async with (
            open_host() as own,
            connect(
                source,
                guard=guard,
                observer=observer,
                limits=limits,
                cancel_guard=cancel_guard,
                on_tools_changed=on_tools_changed,
                host=own,
            ) as client,
        ):
            yield client
        return
    transport = source.transport(host, limits=limits, observer=observer)
    session = ClientSession(
        transport,
        host.reactor,
        guard=guard,
        observer=observer,
        limits=limits,
        server=source.name,
        cancel_guard=cancel_guard,
    )
    client = Client(session, on_tools_changed=on_tools_changed)
    try:
        await _open(session, limits.initialize_seconds_max)
        yield client
    finally:
        session.close()
        await transport.close()


async def _open(session: ClientSession, seconds: float) -> None:
    with anyio.move_on_after(seconds) as scope:
        await session.open()
    if scope.cancelled_caught:
        raise CallTimeoutError(
            "the server did not complete the handshake in time",
            server=session.server,
            stage="handshake",
            delivery=session.handshake_delivery,
        )


class Client:
    """One connection to one server, after its handshake.

    What the server says of itself is untrusted and bounded. Errors are those of
    `PendingRequest.wait` and of `ClientSession.start`.

    Args:
        session: the connection.
        on_tools_changed: see `connect`.
    """

    def __init__(
        self, session: ClientSession, *, on_tools_changed: Callable[[], object] | None = None
    ) -> None:
        self.session = session
        self._on_tools_changed = on_tools_changed
        self._changed = anyio.Event()
        self._gone = anyio.Event()
        session.on_lost = self._lost
        session.on_tools_changed = self._tools_changed

    @property
    def server(self) -> str:
        """The host's label of the server."""
        return self.session.server

    @property
    def protocol_version(self) -> str:
        """The version that was negotiated."""
        return self.session.connection.protocol_version

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the server declared."""
        return self.session.connection.capabilities

    @property
    def server_info(self) -> ServerInfo:
        """What the server calls itself: for display only."""
        return self.session.connection.server_info

    @property
    def instructions(self) -> str:
        """What the server says about its use; empty if it says nothing."""
        return self.session.connection.instructions

    async def ping(self, *, seconds: float | None = None) -> None:
        """Return once the server has answered a ping."""
        await self._ask("ping", {}, seconds=seconds)

    async def list_tools(self) -> ToolListing:
        """Return all tools of the server, page by page. Empty if it has declared none.

        A tool that is malformed, over a bound, or listed twice with different definitions is
        quarantined; the others are not affected. Raises RemoteProtocolError if the pages have no
        end, turn in a circle, or hold more tools than `tools_max`.
        """
        if not self.capabilities.tools:
            return ToolListing((), ())
        found = _Listed()
        limits = self.session.limits

        def take(page: list[object]) -> None:
            found.count += len(page)
            if found.count > limits.tools_max:
                raise self._broken(f"the server has more than {limits.tools_max} tools")
            for definition in page:
                found.add(read_tool(definition, limits))

        await self._list("tools/list", "tools", take)
        return ToolListing(tuple(found.tools.values()), tuple(found.quarantined))

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool and return its checked result; a tool's own failure is a result.

        Args:
            name: the raw name of the tool.
            arguments: JSON values. The server alone validates them against its schema.
            guard: leave to send this one frame; the connection's if None.
            seconds: see `ClientSession.start`.
            on_progress: see `ClientSession.start`.
        """
        session = self.session
        if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LocalProtocolError("arguments are an object", server=session.server, stage="send")
        params = encode(
            {"arguments": dict(arguments), "name": name}, depth_max=session.limits.nesting_depth_max
        )
        pending = session.start(
            "tools/call",
            params,
            guard=session.guard if guard is None else guard,
            seconds=seconds,
            on_progress=on_progress,
        )
        return read_tool_result(await pending.wait(), session.limits, server=session.server)

    def tool_changes(self) -> AsyncIterator[None]:
        """Return an iterator that goes on each time that the server told of changed tools.

        Changes told while its consumer is busy come as one. It ends with the connection.
        """
        return _ToolChanges(self)

    async def wait_tools_changed(self) -> None:
        """Wait until the server has told of changed tools since the last time, or is gone."""
        if self.session.lost is None:
            await self._changed.wait()
        self._changed = anyio.Event()

    async def wait_lost(self) -> Exception:
        """Wait until the connection is over, and return why."""
        await self._gone.wait()
        assert self.session.lost is not None
        return self.session.lost

    def _lost(self) -> None:
        self._gone.set()
        self._changed.set()

    def _tools_changed(self) -> None:
        self._changed.set()
        if self._on_tools_changed is not None:
            self._on_tools_changed()

    async def _ask(
        self, method: str, params: Mapping[str, object], *, seconds: float | None = None
    ) -> Mapping[str, object]:
        """Send one request under the connection's own guard, and return its result, an object."""
        session = self.session
        pending = session.start(method, encode(params), guard=session.guard, seconds=seconds)
        result = as_object(await pending.wait())
        if result is None:
            raise self._broken("a result is an object")
        return result

    async def _list(self, method: str, member: str, take: Callable[[list[object]], None]) -> None:
        """Take the pages of a listing. Cursors are opaque, and an empty one is a cursor."""
        limits = self.session.limits
        cursors: set[str] = set()
        params: dict[str, object] = {}
        for _ in range(limits.pages_max):
            result = await self._ask(method, params)
            page = result.get(member)
            if not isinstance(page, list):
                raise self._broken("a page of a listing is an array")
            take(cast("list[object]", page))
            cursor = result.get("nextCursor")
            if cursor is None:
                return
            if not isinstance(cursor, str) or len(cursor) > limits.cursor_chars_max:
                raise self._broken("a cursor is a text within bounds")
            if cursor in cursors:
                raise self._broken("the pages of a listing turn in a circle")
            cursors.add(cursor)
            params = {"cursor": cursor}
        raise self._broken(f"a listing has more than {limits.pages_max} pages")

    def _broken(self, detail: str) -> RemoteProtocolError:
        return RemoteProtocolError(
            detail, server=self.server, stage="receive", delivery=Delivery.ANSWERED
        )


class _ToolChanges:
    def __init__(self, client: Client) -> None:
        self._client = client

    def __aiter__(self) -> AsyncIterator[None]:
        return self

    async def __anext__(self) -> None:
        await self._client.wait_tools_changed()
        if self._client.session.lost is not None:
            raise StopAsyncIteration


class _Listed:
    """A listing on its way: each name once, and none of those that came in two versions."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.quarantined: list[QuarantinedTool] = []
        self.count = 0
        self._ambiguous: set[str] = set()

    def add(self, tool: Tool | QuarantinedTool) -> None:
        if isinstance(tool, QuarantinedTool):
            self.quarantined.append(tool)
            return
        known = self.tools.get(tool.name)
        if tool.name in self._ambiguous or (known is not None and known.digest == tool.digest):
            return
        if known is None:
            self.tools[tool.name] = tool
            return
        # neither definition may silently win
        del self.tools[tool.name]
        self._ambiguous.add(tool.name)
        self.quarantined.append(
            QuarantinedTool(tool.name, "it is listed twice, with different definitions")
        )
