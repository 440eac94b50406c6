"""Subagents: their cell, their snapshot, their budget, and one run of them. They decide nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeVar, cast, overload

import anyio
import anyio.lowlevel

from orchestrator.agents.budget import Budget, Meter, MeterReading, Price, price_of
from orchestrator.agents.loop import run_agent
from orchestrator.agents.mailbox import Mailbox, no_mail
from orchestrator.agents.model import AgentTask, Earlier, Model, TurnKeeper
from orchestrator.agents.results import AgentResult
from orchestrator.agents.shelf import Shelf
from orchestrator.agents.structured import AnswerShape, answer_shape, any_answer
from orchestrator.agents.view import View
from orchestrator.authority.admission import Ancestor, Grant
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.authority.snapshot import CapabilitySnapshot, CapabilityTable
from orchestrator.authority.standing import Standing
from orchestrator.broker import AgentView
from orchestrator.catalog.toolbox import Toolbox
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.making import maker
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.asks import AskDesk
from orchestrator.sessions.deadlines import Deadlines
from orchestrator.sessions.lanes import Road
from orchestrator.sessions.outfits import Outfit
from orchestrator.sessions.ports import SessionPorts
from orchestrator.sessions.task_work import Background, BackgroundWork
from orchestrator.sessions.tasks import Task, TaskOrder

__all__ = [
    "AgentFlight",
    "AgentHome",
    "OneOffSubagent",
    "Subagent",
    "agent_cell",
]

T = TypeVar("T")

_new_task: Final = maker(AgentTask)


class AgentFlight:
    """An agent at work: when its cell dies, its task is cancelled, model request and all."""

    __slots__ = ("_cell", "_scope")

    def __init__(self, *, cell: Cell) -> None:
        self._cell = cell
        self._scope: anyio.CancelScope | None = None

    def take(self, scope: anyio.CancelScope) -> None:
        """Take the scope of its task."""
        self._scope = scope
        if self._cell.reason is not None:  # it ended before it began
            scope.cancel()

    def lapsed(self) -> DenyReason | None:
        """Return why the agent may not go on; None if it may."""
        return self._cell.reason

    def interrupt(self, reason: DenyReason) -> None:
        """Cancel the agent's task."""
        if self._scope is not None:
            self._scope.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHome:
    """What a session has for all of its agents. `in_background` starts a task of the session's."""

    ledger: Ledger
    road: Road
    ports: SessionPorts
    limits: OrchestratorLimits
    prices: Mapping[str, Price]
    desk: AskDesk
    deadlines: Deadlines
    in_background: Callable[[BackgroundWork], None]


def _no_shelf() -> Shelf | None:
    return None


@dataclass(kw_only=True, slots=True)
class Subagent:
    """A child that acts. Made by a session; holds no client.

    `id` is its path below the session. It has its turns from `model`; `role`, `grant` and `budget` are
    what it was made with, and `preamble` stands before the prompt of each task. Its view is admitted
    when it is made, with its `outfit`: what is added later is never in it (I7). `above` are the agents
    that it descends from. `meter` counts what it and all below it spend.
    `through` wraps its view while it works, to keep what it is answered; it widens nothing, since each
    call that it passes on takes the whole road. `standing` is what it carries and has used, `turns`
    keeps what its model says.
    """

    stays: ClassVar[bool] = False
    """Whether it has one task after the other, for as long as nobody ends it."""

    id: AgentId
    role: str
    model: Model
    grant: Grant
    budget: Budget
    preamble: str
    outfit: Outfit | None
    cell: Cell
    home: AgentHome
    meter: Meter
    above: tuple[Ancestor, ...] = ()
    # made by a factory: a subclass without slots would not set a plain default
    _shelf: Shelf | None = field(default_factory=_no_shelf, init=False)
    through: Callable[[AgentView], View] | None = None
    standing: Standing = field(default_factory=Standing)
    turns: TurnKeeper | None = None

    @property
    def table(self) -> CapabilityTable | None:
        """What it may reach; None if nothing was admitted."""
        return None if self.outfit is None else self.outfit.table

    @property
    def snapshot(self) -> CapabilitySnapshot | None:
        """The agent's frozen view; None if none was admitted, and then it reaches nothing."""
        if self.outfit is None:
            return None
        return CapabilitySnapshot(agent=self.id, cell=self.acting, table=self.outfit.table)

    @property
    def lineage(self) -> tuple[Ancestor, ...]:
        """The agents that its own children would descend from, itself the last."""
        table = self.table
        if table is None:  # its children reach as little as it does
            return self.above
        return (*self.above, Ancestor(table.principal, self.grant, table.policy))

    @property
    def shelf(self) -> Shelf:
        """What of its results was too long for a request."""
        if self._shelf is None:
            self._shelf = Shelf()
        return self._shelf

    @property
    def acting(self) -> Cell:
        """What it acts under now, and its children with it: itself, or the task that it is at."""
        return self.cell

    @property
    def purse(self) -> Meter:
        """What its children, and what servers want in its calls, are paid from now."""
        return self.meter

    @property
    def view(self) -> AgentView:
        """The agent's side of the broker."""
        return self._view(None)

    def _view(self, toolbox: Toolbox | None) -> AgentView:
        return AgentView(
            self.id, self.acting, self.snapshot, self.home.road, self.standing, toolbox, self.cell
        )

    def give_back(self) -> None:
        """Return what it has not spent to whoever that came from. Idempotent."""
        self.meter.hand_back()

    def cancel(self) -> None:
        """Take the agent's authority back and stop it, and all below it."""
        self._take_back(self.cell, DenyReason.AGENT_CANCELLED)

    def close(self) -> None:
        """End its authority; what it started ends with it. Idempotent."""
        self._take_back(self.cell, DenyReason.AGENT_CLOSED)

    def _take_back(self, cell: Cell, reason: DenyReason) -> None:
        flip = self.home.ledger.revoke(cell, reason)
        # of one that is closed when it is done its end says all
        if flip.flights or (flip.cells and reason is not DenyReason.AGENT_CLOSED):
            self.home.ports.audit.append("revoked", flip.record)

    def check_budget(self) -> None:
        """Raise ConfigError if it has a budget in money, and its model's price is not known."""
        price_of(self.model, self.meter.budget, self.home.prices)

    def work(
        self,
        prompt: str,
        inputs: Mapping[str, object],
        shape: AnswerShape[object],
        *,
        meter: Meter,
        mail: Mailbox | None,
        history: tuple[Earlier, ...] = (),
    ) -> Coroutine[Any, Any, AgentResult]:
        """Run once; awaited, return what became of it, whatever stopped it; the true cause is in it.

        A cancellation from outside goes on. No frame of its own waits: each costs an agent that is
        parked a third of a kilobyte.
        """
        home, outfit, ports = self.home, self.outfit, self.home.ports
        self.standing.spending = MeterReading(meter, ports.clock.now)  # policies see it
        view = self._view(None if outfit is None else outfit.toolbox)
        return run_agent(
            self.model,
            view if self.through is None else self.through(view),
            _new_task(
                agent=self.id,
                prompt=f"{self.preamble}\n\n{prompt}" if self.preamble else prompt,
                inputs=inputs,
                history=history,
                mail=no_mail if mail is None else mail.take,
                shelf=self.shelf if outfit is not None and outfit.reads_on else None,
                stays=self.stays,
                turns=self.turns,
            ),
            meter.budget,
            clock=ports.clock,
            telemetry=ports.telemetry,
            audit=ports.audit,
            emit=ports.emit,
            gate=view.require,
            limits=home.limits,
            prices=home.prices,
            meter=meter,
            shape=shape,
            tether=_WorkFlight(self, view.cell),
        )

    def keep_lease(self) -> None:
        """Take its authority back if its lease is over."""
        if self.home.ports.clock.now() >= self.cell.lease_until:
            self._take_back(self.cell, DenyReason.LEASE_OVER)

    def after_work(self) -> None:
        """Do what is to be done when a run has ended, however it has."""
        if self.standing.above is not None:  # what it has seen comes back with its result
            self.standing.above.add(self.standing.labels)


class _WorkFlight(AgentFlight):
    """One run of an agent, from its first step to its last."""

    __slots__ = ("_agent", "_leased", "_seconds")

    def __init__(self, agent: Subagent, cell: Cell) -> None:
        self._cell = cell
        self._scope = None
        self._agent = agent
        self._seconds = math.inf
        self._leased = False

    def scope(self, seconds: float) -> anyio.CancelScope:
        """Return the scope of its task: from now on the agent is at work, for as long as its lease."""
        agent = self._agent
        home = agent.home
        scope = home.deadlines.scope()
        home.ledger.depart(self, self._cell)
        if agent.cell.lease_until < math.inf:
            left = max(0.0, agent.cell.lease_until - home.ports.clock.now())
            if left < seconds:
                seconds, self._leased = left, True
        if seconds < math.inf:
            self._seconds = seconds
            if not home.deadlines.watch(self, seconds):
                scope.deadline = anyio.current_time() + seconds
        self.take(scope)
        return scope

    def run_out(self) -> None:
        """Stop: its time is over, or its lease."""
        if self._scope is not None:
            self._scope.cancel()

    def late(self) -> bool:
        """Return whether its own time was over: it may go on, and no lease has stopped it."""
        return self._cell.reason is None and not self._leased

    def end(self, result: AgentResult) -> AgentResult:
        """Note that it is over, and return the result with the true cause in it."""
        agent = self._agent
        try:
            agent.keep_lease()
            reason = self._cell.reason
        finally:
            agent.home.ledger.arrive(self)
            agent.home.deadlines.forget(self, self._seconds)
            agent.after_work()
        if result.status is not RunStatus.CANCELLED or result.error is not None:
            return result
        cause = reason or DenyReason.AGENT_CANCELLED
        error = AuthorityError(
            f"agent {result.agent!r} was stopped: {cause.value.replace('_', ' ')}", reason=cause
        )
        return replace(result, error=error)


@dataclass(kw_only=True, slots=True)
class OneOffSubagent(Subagent):
    """A child that works once: `run` waits for it, `start` does not."""

    _started: bool = field(default=False, init=False)

    def run(
        self,
        prompt: str,
        inputs: Mapping[str, object] | None = None,
        *,
        mail: Mailbox | None = None,
        history: tuple[Earlier, ...] = (),
    ) -> Coroutine[Any, Any, AgentResult]:
        """Work until there is an answer; awaited, return what became of it. Then its authority ends.

        `inputs` are handed over as untrusted; what comes into `mail` is read before the next turn;
        `history` is told to its model as its own earlier words. An agent that is cancelled, or whose parent ends,
        returns a result with status CANCELLED and the true cause.

        Raises:
            ConfigError: it was started before, or its budget cannot be kept.
        """
        self._start_once()
        try:
            return self.work(
                prompt, inputs or {}, any_answer, meter=self.meter, mail=mail, history=history
            )
        except BaseException:  # it cannot even begin
            self._over()
            raise

    @overload
    async def start(
        self, prompt: str, *, inputs: Mapping[str, object] | None = None, returns: None = None
    ) -> Task[object]: ...

    @overload
    async def start(
        self, prompt: str, *, inputs: Mapping[str, object] | None = None, returns: type[T]
    ) -> Task[T]: ...

    @overload
    async def start(
        self,
        prompt: str,
        *,
        inputs: Mapping[str, object] | None = None,
        returns: Mapping[str, object],
    ) -> Task[object]: ...

    async def start(
        self,
        prompt: str,
        *,
        inputs: Mapping[str, object] | None = None,
        returns: type[T] | Mapping[str, object] | None = None,
    ) -> Task[Any]:
        """Work in the background, and return the task at once.

        `returns` is what the answer has to be: a type that pydantic knows, or a JSON Schema.

        Raises:
            ConfigError: it was started before, its budget cannot be kept, no answer can be of this
                type, or the session does not run.
        """
        order = TaskOrder(prompt=prompt, inputs=inputs or {}, shape=shape_of(returns))
        self.check_budget()
        self._start_once()
        task: Task[Any] = Task(
            number=1, agent=self.id, order=order, desk=self.home.desk, on_change=_unheard
        )
        task.enter(self.cancel)
        self.home.in_background(Background(task, self._in_task, self._over).run)
        await anyio.lowlevel.checkpoint()
        return task

    def _in_task(self, task: Task[Any]) -> Coroutine[Any, Any, AgentResult]:
        order = task.order
        return self.work(order.prompt, order.inputs, order.shape, meter=self.meter, mail=task.mail)

    def after_work(self) -> None:
        """Do what is to be done when its run has ended: its authority ends with it."""
        try:
            Subagent.after_work(self)
        finally:
            self._over()

    def _over(self) -> None:
        self.close()
        self.give_back()
        self.home.desk.forget(self.id)

    def _start_once(self) -> None:
        if self._started:
            raise ConfigError(
                f"agent {self.id!r} works once, and has", code="E-AGENT-STARTED", fix="make another"
            )
        self._started = True


def shape_of(returns: type[Any] | Mapping[str, object] | None) -> AnswerShape[object]:
    """Return the shape of what was asked for. Raises ConfigError if no answer can be of it."""
    return any_answer if returns is None else cast("AnswerShape[object]", answer_shape(returns))


def agent_cell(ledger: Ledger, agent: AgentId, under: Cell, lease_until: float = math.inf) -> Cell:
    """Open the cell of an agent. Raises AuthorityError if what it stands under has ended."""
    return ledger.open(CellKind.AGENT, agent, under=under, lease_until=lease_until)


def _unheard(task: Task[Any]) -> None:
    """Keep no record: an agent that works once has none."""
