"""A connection of its own for each agent: opened at its first need, dead and ended with what it stands under.

The session's own connection lists what there is, and carries no call. It decides nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Unpack

import anyio
from anyio.abc import TaskGroup

from mcp_client.client import Client, HttpSpec, ServerSource
from orchestrator.authority.ledger import Cell, CellKind
from orchestrator.authority.snapshot import Capability
from orchestrator.broker import AgentView, Link, OwnCells
from orchestrator.catalog.listing import ServerListing
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.errors import AuthorityError, CallFailedError, Delivery, DenyReason
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import AgentId
from orchestrator.core.ports import Peer
from orchestrator.sessions.logins import Wiring
from orchestrator.sessions.remote import peer_of
from orchestrator.sessions.servers import ServerConnection, ServerState, within_a_record

__all__ = ["AgentConnection", "AgentPlaces", "PatternConnection", "owned_by_agents"]


class AgentPlaces:
    """How many connections of agents' own one session may have at a time: each may be a process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0

    def take(self) -> bool:
        """Take a place. False if there is none."""
        if self._taken >= self.most:
            return False
        self._taken += 1
        return True

    def give_back(self) -> None:
        """Leave it to another."""
        self._taken -= 1


@dataclass(kw_only=True)
class PatternConnection(ServerConnection):
    """The session's connection to a server of which each agent has one for itself.

    What it lists is shown, pinned and admitted as any server's. It is never attached to the broker:
    there is no road for a call over it.
    """

    places: AgentPlaces
    _group: TaskGroup | None = None
    _owned: dict[Cell, AgentConnection] = field(default_factory=dict[Cell, "AgentConnection"])

    @property
    def owned(self) -> tuple[AgentConnection, ...]:
        """The connections of agents that are open, or about to be."""
        return tuple(each for each in self._owned.values() if not each.over)

    @asynccontextmanager
    async def _carrying(self, link: Link) -> AsyncGenerator[None]:
        """Let each agent have a connection of its own within the block; none of them outlives it."""
        with ungrouped():
            async with anyio.create_task_group() as group:
                self._group = group
                self.broker.isolate(self.cell, self.own)
                try:
                    yield
                finally:
                    self.broker.rejoin(self.cell)
                    self._group = None
                    group.cancel_scope.cancel()

    def renew_roots(self) -> None:
        """Let the server have the roots that it may have now, in the process of each agent too."""
        super().renew_roots()
        for connection in self.owned:
            connection.renew_roots()

    def described(self) -> Iterator[tuple[Cell, CapabilityRef]]:
        """Go through what it offers now: the cell of each definition, and what it is a definition of."""
        for name, (digest, cell) in self.definitions.items():
            yield cell, CapabilityRef(self.name, CapabilityKind.TOOL, name, digest)
        for ref, cell in self.data_cells.items():
            yield cell, ref

    async def own(self, view: AgentView, capability: Capability) -> OwnCells:
        """Return where a capability stands at the agent's own connection, which is opened if need be.

        Raises:
            AuthorityError: agent or server has ended, the agent's connection was lost, or what it
                offers there is not what was shown.
            CallFailedError: it cannot be opened, or too many agents have one.
        """
        connection = self._owned.get(view.owner)
        if connection is None:
            connection = self._open(view, capability)
        await connection.ready.wait()
        return connection.cells(capability)

    def _open(self, view: AgentView, capability: Capability) -> AgentConnection:
        for gone in [owner for owner in self._owned if owner.reason is not None]:
            del self._owned[gone]
        group = self._group
        if group is None or self.cell.reason is not None:
            raise AuthorityError(
                f"{capability.ref}: its server is not connected",
                reason=self.cell.reason or DenyReason.SERVER_DISCONNECTED,
            )
        cell = self.ledger.open(
            CellKind.SERVER, f"{self.name} of {view.agent}", under=self.cell, and_under=view.owner
        )
        if not self.places.take():
            self.ledger.revoke(cell, DenyReason.SERVER_DISCONNECTED)
            raise CallFailedError(
                f"{capability.ref}: {self.places.most} processes or sessions of agents' own are open "
                "in this session, and no more may be",
                code="E-SERVER-AGENTS",
                server=self.name,
                stage="start",
                delivery=Delivery.NOT_SENT,
                fix="end agents that are done with such servers, or let fewer agents reach them",
            )
        connection = AgentConnection(
            entry=self.entry,
            reach=self.reach,
            host=self.host,
            inquiries=self.inquiries,
            seconds=self.seconds,
            session_cell=self.session_cell,
            cell=cell,
            ledger=self.ledger,
            broker=self.broker,
            ports=self.ports,
            on_change=_unheard,
            owner=view.owner,
            agent=view.agent,
            pattern=self,
        )
        self._owned[view.owner] = connection
        # from this step on its end is part of each act that takes back what it stands under
        self.ledger.depart(connection.flight)
        group.start_soon(connection.run)
        return connection


@dataclass(kw_only=True)
class AgentConnection(ServerConnection):
    """One agent's own connection to a server. Its cell stands under the pattern's and the agent's.

    What it defines as the pattern does has a cell under the pattern's; all else has none.
    """

    agent: AgentId
    pattern: PatternConnection
    flight: _Ending = field(init=False)
    _offered: frozenset[CapabilityRef] = frozenset()
    _targets: dict[Cell, Cell] = field(default_factory=dict[Cell, Cell])

    def __post_init__(self) -> None:
        self.flight = _Ending(self)

    @property
    def peer(self) -> Peer:
        """What a trace may know of it."""
        return peer_of(self.entry, self.agent)

    async def run(self, after: ServerConnection | None = None) -> None:
        """Own the connection from its start to its end."""
        try:
            await super().run(after)
        finally:
            self.ledger.arrive(self.flight)
            self.pattern.places.give_back()

    def end(self, reason: DenyReason) -> None:
        """Let the owner task end it: its cell is dead, with what it stands under. Synchronous."""
        if self.error is None and self.state is not ServerState.REMOVED:
            self.state = ServerState.REMOVED
            self._record("server_ended", reason=reason.value)
        self.ready.set()
        self.kill()

    def take_listing(self, listing: ServerListing) -> None:
        """Kill what is not offered any more as it was shown; let the rest stand under the pattern's."""
        before = self._offered
        self.listing = listing
        self._offered = frozenset((*(tool.ref for tool in listing.tools), *listing.data.refs))
        self._follow()
        known = {ref for _, ref in self.pattern.described()}
        # in the first listing that is all that it does not offer as it was shown
        missing = (before & known if before else known) - self._offered
        if missing:
            self._record(
                "definition_changed",
                tools=within_a_record([ref.name for ref in missing if _is_tool(ref)]),
                data=within_a_record([ref.name for ref in missing if not _is_tool(ref)]),
                count=len(missing),
            )

    def _follow(self) -> None:
        """Hold what is offered here against what the pattern offers now. What was dead stays so (I4)."""
        present = dict(self.pattern.described())
        self._targets = {
            above: cell for above, cell in self._targets.items() if above.reason is None
        }
        for above, cell in self._targets.items():
            if present.get(above) not in self._offered:
                self.ledger.revoke(cell, DenyReason.DEFINITION_CHANGED)
        for above, ref in present.items():
            if above not in self._targets and ref in self._offered and self.cell.reason is None:
                self._targets[above] = self.ledger.open(
                    CellKind.DEFINITION, above.name, under=above, and_under=self.cell
                )

    def cells(self, capability: Capability) -> OwnCells:
        """Return where a capability stands here. Raises as `PatternConnection.own`."""
        if self.cell.reason is not None:
            raise self._why_not(capability)
        if capability.target not in self._targets:
            self._follow()  # the pattern may have listed, or been shown, since
        target = self._targets.get(capability.target)
        if target is None or capability.link is not self.pattern.cell:
            raise AuthorityError(
                f"{capability.ref}: what the server offers agent {self.agent!r} under that name is "
                "not what was shown",
                reason=DenyReason.DEFINITION_CHANGED,
            )
        return OwnCells(link=self.cell, target=target)

    def _why_not(self, capability: Capability) -> AuthorityError | CallFailedError:
        """Return why it cannot be used: it never could, or not any more."""
        match self.state:
            case ServerState.NEEDS_AUTH:
                return AuthorityError(
                    f"{capability.ref}: its server wants a login",
                    reason=DenyReason.NEEDS_AUTH,
                    fix=f"remit mcp login {self.name}",
                )
            case ServerState.FAILED if self.error is not None:
                return CallFailedError(
                    f"{capability.ref}: agent {self.agent!r} cannot have it for itself: "
                    f"{self.error.message}",
                    code=self.error.code,
                    server=self.name,
                    stage="start",
                    delivery=Delivery.NOT_SENT,
                    fix=self.error.fix,
                )
            case ServerState.LOST:
                return AuthorityError(
                    f"{capability.ref}: what agent {self.agent!r} had of this server for itself is "
                    "lost, and all that it had done there",
                    reason=DenyReason.SERVER_DISCONNECTED,
                    fix="make another agent: it is given a new one",
                )
            case _:
                reason = self.pattern.cell.reason or self.cell.reason
                return AuthorityError(
                    f"{capability.ref}: its server is not connected",
                    reason=reason or DenyReason.SERVER_DISCONNECTED,
                )

    def _opening(
        self, source: ServerSource, **wiring: Unpack[Wiring]
    ) -> AbstractAsyncContextManager[Client]:
        """Return the connection: with the pattern's login, and never without it if it has one."""
        login = self.pattern.login
        if login is not None and isinstance(source, HttpSpec):
            return login.join(source, **wiring)
        return super()._opening(source, **wiring)

    def _record(self, kind: str, **fields: object) -> None:
        super()._record(kind, agent=self.agent, **fields)


class _Ending:
    """An agent's own connection, as the ledger sees it: ended in the step in which its cell dies."""

    __slots__ = ("_connection",)

    def __init__(self, connection: AgentConnection) -> None:
        self._connection = connection

    def lapsed(self) -> DenyReason | None:
        """Return why it may not go on; None if it may."""
        return self._connection.cell.reason

    def interrupt(self, reason: DenyReason) -> None:
        """End it. All cells are dead by now, so this takes nothing back by itself."""
        self._connection.end(reason)


def owned_by_agents(connections: Iterable[ServerConnection]) -> Iterator[AgentConnection]:
    """Go through the connections that agents have for themselves to these servers."""
    for connection in connections:
        if isinstance(connection, PatternConnection):
            yield from connection.owned


def _is_tool(ref: CapabilityRef) -> bool:
    return ref.kind is CapabilityKind.TOOL


def _unheard(connection: ServerConnection) -> None:
    """Nothing that an agent's own connection offers changes what there is to be granted."""
