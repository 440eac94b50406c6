"""The agents of a session: each made within the caps, from what is left of a budget, and kept by path.

What an agent may reach is worked out elsewhere and handed in; here nobody decides on a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, cast

from anyio.abc import TaskGroup

from mcp_client.net.reactor import Reactor
from orchestrator.agents.budget import DEFAULT_BUDGET, OPEN_BUDGET, Budget, Meter, Price
from orchestrator.agents.model import Model
from orchestrator.agents.view import View
from orchestrator.authority.admission import Ancestor, Grant
from orchestrator.authority.ceilings import Pin
from orchestrator.authority.ledger import Cell, Ledger
from orchestrator.authority.snapshot import CapabilitySnapshot, CapabilityTable
from orchestrator.authority.standing import Standing
from orchestrator.broker import AgentView
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.making import maker
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.agents import (
    AgentHome,
    OneOffSubagent,
    Subagent,
    agent_cell,
)
from orchestrator.sessions.asks import AskDesk
from orchestrator.sessions.deadlines import Deadlines
from orchestrator.sessions.family import PARENT, Family
from orchestrator.sessions.lanes import Road
from orchestrator.sessions.models import model_of
from orchestrator.sessions.outfits import Outfit
from orchestrator.sessions.persistent import PersistentSubagent
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.records import AgentRecord, AgentRecords
from orchestrator.sessions.task_work import BackgroundWork
from policies import Label

__all__ = ["AgentWish", "Household", "OutfitOf", "wish_of"]

OutfitOf = Callable[[AgentId, str, Grant, tuple[Ancestor, ...]], Outfit]
"""Returns what an agent of this path and role may reach, under this grant, below these agents."""

_NO_GRANT: Final = Grant()
_new_one_off: Final = maker(OneOffSubagent)

SubagentT = TypeVar("SubagentT", bound=Subagent)


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each agent
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class AgentWish:
    """What an agent is to be, before anybody looked whether it may be."""

    name: str
    model: Model
    role: str = ""
    grant: Grant | None = None
    budget: Budget | None = None
    parent: Subagent | None = None
    lease_seconds: float = math.inf
    through: Callable[[AgentView], View] | None = None
    preamble: str = ""
    own: bool = False
    """The parent's own agent: it stands at depth 0, and there is one."""
    labels: frozenset[Label] = frozenset()


class Household:
    """Every agent of one session, and what they share. `standing` is the parent's own agent's."""

    def __init__(
        self,
        *,
        session_cell: Cell,
        ledger: Ledger,
        road: Road,
        ports: SessionPorts,
        limits: OrchestratorLimits,
        desk: AskDesk,
        prices: Mapping[str, Price],
        budget: Budget,
        outfit_of: OutfitOf,
        records: AgentRecords,
    ) -> None:
        self.standing = Standing()
        self._session_cell = session_cell
        self._audit = ports.audit
        self._now = ports.clock.now
        self._outfit_of = outfit_of
        self._records = records
        self._family: Family[Subagent] = Family(limits)
        self._meter = Meter(budget, started=ports.clock.now())
        self._group: TaskGroup | None = None
        self._deadlines = Deadlines()
        self._home = AgentHome(
            ledger=ledger,
            road=road,
            ports=ports,
            limits=limits,
            prices=prices,
            desk=desk,
            deadlines=self._deadlines,
            in_background=self._in_background,
        )

    def begin(self, group: TaskGroup, reactor: Reactor) -> None:
        """Let agents work in the background, in this group, and by this loop's clock."""
        self._group = group
        self._deadlines.begin(reactor, type(group.cancel_scope))

    def end(self) -> None:
        """Let nothing more be started."""
        self._group = None
        self._deadlines.end()

    @property
    def living(self) -> Mapping[AgentId, Subagent]:
        """The agents whose authority has not ended, by path."""
        return self._family.living

    def find(self, path: str) -> Subagent:
        """Return a living agent. Raises ConfigError if there is none of this path."""
        return self._family.find(path)

    def own_view(self, table: CapabilityTable) -> AgentView:
        """Return the side of the broker of the parent's own agent."""
        cell = self._session_cell
        assistant = self._family.living.get(PARENT)
        return AgentView(
            agent=PARENT,
            cell=cell,
            snapshot=CapabilitySnapshot(agent=PARENT, cell=cell, table=table),
            road=self._home.road,
            standing=self.standing,
            # what a person does beside it is done with the same processes
            owner=cell if assistant is None else assistant.cell,
        )

    def standing_of(self, path: str) -> Standing:
        """Return what an agent carries. Raises ConfigError if there is none of this path."""
        own = path == PARENT and path not in self._family.living
        return self.standing if own else self._family.find(path).standing

    def children(self, agent: AgentId) -> int:
        """Count the living children of an agent."""
        return self._family.children(agent)

    def one_off(self, wish: AgentWish) -> OneOffSubagent:
        """Make an agent that works once.

        Raises:
            ConfigError: a bad name, a name in use, or a cap.
            AuthorityError: the session or the parent has ended, or has nothing left to spend.
        """
        return self._take_in(self._made(wish, _new_one_off))

    def persistent(self, wish: AgentWish) -> PersistentSubagent:
        """Make an agent that stays. Raises as `one_off`, and ConfigError where its name has a record."""
        if self._records.find(wish.name) is not None:
            raise ConfigError(
                f"there is a record of an agent {wish.name!r}",
                code="E-AGENT-RECORD",
                fix="reopen it, or choose another name",
            )
        return self._stay(wish, incarnation=1)

    def assistant(self, wish: AgentWish) -> PersistentSubagent:
        """Make the parent's own agent, from its record where there is one. Raises as `one_off`."""
        record = self._records.find(wish.name)
        if record is None:
            return self._stay(wish, incarnation=1)
        # what it remembers clings to it as it did
        wish = replace(wish, labels=wish.labels | _labels_of(record))
        return self._stay(wish, incarnation=record.incarnation + 1)

    def reopen(self, path: str, model: Model | str | None) -> PersistentSubagent:
        """Make another incarnation of an agent from its record. Its rights are decided on anew.

        Raises as `one_off`, and ConfigError where there is no record, or it lives.
        """
        record = self._records.find(path)
        if record is None:
            known = [item.path for item in self._records.agents()]
            raise ConfigError(
                f"there is no record of an agent {path!r}",
                code="E-AGENT-RECORD",
                fix=did_you_mean(path, known),
            )
        return self._stay(wish_of(record, model), incarnation=record.incarnation + 1)

    def _stay(self, wish: AgentWish, *, incarnation: int) -> PersistentSubagent:
        staying = partial(
            PersistentSubagent,
            records=self._records,
            incarnation=incarnation,
            on_reopen=partial(self.reopen, wish.name, wish.model),
        )
        made = self._made(wish, staying)
        made.begin()
        return self._take_in(made)

    def _take_in(self, made: SubagentT) -> SubagentT:
        self._family.add(made)
        # what somebody allowed an earlier agent of this path was not allowed this one
        self._home.desk.forget(made.id)
        if made.outfit is not None:
            self._audit.append("snapshot_admitted", made.outfit.admitted(made.id))
        return made

    def _made(self, wish: AgentWish, kind: Callable[..., SubagentT]) -> SubagentT:
        """Return an agent of this kind. Nothing is set aside for it if this raises."""
        parent = wish.parent
        agent = self._family.place(wish.name, parent, own=wish.own)
        role = wish.role or wish.name
        grant = wish.grant or _NO_GRANT
        wanted = wish.budget or OPEN_BUDGET
        above = parent.lineage if parent is not None else ()
        now = self._now()
        purse = self._meter if parent is None else parent.purse
        cell = agent_cell(
            self._home.ledger,
            agent,
            parent.acting if parent is not None else self._session_cell,
            now + wish.lease_seconds,
        )
        try:
            outfit = self._outfit_of(agent, role, grant, above)
            _refuse_broke(agent, purse, now)
        except BaseException:
            # an agent that was never made leaves nothing in the ledger
            self._home.ledger.revoke(cell, DenyReason.AGENT_CLOSED)
            raise
        blind = parent is not None and parent.outfit is None
        # an agent of the program has what the program says; one that agents make shares with them
        meter = purse.child(wanted.or_else(DEFAULT_BUDGET) if parent is None else wanted, now)
        if parent is not None:
            purse.lend(meter)
        return kind(
            id=agent,
            role=role,
            model=wish.model,
            grant=grant,
            budget=wanted,
            preamble=wish.preamble,
            outfit=None if blind else outfit,
            cell=cell,
            home=self._home,
            meter=meter,
            above=above,
            through=wish.through,
            standing=Standing(parent.standing if parent is not None else None, wish.labels),
        )

    def _in_background(self, work: BackgroundWork) -> None:
        if self._group is None:
            raise ConfigError(
                "the session does not run: nothing can be started in it",
                code="E-SESSION-OVER",
                fix="start agents inside of its `async with` block",
            )
        self._group.start_soon(work)


def wish_of(record: AgentRecord, model: Model | str | None) -> AgentWish:
    """Return what an agent on record was to be. Raises ConfigError if no model can be made of it."""
    detail = record.detail
    given = dict(cast("Mapping[str, object]", detail["grant"]))
    pins = cast("list[Mapping[str, str]]", given.pop("pins", []))
    grant = cast("Mapping[str, list[str]]", given)
    budget = cast("Mapping[str, int | None]", detail["budget"])
    return AgentWish(
        name=record.path,
        model=model_of(str(detail["model"]) if model is None else model),
        role=str(detail["role"]),
        own=record.path == PARENT,
        preamble=str(detail.get("preamble", "")),
        grant=Grant(
            tools=grant["tools"],
            delegate=grant["delegate"],
            resources=grant["resources"],
            prompts=grant["prompts"],
            pins=tuple(Pin(**pin) for pin in pins),
        ),
        labels=_labels_of(record),
        budget=Budget(**budget),
    )


def _labels_of(record: AgentRecord) -> frozenset[Label]:
    labels = cast("list[list[str]]", record.detail.get("labels", []))
    return frozenset(Label(name, server) for name, server in labels)


def _refuse_broke(agent: AgentId, purse: Meter, now: float) -> None:
    spent = purse.exhausted(now)
    if spent is not None:
        raise AuthorityError(
            f"agent {agent!r} cannot start: {spent.error().message}",
            reason=DenyReason.BUDGET_SPENT,
        )
