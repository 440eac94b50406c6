"""The servers of one session: opened, withdrawn, enabled anew, replaced by difference; what was shown of them.

It makes no agent and decides nothing; each incarnation of a server has a cell of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import anyio
from anyio.abc import TaskGroup

from mcp_client.auth.grants import GrantChange
from mcp_client.client import Host, ServerSource
from mcp_client.protocol.errors import McpError
from orchestrator.authority.admission import Offer
from orchestrator.authority.ledger import Cell, CellKind, Flip, Ledger
from orchestrator.broker import Broker
from orchestrator.catalog.listing import CatalogTool, ServerListing
from orchestrator.core.errors import ConfigError, DenyReason
from orchestrator.core.ids import ServerName
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.endings import login_failed, needs_login
from orchestrator.sessions.entries import EntryState, Isolation, ServerEntry
from orchestrator.sessions.inquiries import Inquiries
from orchestrator.sessions.isolating import AgentPlaces, PatternConnection
from orchestrator.sessions.logins import LoginPorts, ServerLogin
from orchestrator.sessions.offered_data import data_offers
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.servers import ServerConnection, ServerState

__all__ = ["Difference", "ServerFleet", "difference"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How one configuration of servers stands to the one before, by label.

    `gone` says why for each that may not be spoken to any more; `start` are the entries that are
    new, or the same label under another configuration. What is in neither goes on untouched.
    """

    gone: Mapping[ServerName, DenyReason]
    start: tuple[ServerEntry, ...]


def difference(
    before: Mapping[ServerName, ServerEntry], after: Sequence[ServerEntry]
) -> Difference:
    """Compare by digest. An entry that cannot be used takes its server away: it fails closed."""
    usable = {entry.name: entry for entry in after if entry.state is EntryState.READY}
    disabled = {entry.name for entry in after if entry.state is EntryState.DISABLED}
    named = {entry.name for entry in after}
    gone: dict[ServerName, DenyReason] = {}
    for name, old in before.items():
        new = usable.get(name)
        if new is not None and new.digest == old.digest:
            continue
        if name in disabled:
            gone[name] = DenyReason.SERVER_DISABLED
        elif name in named:
            gone[name] = DenyReason.CONFIGURATION_RELOADED
        else:
            gone[name] = DenyReason.SERVER_REMOVED
    start = tuple(entry for name, entry in usable.items() if name not in before or name in gone)
    return Difference(gone=MappingProxyType(gone), start=start)


_WITHDRAWN: Final = frozenset({ServerState.DISABLED, ServerState.REMOVED})


class ServerFleet:
    """Every server of a session by label, in its present incarnation.

    `on_change` is told whenever what the servers offer may be another thing.
    """

    def __init__(
        self,
        *,
        session_cell: Cell,
        ledger: Ledger,
        broker: Broker,
        ports: SessionPorts,
        seconds: float,
        reach: Callable[[ServerEntry], ServerSource],
        inquiries: Inquiries,
        logins: LoginPorts,
        on_change: Callable[[], None],
        agent_servers_max: int,
    ) -> None:
        self._places = AgentPlaces(agent_servers_max)
        self._logins = logins
        self._session_cell = session_cell
        self._ledger = ledger
        self._broker = broker
        self._ports = ports
        self._seconds = seconds
        self._reach = reach
        self._inquiries = inquiries
        self._on_change = on_change
        self._connections: dict[ServerName, ServerConnection] = {}
        self._retired: list[ServerConnection] = []
        self._shown: dict[ServerName, frozenset[str]] = {}
        self._host: Host | None = None
        self._group: TaskGroup | None = None

    @property
    def connections(self) -> Mapping[ServerName, ServerConnection]:
        """Every server by label, whatever its state."""
        return dict(self._connections)

    def begin(self, entries: Sequence[ServerEntry], host: Host, group: TaskGroup) -> None:
        """Start these servers side by side, each owned by a task of `group`."""
        self._host, self._group = host, group
        for entry in entries:
            self._open(entry)

    async def close(self, reason: DenyReason) -> None:
        """End every process, side by side. Shielded by the caller; bounded by the client."""
        for connection in self._connections.values():
            connection.close(reason)
        async with anyio.create_task_group() as group:
            for connection in (*self._connections.values(), *self._retired):
                group.start_soon(partial(connection.abort))

    def find(self, name: str) -> ServerConnection:
        """Return a server by label. Raises ConfigError if there is none."""
        found = self._connections.get(ServerName(name))
        if found is None:
            raise ConfigError(
                f"there is no server {name!r}{did_you_mean(name, self._connections)}",
                code="E-SERVER-UNKNOWN",
            )
        return found

    # ------------------------------------------------------------------------- what was shown

    def show(self, listing: ServerListing, names: Collection[str] | None) -> tuple[Flip, ...]:
        """Note that a person was shown these definitions; `names` leaves others out.

        What was shown before and is not among them is taken back: every view that has it loses it.
        """
        before = self._shown.get(listing.server, frozenset())
        now = frozenset(
            tool.digest for tool in listing.tools if names is None or tool.name in names
        )
        self._shown[listing.server] = now
        connection = self._connections.get(listing.server)
        return connection.forget(before - now) if connection is not None else ()

    def forget_shown(self, name: ServerName) -> None:
        """Note that what was shown of a server counts no longer."""
        self._shown.pop(name, None)

    def shown_tools(self) -> Iterator[tuple[ServerConnection, CatalogTool]]:
        """Go through what may be granted: listed now, by a connected server, and shown (S-45)."""
        for connection in self._connections.values():
            if connection.state is not ServerState.CONNECTED or connection.listing is None:
                continue
            shown = self._shown.get(connection.name, frozenset())
            for tool in connection.listing.tools:
                if tool.digest in shown:
                    yield connection, tool

    def shown_data(self) -> Iterator[Offer]:
        """Go through the resources, templates and prompts that may be granted.

        A person was shown the server that lists them: its tools, if it has any, and its instructions.
        """
        for connection in self._connections.values():
            listing = connection.listing
            if connection.state is not ServerState.CONNECTED or listing is None:
                continue
            if connection.name in self._shown:
                login = connection.login
                yield from data_offers(
                    listing.data,
                    connection.data_cells,
                    link=connection.cell,
                    login=login.cell if login is not None else None,
                )

    # ------------------------------------------------------------------------- incarnations

    def withdraw(self, name: str, reason: DenyReason) -> Flip:
        """Kill a server's cell and all that depends on it, then have its process ended.

        Raises ConfigError if there is no such server.
        """
        connection = self.find(name)
        flip = self._ledger.revoke(connection.cell, reason)
        connection.close(reason)
        self._on_change()
        return flip

    def enable(self, name: str) -> ServerConnection:
        """Start a server that was disabled, as another incarnation: no old handle reaches it (I4).

        Raises ConfigError if there is no such server, or it was not disabled.
        """
        connection = self.find(name)
        if connection.state is not ServerState.DISABLED:
            raise ConfigError(
                f"server {name!r} is not disabled: it is {connection.state.value}",
                code="E-SERVER-ENABLED",
            )
        return self._open(connection.entry)

    def renew_roots(self) -> None:
        """Let each server have the roots that the present policy lets it have, and no others."""
        for connection in self._connections.values():
            connection.renew_roots()

    def compare(self, entries: Sequence[ServerEntry]) -> Difference:
        """Return what another configuration would change. Changes nothing.

        A server that was disabled by hand, or was lost, stays as it is under the same entry.
        """
        present = {
            name: item.entry
            for name, item in self._connections.items()
            if item.state is not ServerState.REMOVED
        }
        return difference(present, entries)

    def start(self, entries: Sequence[ServerEntry]) -> tuple[ServerConnection, ...]:
        """Start servers of another configuration; each waits for what had its label to end."""
        return tuple(self._open(entry) for entry in entries)

    def _open(self, entry: ServerEntry, *, asks: bool = False) -> ServerConnection:
        if self._host is None or self._group is None:
            raise ConfigError(
                "the session is not running", code="E-SERVER-IDLE", fix="enter `session.running()`"
            )
        before = self._connections.get(entry.name)
        login = self._open_login(entry, asks=asks)
        above = self._session_cell if login is None else login.cell
        kind = ServerConnection
        if entry.isolate is Isolation.AGENT:
            kind = partial(PatternConnection, places=self._places)
        connection = kind(
            entry=entry,
            reach=self._reach,
            inquiries=self._inquiries,
            host=self._host,
            seconds=entry.timeout_seconds or self._seconds,
            session_cell=self._session_cell,
            cell=self._ledger.open(CellKind.SERVER, entry.name, under=above),
            login=login,
            ledger=self._ledger,
            broker=self._broker,
            ports=self._ports,
            on_change=self._changed,
        )
        if before is not None:
            if before.entry.digest != entry.digest:
                self.forget_shown(entry.name)  # it was shown of another configuration
            self._retired = [item for item in self._retired if not item.over]
            self._retired.append(before)
        self._connections[entry.name] = connection
        self._group.start_soon(connection.run, before)
        return connection

    def _open_login(self, entry: ServerEntry, *, asks: bool) -> ServerLogin | None:
        if not entry.wants_login:
            return None
        login = ServerLogin(
            entry=entry,
            session_cell=self._session_cell,
            cell=self._ledger.open(CellKind.LOGIN, entry.name, under=self._session_cell),
            ledger=self._ledger,
            ports=self._logins,
            asks=asks,
            on_change=lambda change: self._login_changed(entry, login, change),
        )
        return login

    def _login_changed(self, entry: ServerEntry, login: ServerLogin, change: GrantChange) -> None:
        """Follow a login in the step in which it changes: what depended on it is dead by now."""
        self._ports.audit.append("login_changed", {"server": entry.name, "change": change.value})
        self._on_change()
        connection = self._connections.get(entry.name)
        if connection is None or connection.login is not login:
            return  # an obsolete incarnation changes nothing for its successor (I17)
        if change is GrantChange.OTHER:
            connection.close(DenyReason.LOGGED_IN)
            self._open(entry)
        elif change is GrantChange.LOST:
            connection.lose_login(DenyReason.NEEDS_AUTH)

    # -------------------------------------------------------------------------------- logins

    async def log_in(self, name: str) -> ServerConnection:
        """Have a person log in to a server, and return the incarnation that is reached so.

        Raises ConfigError if there is no such server or it has no login, ServerFailedError if nobody
        is here or it came to nothing.
        """
        connection, login = self.login_of(name)
        await connection.ready.wait()
        if connection.state in _WITHDRAWN:
            raise ConfigError(
                f"server {name!r} is {connection.state.value}",
                code="E-LOGIN-WITHDRAWN",
                fix="enable it, or add it again, and then log in",
            )
        if self._logins.step(connection.entry) is None:
            raise needs_login(connection.name)
        if connection.state is ServerState.CONNECTED:
            try:
                await login.renew()
            except McpError as error:
                raise login_failed(connection.name, error) from error
        else:
            self._open(connection.entry, asks=True)
        return await self._present(name)

    async def _present(self, name: str) -> ServerConnection:
        """Return a server once it is reached: another login than before makes another incarnation.

        Raises what is in the way.
        """
        while True:
            found = self.find(name)
            await found.ready.wait()
            if self.find(name) is found:
                break
        if found.error is not None:
            raise found.error
        return found

    async def end_login(self, connection: ServerConnection, login: ServerLogin) -> None:
        """Drop the tokens, and return once nothing is left of the connection, even if cancelled.

        Files and client bound it.
        """
        with anyio.CancelScope(shield=True):
            await login.forget()
            await connection.abort()

    def login_of(self, name: str) -> tuple[ServerConnection, ServerLogin]:
        """Return a server with its login. Raises ConfigError if there is none."""
        connection = self.find(name)
        if connection.login is None:
            raise ConfigError(
                f"server {name!r} has no login",
                code="E-LOGIN-NONE",
                why="it is started here, its headers hold credentials of its own, or what is sent "
                "to it is not encrypted",
            )
        return connection, connection.login

    def _changed(self, connection: ServerConnection) -> None:
        self._on_change()
        # what an obsolete incarnation says changes nothing for its successor (I17)
        if self._connections.get(connection.name) is connection and connection.listing is not None:
            known = self._shown.get(connection.name)
            if known is not None:
                digests = {tool.digest for tool in connection.listing.tools}
                self._shown[connection.name] = known & digests
