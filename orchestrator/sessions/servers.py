"""One server of a session: its owner task from start to end, its cells, its definitions.

What it offers is translated here into the orchestrator's own values; nothing above knows a client.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Final, Unpack

import anyio
import anyio.to_thread

from mcp_client.auth.errors import NeedsAuthorizationError
from mcp_client.client import Client, Host, HttpSpec, ServerSource, ServerSpec, connect
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.protocol.jsonrpc import decode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio.environment import withheld_names
from orchestrator.authority.guards import CancelGuard, SessionGuard
from orchestrator.authority.ledger import Cell, CellKind, Flip, Ledger
from orchestrator.broker import Broker, Link, WireObserver
from orchestrator.catalog.data import ServerData
from orchestrator.catalog.listing import CatalogTool, ServerListing, list_server
from orchestrator.core.capability import CapabilityRef
from orchestrator.core.errors import (
    DenyReason,
    RemitError,
)
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import ServerName
from orchestrator.core.ports import Peer
from orchestrator.sessions.confining import confined
from orchestrator.sessions.endings import aborted, explain, needs_login
from orchestrator.sessions.entries import ServerEntry, ServerTransport, refuse_changed
from orchestrator.sessions.inquiries import Inquiries
from orchestrator.sessions.logins import ServerLogin, Wiring
from orchestrator.sessions.offered_data import list_data
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.remote import http_spec, peer_of
from orchestrator.telemetry.null import NO_TELEMETRY

__all__ = [
    "CHANGED_NAMES_MAX",
    "ServerConnection",
    "ServerState",
    "server_source",
    "within_a_record",
]

CHANGED_NAMES_MAX: Final = 100
"""Names of changed tools in one record; the others are counted."""
CHANGED_CHARS_MAX: Final = 2_000
"""Characters of such names in one record, of tools and of data each: escaped, one is up to 12 bytes."""
RELISTS_BURST: Final = 8
"""How often a server that keeps saying that its tools have changed is listed again …"""
RELISTS_SECONDS: Final = 8.0
"""… in so many seconds."""


class ServerState(Enum):
    """Where a server is; the words of `mcp list`."""

    CONNECTING = "connecting"
    CONNECTED = "connected"
    FAILED = "failed"
    LOST = "lost"
    NEEDS_AUTH = "needs_auth"
    """It wants a login that nobody was here for; said at once, never waited for."""
    REMOVED = "removed"
    DISABLED = "disabled"
    """Withdrawn by hand; it can be enabled again, as another incarnation."""


_VERBS: Final = {ServerState.LOST: "was lost", ServerState.FAILED: "could not be connected"}
_WITHDRAWN: Final = frozenset({ServerState.REMOVED, ServerState.DISABLED})


@dataclass(kw_only=True)
class ServerConnection:
    """One incarnation of one server. `run` is its owner task; everything else is synchronous.

    Attributes:
        entry: its configuration: approved, expanded, within bounds.
        reach: returns how it is reached: as its entry says, unless a test has another way.
        host: what all connections of the session share.
        inquiries: answers what the server asks.
        seconds: what one call may take.
        cell: in force as long as this incarnation may be spoken to.
        state: where it is.
        error: why it failed or was lost; None otherwise.
        listing: what it offered when it was last asked.
        definitions: the cell of each definition that was seen, by name and digest.
        protocol_version: of MCP, as it was agreed on last; empty before.
        data_cells: the cell of each resource, template and prompt, by its identity.
        login: what it is reached with; None where it has no login.
        owner: the cell of the one agent that it serves; None where the session's agents share it.
        ready: set once the first listing is there, or the attempt has failed.
    """

    entry: ServerEntry
    reach: Callable[[ServerEntry], ServerSource]
    host: Host
    inquiries: Inquiries
    seconds: float
    session_cell: Cell
    cell: Cell
    ledger: Ledger
    broker: Broker
    ports: SessionPorts
    on_change: Callable[[ServerConnection], None]
    login: ServerLogin | None = None
    owner: Cell | None = None
    state: ServerState = ServerState.CONNECTING
    error: RemitError | None = None
    listing: ServerListing | None = None
    definitions: dict[str, tuple[str, Cell]] = field(default_factory=dict[str, tuple[str, Cell]])
    protocol_version: str = ""
    data_cells: dict[CapabilityRef, Cell] = field(default_factory=dict[CapabilityRef, Cell])
    ready: anyio.Event = field(default_factory=anyio.Event)
    _client: Client | None = None
    _started: ServerEntry | None = None
    _listed_for: int = 0
    _catching_up: anyio.Lock = field(default_factory=anyio.Lock)
    _refreshing: anyio.Lock = field(default_factory=anyio.Lock)
    _scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    _closed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def name(self) -> ServerName:
        """The host's label."""
        return self.entry.name

    @property
    def peer(self) -> Peer:
        """What a trace may know of it."""
        return peer_of(self.entry)

    @property
    def unconfined(self) -> bool:
        """Whether it runs with all the person's rights although its entry has a sandbox."""
        return self._started is not None and self._started.unconfined

    @property
    def over(self) -> bool:
        """True once the owner task has ended: nothing of this incarnation is left."""
        return self._closed.is_set()

    async def run(self, after: ServerConnection | None = None) -> None:
        """Own the connection from its start to its end. Never raises for what a server does.

        `after` had the label before: two processes of one entry would meet in its files.
        """
        observer = WireObserver(
            peer=self.peer, audit=self.ports.audit, telemetry=self.ports.telemetry
        )
        guard = SessionGuard(session=self.session_cell, server=self.cell)
        cancel = CancelGuard(session=self.session_cell, server=self.cell)
        try:
            with self._scope:
                if after is not None:
                    await after.wait_over()
                await self._connect(observer, guard, cancel)
            # Neither removed nor gone by itself: then a frame could not be finished.
            self._end(aborted(self.name))
        except Exception as error:  # noqa: BLE001  # whatever it is, the other servers go on
            self._end(error)
        finally:
            self._revoke(DenyReason.SERVER_DISCONNECTED)
            self.ready.set()
            self._closed.set()

    async def _connect(
        self, observer: WireObserver, guard: SessionGuard, cancel: CancelGuard
    ) -> None:
        if self.entry.command_line is not None:
            # As late as can be: somebody may have changed them while a person looked at them.
            await anyio.to_thread.run_sync(refuse_changed, self.entry)
        self._started = self.entry
        if self.entry.sandbox is not None:
            self._started = await anyio.to_thread.run_sync(confined, self.entry)
        with ExitStack() as opening:
            opening.enter_context(self.ports.telemetry.connecting(observer.peer))
            async with self._reached(observer, guard, cancel) as client:
                observer.agreed(client.protocol_version)
                self.protocol_version = client.protocol_version
                if self.ports.telemetry is not NO_TELEMETRY:
                    client.session.traceparent = self.ports.telemetry.traceparent
                tools = await self._list_tools(client)
                self.take_listing(replace(tools, data=await list_data(self.name, client)))
                opening.close()
                await self._attached(client, observer, cancel)

    async def _attached(self, client: Client, observer: WireObserver, cancel: CancelGuard) -> None:
        """Let calls through until the server is gone."""
        link = Link(
            server=self.name,
            session=client.session,
            cell=self.cell,
            observer=observer,
            cancel_guard=cancel,
            seconds=self.seconds,
            abort=self.abort,
            kill=self.kill,
            is_fresh=partial(self._is_fresh, client),
            catch_up=partial(self._catch_up, client),
            owner=self.owner,
        )
        self.state = ServerState.CONNECTED
        box = {"unconfined": True} if self.unconfined else {}
        tools = 0 if self.listing is None else len(self.listing.tools)
        self._record("server_connected", tools=tools, **box)
        async with self._carrying(link):
            self.ready.set()
            with self.ports.telemetry.connected(observer.peer):
                await self._serve(client)

    @asynccontextmanager
    async def _carrying(self, link: Link) -> AsyncGenerator[None]:
        """Let calls reach the server within the block."""
        self.broker.attach(link)
        try:
            yield
        finally:
            self.broker.detach(link)

    @asynccontextmanager
    async def _reached(
        self, observer: WireObserver, guard: SessionGuard, cancel: CancelGuard
    ) -> AsyncGenerator[Client]:
        source = self.reach(self._started or self.entry)
        # one for each connection: nothing that was learned of another server counts here
        dialect = Dialect(opening=self.entry.protocol)
        handlers = self.inquiries.handlers(self.entry, observer.asker)
        opening = self._opening(
            source,
            handlers=handlers,
            guard=guard,
            observer=observer,
            cancel_guard=cancel,
            host=self.host,
            dialect=dialect,
        )
        async with opening as client:
            self._client = client
            self.renew_roots()  # the policy may be another one than when they were declared
            try:
                yield client
            finally:
                self._client = None

    def _opening(
        self, source: ServerSource, **wiring: Unpack[Wiring]
    ) -> AbstractAsyncContextManager[Client]:
        """Return the connection, which is open within its block: with the login, if it has one."""
        if self.login is not None and isinstance(source, HttpSpec):
            return self.login.connect(source, **wiring)
        limits = ClientLimits(initialize_seconds_max=self.entry.start_seconds)
        return connect(source, limits=limits, **wiring)

    def renew_roots(self) -> None:
        """Let the server have the roots that it may have now, and no others; a no-op while it is gone."""
        if self._client is not None and self.entry.roots:
            self._client.set_roots(self.inquiries.roots(self.entry))

    async def _serve(self, client: Client) -> None:
        """Stay until the server is gone; list again when it says so."""
        with ungrouped():
            await self._serve_in_group(client)

    async def _serve_in_group(self, client: Client) -> None:
        async with anyio.create_task_group() as group:

            async def relist(changes: AsyncIterator[None]) -> None:
                recent = deque[float](maxlen=RELISTS_BURST)
                async for _ in changes:
                    await self._refresh(client)
                    recent.append(anyio.current_time())
                    if len(recent) == RELISTS_BURST:
                        await anyio.sleep_until(recent[0] + RELISTS_SECONDS)

            async def until_gone() -> None:
                error = await client.wait_lost()
                self._end(error)
                group.cancel_scope.cancel()

            for changes in (
                client.tool_changes(),
                client.resource_changes(),
                client.prompt_changes(),
            ):
                group.start_soon(relist, changes)
            group.start_soon(until_gone)

    async def _refresh(self, client: Client) -> None:
        """List again, and note of which of the connection's sessions the listing is."""
        async with self._refreshing:  # an older listing never comes after a newer one
            count = client.session.renewal.count
            tools = await self._list_tools(client)
            if self.listing is not None:
                # what has changed is dead as soon as it is known: the other lists may be held back
                self.take_listing(replace(tools, data=self.listing.data))
            self.take_listing(replace(tools, data=await list_data(self.name, client)))
            self._listed_for = count
            self.on_change(self)

    async def _catch_up(self, client: Client) -> None:
        """Return once the listing is of the present session: once for all who wait."""
        async with self._catching_up:
            while not self._is_fresh(client):
                await self._refresh(client)

    def _is_fresh(self, client: Client) -> bool:
        """True if the definitions are those of the session that a call would go to.

        A server that has forgotten its session may offer something else under the same names.
        """
        return self._listed_for == client.session.renewal.count

    async def _list_tools(self, client: Client) -> ServerListing:
        """Return what is listed of tools, and nothing of the rest."""
        tools = await client.list_tools()
        limits = ClientLimits()
        return list_server(
            self.name,
            [decode(tool.definition, limits) for tool in tools.tools],
            instructions=client.instructions,
        )

    def take_listing(self, listing: ServerListing) -> None:
        """Kill what changed or is gone, and give what is new a cell of its own. Adds no right.

        A definition that comes back after it was gone is another incarnation: what a snapshot
        held of it stays dead (I4, I8).
        """
        present = {tool.name: tool for tool in listing.tools}
        changed: list[str] = []
        for name, (digest, cell) in tuple(self.definitions.items()):
            tool = present.get(name)
            if tool is None or tool.digest != digest:
                self.ledger.revoke(cell, DenyReason.DEFINITION_CHANGED)
                del self.definitions[name]
                changed.append(name)
        gone = self._forget_data(listing.data)
        if changed or gone:
            self._record(
                "definition_changed",
                tools=within_a_record(changed),
                data=within_a_record(gone),
                count=len(changed) + len(gone),
            )
        for name, tool in present.items():
            if name not in self.definitions:
                self.definitions[name] = (tool.digest, self._open_definition(tool))
        self._take_data(listing.data)
        self.listing = listing

    def _forget_data(self, data: ServerData) -> list[str]:
        """Kill what is not listed any more, or not as it was; return the names of it."""
        present = frozenset(data.refs)
        gone = [ref for ref in self.data_cells if ref not in present]
        for ref in gone:
            self.ledger.revoke(self.data_cells.pop(ref), DenyReason.DEFINITION_CHANGED)
        return [ref.name for ref in gone]

    def _take_data(self, data: ServerData) -> None:
        """Give what is new a cell of its own."""
        for ref in dict.fromkeys(data.refs):
            if ref not in self.data_cells:
                self.data_cells[ref] = self.ledger.open(
                    CellKind.DEFINITION, str(ref), under=self.cell
                )

    def forget(self, digests: Collection[str]) -> tuple[Flip, ...]:
        """Kill these definitions as they were shown; what is shown again later is another incarnation."""
        flips: list[Flip] = []
        if self.cell.reason is not None:
            return ()
        for name, (digest, cell) in tuple(self.definitions.items()):
            if digest in digests:
                flips.append(self.ledger.revoke(cell, DenyReason.PIN_FORGOTTEN))
                anew = self.ledger.open(CellKind.DEFINITION, cell.name, under=self.cell)
                self.definitions[name] = (digest, anew)
        return tuple(flips)

    def _open_definition(self, tool: CatalogTool) -> Cell:
        return self.ledger.open(CellKind.DEFINITION, str(tool.ref), under=self.cell)

    def close(self, reason: DenyReason) -> None:
        """Take its authority back, then let the owner task end the process. Synchronous."""
        self._revoke(reason)
        disabled = reason is DenyReason.SERVER_DISABLED
        self.state = ServerState.DISABLED if disabled else ServerState.REMOVED
        self._scope.cancel()

    def lose_login(self, reason: DenyReason) -> None:
        """Let the owner task end the connection: what it was reached with is gone. Synchronous."""
        self._revoke(reason)
        if self.state not in _WITHDRAWN:
            self.state = ServerState.NEEDS_AUTH
            self.error = needs_login(self.name)
            self._record("server_lost", state=self.state.value, error=self.error.code)
            self.on_change(self)
        self._scope.cancel()

    def _revoke(self, reason: DenyReason) -> None:
        self.ledger.revoke(self.cell, reason)
        if self.login is not None:
            self.ledger.revoke(self.login.cell, reason)

    async def wait_over(self) -> None:
        """Return once nothing of this incarnation is left."""
        await self._closed.wait()

    def kill(self) -> None:
        """Have the connection ended, a process with it; it then is lost. Synchronous."""
        self._scope.cancel()

    async def abort(self) -> None:
        """End the connection and return once no byte can leave it any more. It then is lost."""
        self._scope.cancel()
        await self._closed.wait()

    def _end(self, error: Exception) -> None:
        if self.state in _WITHDRAWN or self.error is not None:
            return
        if isinstance(error, NeedsAuthorizationError | AuthorizationRequiredError):
            self.state, self.error = ServerState.NEEDS_AUTH, needs_login(self.name)
            self._revoke(DenyReason.NEEDS_AUTH)
        else:
            self.state = ServerState.LOST if self.ready.is_set() else ServerState.FAILED
            self.error = explain(
                self.name, error, verb=_VERBS[self.state], withheld=self._withheld()
            )
            self._revoke(DenyReason.SERVER_DISCONNECTED)
        self._record("server_lost", state=self.state.value, error=self.error.code)
        self.on_change(self)

    def _withheld(self) -> tuple[str, ...]:
        if self.entry.transport is not ServerTransport.STDIO:
            return ()
        return withheld_names(self.entry.env, os.environ)

    def _record(self, kind: str, **fields: object) -> None:
        self.ports.audit.append(kind, {"server": self.name, **fields})


def within_a_record(names: Sequence[str]) -> list[str]:
    """Return the first of a server's own names, as many as a record has room for."""
    room = CHANGED_CHARS_MAX
    kept: list[str] = []
    for name in names[:CHANGED_NAMES_MAX]:
        room -= len(name)
        if room < 0:
            break
        kept.append(name)
    return kept


def server_source(entry: ServerEntry) -> ServerSource:
    """Return how a server of a servers file is reached: as a child process, or by its URL."""
    if entry.transport is not ServerTransport.STDIO:
        return http_spec(entry)
    return ServerSpec(
        name=entry.name,
        command=entry.command,
        args=entry.args,
        env=entry.env,
        cwd=str(entry.cwd),
    )
