"""The parent session: it owns the clients and the ledger, makes agents, and takes authority back.

It reads no file and asks nobody: what it is given has been read, approved and pinned.
"""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

import anyio

from mcp_client.client import ServerSource, open_host
from orchestrator.agents.budget import OPEN_BUDGET, Budget, Price
from orchestrator.agents.model import Model
from orchestrator.agents.view import View
from orchestrator.authority.admission import Grant
from orchestrator.authority.ledger import CellKind, Flip, Ledger
from orchestrator.authority.snapshot import Row
from orchestrator.broker import AgentView, Broker, BuiltinTool, Receipt, Revocation
from orchestrator.broker.builtins import list_capabilities
from orchestrator.broker.deciding import Deciding
from orchestrator.broker.reading import READING_TOOLS
from orchestrator.catalog.listing import Catalog, CatalogTool, ServerListing
from orchestrator.core.errors import DenyReason
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import AgentId, ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.making import maker
from orchestrator.sessions.agents import OneOffSubagent, Subagent
from orchestrator.sessions.asks import AskDesk, AskStream
from orchestrator.sessions.defined import NO_DEFINITIONS, Definitions
from orchestrator.sessions.discovering import Discovery, Hit
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.family import PARENT
from orchestrator.sessions.fleet import ServerFleet
from orchestrator.sessions.household import AgentWish, Household
from orchestrator.sessions.inquiries import Inquiries
from orchestrator.sessions.lanes import Lanes, Road, ServerCap
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.models import model_of
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.policy_desk import PolicyDesk
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.records import AgentRecords, MemoryRecords
from orchestrator.sessions.reloading import Reload
from orchestrator.sessions.sampling import SamplingTurn
from orchestrator.sessions.servers import (
    CHANGED_NAMES_MAX,
    ServerConnection,
    ServerState,
    server_source,
)
from orchestrator.sessions.skills import SkillShelf
from orchestrator.sessions.spawning import agent_tools
from orchestrator.sessions.tables import Tables
from policies import Label, PolicySet

__all__ = ["PARENT", "ParentSession", "Reload"]

_new_wish: Final = maker(AgentWish)


class ParentSession:
    """One session. Use `async with`; when the block ends, everything it started has ended.

    `builtin_names` are the tools of `remit` that its policy can permit, `definitions` what its agents
    may make agents of.
    """

    definitions: Definitions = NO_DEFINITIONS

    def __init__(
        self,
        *,
        servers: Sequence[ServerEntry],
        policy: PolicySet,
        ports: SessionPorts,
        limits: OrchestratorLimits,
        builtins: Sequence[BuiltinTool] = (list_capabilities,),
        prices: Mapping[str, Price] | None = None,
        budget: Budget | None = None,
        records: AgentRecords | None = None,
        own_tools: bool = False,
        skills: SkillShelf | None = None,
        caps: Mapping[str, ServerCap] | None = None,
        reach: Callable[[ServerEntry], ServerSource] = server_source,
        logins: LoginPorts | None = None,
    ) -> None:
        self._entries = tuple(servers)
        self._desk = AskDesk(ports.approver, limits, ports.person, ports.always)
        self._ports = ports = replace(ports, approver=self._desk)
        self._limits = limits
        self._discovery = Discovery(self._shown_tools, skills)
        own = self._own_tools() if own_tools else ()
        self._builtins = {tool.name: tool for tool in (*builtins, *own)}
        self.builtin_names = tuple(self._builtins)
        self._ledger = Ledger(thread=threading.get_ident)
        self._cell = self._ledger.open(CellKind.SESSION, "session")
        self._policy_cell = self._ledger.open(CellKind.POLICY, "policy")
        self._broker = Broker(
            ledger=self._ledger,
            policy=policy,
            policy_cell=self._policy_cell,
            ports=ports,
            limits=limits,
            builtins=self._builtins,
        )
        self._road: Road = Lanes(self._broker.call, caps).call if caps else self._broker.call
        self._inquiries = self._make_inquiries(prices or {})
        self._fleet = ServerFleet(
            session_cell=self._cell,
            ledger=self._ledger,
            broker=self._broker,
            ports=ports,
            seconds=limits.call_seconds_max,
            reach=reach,
            inquiries=self._inquiries,
            logins=logins or LoginPorts(),
            on_change=self._offers_changed,
            agent_servers_max=limits.agent_servers_max,
        )
        self._tables = Tables(
            shown=self._fleet.shown_tools,
            shown_data=self._fleet.shown_data,
            builtins=self._builtins,
            builtin_cell=self._ledger.open(CellKind.SERVER, "remit", under=self._cell),
            policies=self._broker.policies,
            interactive=self._desk.reaches_a_person,
            children=lambda agent: self._household.children(agent),  # noqa: PLW0108
        )
        self._household = self._make_household(prices, budget, records)

    def _make_inquiries(self, prices: Mapping[str, Price]) -> Inquiries:
        return Inquiries(
            desk=self._desk,
            ports=self._ports,
            policies=self._broker.policies,
            ledger=self._ledger,
            turn=SamplingTurn(lambda: self._household.living, prices, self._ports),
        )

    def _make_household(
        self,
        prices: Mapping[str, Price] | None,
        budget: Budget | None,
        records: AgentRecords | None,
    ) -> Household:
        return Household(
            session_cell=self._cell,
            ledger=self._ledger,
            road=self._road,
            ports=self._ports,
            limits=self._limits,
            desk=self._desk,
            prices=dict(prices or {}),
            budget=budget or OPEN_BUDGET,
            outfit_of=self._tables.of,
            records=records or MemoryRecords(),
        )

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[ParentSession]:
        """Start every server side by side; at the end of the block close and reap them all.

        A server that cannot be reached does not stop the others: look at `servers`.
        """
        with ungrouped():
            async with self._running():
                yield self

    @asynccontextmanager
    async def _running(self) -> AsyncGenerator[None]:
        async with open_host() as host, anyio.create_task_group() as group:
            self._fleet.begin(self._entries, host, group)
            self._household.begin(group, host.reactor)
            try:
                for connection in self._fleet.connections.values():
                    await connection.ready.wait()
                yield
            finally:
                self._household.end()
                await self._close()
                group.cancel_scope.cancel()

    @property
    def servers(self) -> Mapping[ServerName, ServerConnection]:
        """Every server by label, whatever its state."""
        return self._fleet.connections

    @property
    def catalog(self) -> Catalog:
        """What the connected servers offer now, pinned or not."""
        return Catalog(
            item.listing
            for item in self._fleet.connections.values()
            if item.listing is not None and item.state is ServerState.CONNECTED
        )

    @property
    def policy(self) -> PolicySet:
        """The policy that calls are decided under now."""
        return self._broker.policies.present

    @property
    def deciding(self) -> Deciding:
        """What decides on calls, for who holds answers of earlier ones. It admits none."""
        return self._broker.deciding

    def admit(self, listing: ServerListing, names: Collection[str] | None = None) -> None:
        """Let agents be given these tools of a server: a person was shown their definitions.

        Without this nothing of a server can be granted (S-45). `names` leaves others out; what was
        admitted before and is left out now is taken back.
        """
        for flip in self._fleet.show(listing, names):
            self._taken_back(flip)
        self._offers_changed()

    # ------------------------------------------------------------------------------- agents

    @property
    def view(self) -> AgentView:
        """The side of the broker of the parent's own agent: its rights come from the same policy."""
        return self._household.own_view(self._tables.of(PARENT, PARENT, Grant(), ()).table)

    def subagent(
        self,
        name: str,
        *,
        model: Model | str,
        role: str = "",
        grant: Grant | None = None,
        budget: Budget | None = None,
        parent: Subagent | None = None,
        lease_seconds: float = math.inf,
        through: Callable[[AgentView], View] | None = None,
        preamble: str = "",
        labels: Collection[Label] = (),
    ) -> OneOffSubagent:
        """Make a subagent that works once, with a view frozen now.

        Its rights are the policy's for its role (its name where no role is given), narrowed by
        `grant` and, if `parent` is an agent, by what that agent and all above it may delegate. A
        child of an agent without a view has none. What it may spend is set aside from what its
        parent, or the session, has left. After `lease_seconds` from now everything of it is over,
        whatever it does; a child outlives no lease of its parent. A model may be given by its name,
        `PROVIDER:NAME`. `through` wraps its view, `preamble` stands before its prompt, `labels` cling.

        Raises:
            ConfigError: a bad name, a name in use, no such model, or a cap on agents, their depth,
                width or total.
            AuthorityError: the session or the parent has ended, or has nothing left to spend.
        """
        return self._household.one_off(
            _new_wish(
                name=name,
                model=model_of(model),
                role=role,
                grant=grant,
                budget=budget,
                parent=parent,
                lease_seconds=lease_seconds,
                through=through,
                preamble=preamble,
                labels=frozenset(labels),
            )
        )

    def persistent(
        self,
        name: str,
        *,
        model: Model | str,
        role: str = "",
        grant: Grant | None = None,
        budget: Budget | None = None,
        preamble: str = "",
    ) -> PersistentSubagent:
        """Make a subagent that stays until it is closed, and whose record stays after that.

        It does task after task, and remembers. Otherwise as `subagent`.

        Raises:
            ConfigError: as `subagent`, and where there is a record of this name: reopen it.
            AuthorityError: as `subagent`.
        """
        return self._household.persistent(
            AgentWish(
                name=name,
                model=model_of(model),
                role=role,
                grant=grant,
                budget=budget,
                preamble=preamble,
            )
        )

    def assistant(
        self, *, model: Model | str, budget: Budget | None = None, preamble: str = ""
    ) -> PersistentSubagent:
        """Make the parent's own agent, whom a person talks to: task after task, with a memory.

        It has the name and the role `parent`, at depth 0, and goes through the same policy, gate and
        record as any other. There is one at a time; in a session with a record it remembers.

        Raises:
            ConfigError: there is one already, or no such model.
            AuthorityError: the session has ended, or has nothing left to spend.
        """
        return self._household.assistant(
            AgentWish(
                name=PARENT,
                model=model_of(model),
                role=PARENT,
                budget=budget,
                preamble=preamble,
                own=True,
            )
        )

    def reopen(self, name: str, *, model: Model | str | None = None) -> PersistentSubagent:
        """Make another incarnation of a persistent subagent from its record.

        What it may do is decided on anew: by today's policy, of what is shown and connected now. No
        authority is on record. A model that is no language model has to be handed in again.

        Raises:
            ConfigError: there is no record, it lives, or as `subagent`.
            AuthorityError: as `subagent`.
        """
        return self._household.reopen(name, model)

    def find(
        self, query: str, *, agent: Subagent | None = None, count: int = 10
    ) -> tuple[Hit, ...]:
        """Search what an agent may use, or the parent's own; the best first. Loads nothing."""
        snapshot = self.view.snapshot if agent is None else agent.snapshot
        return () if snapshot is None else self._discovery.find(snapshot, query, count=count)

    def _offers_changed(self) -> None:
        self._tables.clear()
        self._discovery.changed()

    def _shown_tools(self) -> Iterator[CatalogTool]:
        for _, tool in self._fleet.shown_tools():
            yield tool

    def _own_tools(self) -> Iterator[BuiltinTool]:
        """Tools of the agents' own. Each call of one is decided like any other."""
        yield from self._discovery.tools()
        yield from agent_tools(
            lambda: self._household, self._desk, self._limits, lambda: self.definitions
        )
        yield from READING_TOOLS

    @property
    def agents(self) -> Mapping[AgentId, Subagent]:
        """The agents whose authority has not ended, by path."""
        return self._household.living

    def asks(self) -> AskStream:
        """Go through what any agent asks people, until the session ends; each agent is attended."""
        self._desk.attend_all()
        return AskStream(self._desk, None, lambda: self._cell.reason is not None)

    @property
    def inbox(self) -> AskDesk:
        """What is asked now, for whoever looks at it without listening."""
        return self._desk

    def rows(self, name: str, *, role: str, grant: Grant) -> tuple[Row, ...]:
        """Return what would be decided on everything on offer, for an agent that is not made."""
        return self._tables.of(AgentId(name), role, grant, ()).table.rows

    # ------------------------------------------------------------------------- taking back

    def remove_server(
        self, name: str, reason: DenyReason = DenyReason.SERVER_REMOVED, *, hard: bool = False
    ) -> Revocation:
        """Withdraw a server: every capability of it is dead when this returns, then it is ended.

        Raises ConfigError if there is no such server.
        """
        return self._taken_back(self._fleet.withdraw(name, reason), hard=hard)

    def disable_server(self, name: str) -> Revocation:
        """Withdraw a server until `enable_server`. Raises ConfigError if there is no such server."""
        return self.remove_server(name, DenyReason.SERVER_DISABLED)

    def enable_server(self, name: str) -> ServerConnection:
        """Start a disabled server again and return it; wait for its `ready`.

        It is another incarnation: agents that had the old one get nothing back, new ones are given
        what was shown of it. Raises ConfigError if there is no such server, or it is not disabled.
        """
        connection = self._fleet.enable(name)
        self._ports.audit.append("server_enabled", {"server": connection.name})
        return connection

    async def log_in(self, name: str) -> ServerConnection:
        """Have a person log in to a server, and return it once it offers its tools, or has failed.

        Where the login is the same person's and reaches as far as before, agents keep what they
        have, and calls under way are decided anew. Otherwise every capability of the server is dead
        before the new login is used: show and `admit` what it offers, and make new agents.

        Raises:
            ConfigError: there is no such server, or it has no login.
            ServerFailedError: nobody is here to be asked, or it came to nothing.
        """
        return await self._fleet.log_in(name)

    async def log_out(self, name: str) -> Receipt:
        """Forget the login to a server. Its capabilities are dead in the step of this call.

        Once this returns, no request carries the old credential, not even the one that would end
        the session with the server; the server then wants a login.

        Raises ConfigError if there is no such server, or it has no login.
        """
        connection, login = self._fleet.login_of(name)
        revocation = self._taken_back(self._ledger.revoke(login.cell, DenyReason.LOGGED_OUT))
        connection.lose_login(DenyReason.LOGGED_OUT)
        self._tables.clear()
        await self._fleet.end_login(connection, login)
        return await revocation

    def reload(self, entries: Sequence[ServerEntry]) -> Reload:
        """Put another configuration of servers in the place of the present one, by difference.

        When this returns, every capability of a server that is gone, cannot be used or has another
        configuration is dead; servers with the same one notice nothing. New ones are starting: wait
        for `Reload.ready`, then show and `admit` what they offer. Entries are approved before.
        """
        planned = self._fleet.compare(entries)
        revocations = tuple(
            self._taken_back(self._fleet.withdraw(name, reason))
            for name, reason in planned.gone.items()
        )
        self._ports.audit.append(
            "configuration_reloaded",
            {
                "gone": list(planned.gone)[:CHANGED_NAMES_MAX],
                "started": [entry.name for entry in planned.start][:CHANGED_NAMES_MAX],
            },
        )
        started = self._fleet.start(planned.start)
        self._offers_changed()
        return Reload(revocations=revocations, started=started)

    def cancel_agent(self, agent: str, *, hard: bool = False) -> Revocation:
        """Take back the authority of an agent and of all below it, and stop them.

        With `hard` the servers at which their calls had begun are killed, for all who use them;
        else a frame that had begun is finished.

        Raises ConfigError if there is no such agent.
        """
        found = self._household.find(agent)
        flip = self._ledger.revoke(found.cell, DenyReason.AGENT_CANCELLED)
        return self._taken_back(flip, hard=hard)

    def replace_policy(self, policy: PolicySet) -> Revocation:
        """Decide by another policy from now on. Agents live on; their rights can only shrink.

        Permits and approvals in flight end; each further call must pass the verdict in its
        agent's snapshot and every policy since, and so must all that the agents above it hand on.
        """
        self._desk.forget()
        self._broker.enforce(policy)
        self._tables.clear()
        self._fleet.renew_roots()
        return self._taken_back(self._ledger.void(self._policy_cell, DenyReason.POLICY_CHANGED))

    @property
    def policies(self) -> PolicyDesk:
        """For what a person does with policies."""
        return PolicyDesk(self, self._household.standing_of, self._ports.audit)

    def close(self, reason: DenyReason = DenyReason.SESSION_CLOSED) -> Revocation:
        """Take everything back. When this returns nothing more goes out, whatever is under way."""
        revocation = self._taken_back(self._ledger.revoke(self._cell, reason))
        self._desk.tell()
        return revocation

    def _taken_back(self, flip: Flip, *, hard: bool = False) -> Revocation:
        self._ports.audit.append("revoked", flip.record)
        return Revocation(flip, drain_seconds=self._limits.drain_seconds_max, hard=hard)

    async def _close(self) -> None:
        """Flip first, then end the processes, side by side; shielded, and bounded by the client."""
        self.close()
        with anyio.CancelScope(shield=True):
            await self._fleet.close(DenyReason.SESSION_CLOSED)
