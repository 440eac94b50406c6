"""A subagent that stays: task after task, with a memory of the earlier ones and a record of each.

Its authority ends with its session like anybody's. What stays is the record; whoever is made from it
again is another incarnation, decided on anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Final, TypeVar, cast, overload

import anyio.lowlevel

from orchestrator.agents.answers import plain_answer
from orchestrator.agents.budget import Meter
from orchestrator.agents.lifecycle import (
    AgentState,
    AgentStep,
    TaskState,
    TaskStep,
    agent_after,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.mailbox import Mailbox, Message
from orchestrator.agents.model import Earlier
from orchestrator.agents.results import AgentResult
from orchestrator.agents.structured import AnswerShape, answer_shape, any_answer
from orchestrator.authority.ledger import Cell
from orchestrator.core.errors import ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.agents import Subagent, agent_cell, shape_of
from orchestrator.sessions.records import AgentRecord, AgentRecords, TaskRecord
from orchestrator.sessions.task_work import stopped
from orchestrator.sessions.tasks import Task, TaskOrder

__all__ = ["PersistentSubagent"]

T = TypeVar("T")

_BOUNDS: Final = AgentLimits()
_RESUMED: Final = (
    "This task was begun before and interrupted. Calls of the first attempt may have been made: "
    "look before you repeat one that changes something."
)


@dataclass(kw_only=True)
class PersistentSubagent(Subagent):
    """A child that lives until it is closed. Made by a session's `persistent` and `reopen`.

    Tasks are done one after the other, in the order in which they came. What it has answered before
    is told to its model with the next task. `incarnation` counts how often it was made.
    """

    stays: ClassVar[bool] = True

    records: AgentRecords
    incarnation: int
    on_reopen: Callable[[], PersistentSubagent]
    bounds: AgentLimits = _BOUNDS
    _state: AgentState = field(default=AgentState.IDLE, init=False)
    _tasks: dict[int, Task[Any]] = field(default_factory=dict[int, Task[Any]], init=False)
    _queue: deque[Task[Any]] = field(default_factory=deque[Task[Any]], init=False)
    _mail: Mailbox = field(default_factory=Mailbox, init=False)
    _number: int = field(default=0, init=False)
    _task_cell: Cell | None = field(default=None, init=False)
    _task_meter: Meter | None = field(default=None, init=False)

    @property
    def state(self) -> AgentState:
        """How far it is."""
        return self._state

    @property
    def acting(self) -> Cell:
        """What it acts under now: the task that it is at, which can be stopped alone."""
        return self.cell if self._task_cell is None else self._task_cell

    @property
    def purse(self) -> Meter:
        """The meter of the task that it is at: all that is left of its budget is set aside in it."""
        return self.meter if self._task_meter is None else self._task_meter

    @property
    def tasks(self) -> tuple[Task[Any], ...]:
        """Its tasks, the oldest first, those of earlier incarnations included."""
        return tuple(self._tasks.values())

    # ------------------------------------------------------------------------------- work

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
        """Put a task behind the others, and return it at once.

        Raises:
            ConfigError: it is closed, it has too many tasks waiting, its budget cannot be kept, no
                answer can be of this type, the record cannot be kept, or the session is over.
        """
        plain = plain_answer(
            dict(inputs or {}),
            bytes_max=self.bounds.answer_bytes_max,
            depth_max=self.bounds.answer_depth_max,
        )
        order = TaskOrder(
            prompt=prompt, inputs=cast("dict[str, object]", plain), shape=shape_of(returns)
        )
        self._refuse_closed()
        self.check_budget()
        if len(self._queue) >= self.bounds.tasks_queued_max:
            raise ConfigError(
                f"agent {self.id!r} has {len(self._queue)} tasks waiting",
                code="E-AGENT-INBOX",
                fix="wait until some are done, or cancel them",
            )
        self._number += 1
        task = self._task(self._number, order)
        self._enqueue(task)
        self._tasks[task.number] = task
        self._keep(task)
        await anyio.lowlevel.checkpoint()
        return task

    async def run(self, prompt: str, inputs: Mapping[str, object] | None = None) -> AgentResult:
        """Do a task in the foreground, and return what became of it. Raises as `start` does."""
        return await (await self.start(prompt, inputs=inputs)).wait()

    def send(self, text: str) -> None:
        """Write to it: it reads before its next turn, in this task or in the next one.

        Raises ConfigError if it is closed, or has not read many others.
        """
        self._refuse_closed()
        self._mail.put(Message(text=text))

    def interrupt(self) -> None:
        """Stop the task at work, so that it can be resumed; what waits behind it goes on.

        Raises ConfigError if it does nothing.
        """
        for task in self._tasks.values():
            if task.state is TaskState.RUNNING:
                task.interrupt()
                return
        raise ConfigError(f"agent {self.id!r} has nothing to interrupt", code="E-AGENT-STATE")

    async def resume(self) -> tuple[Task[Any], ...]:
        """Go on with every task that was interrupted, the oldest first, and return them.

        A resumed task begins again, and its model is told so. Raises ConfigError if it is closed.
        """
        self._refuse_closed()
        self.check_budget()
        found = tuple(task for task in self._tasks.values() if task.state is TaskState.INTERRUPTED)
        for task in found:
            task.order = replace(task.order, inputs={**task.order.inputs, "resumed": _RESUMED})
            task.step(TaskStep.RESUME)
            self._enqueue(task)
        await anyio.lowlevel.checkpoint()
        return found

    # -------------------------------------------------------------------------------- end

    def close(self) -> None:
        """End it in order: its authority is gone, what it has not done can be resumed. Idempotent."""
        self._end(AgentStep.CLOSE)
        super().close()
        self._suspend_waiting()

    def cancel(self) -> None:
        """End it by force: all its tasks are given up for good, with all below it. Idempotent."""
        self._end(AgentStep.CANCEL)
        super().cancel()
        for task in self._tasks.values():
            task.cancel()
        self._queue.clear()

    def reopen(self) -> PersistentSubagent:
        """Return another incarnation, under today's policy, pins and approvals.

        Raises ConfigError if this one lives, AuthorityError if the session has ended.
        """
        if self.cell.reason is None:
            raise ConfigError(f"agent {self.id!r} is not closed", code="E-AGENT-STATE")
        return self.on_reopen()

    # --------------------------------------------------------------- for whoever makes it

    def begin(self) -> None:
        """Take up what is on record. What was at work when its process ended was interrupted."""
        for record in self.records.tasks(self.id):
            task = self._task(record.number, _order_of(record), state=record.state)
            self._number = max(self._number, task.number)
            self._tasks[task.number] = task
            task.restore(_result_of(self.id, record))
        self._save()

    def _task(
        self, number: int, order: TaskOrder, state: TaskState = TaskState.QUEUED
    ) -> Task[Any]:
        return Task(
            number=number,
            agent=self.id,
            order=order,
            desk=self.home.desk,
            on_change=self._changed,
            mail=self._mail,
            state=state,
        )

    def _enqueue(self, task: Task[Any]) -> None:
        if self._state is AgentState.IDLE:
            self.home.in_background(self._work_off)
            self._step(AgentStep.BEGIN)
        self._queue.append(task)

    async def _work_off(self) -> None:
        """Do what waits, until nothing does, or its authority has ended."""
        try:
            while self._queue and self.cell.reason is None:
                await self._do(self._queue.popleft())
        finally:
            if self.cell.reason is not None and self._state is AgentState.WORKING:
                self._end(AgentStep.CLOSE)
            self._suspend_waiting()
            self._step(AgentStep.REST)

    async def _do(self, task: Task[Any]) -> None:
        if task.state is not TaskState.QUEUED:  # cancelled or interrupted while it waited
            return
        now = self.home.ports.clock.now()
        self.meter.begin(started=now, price=None)  # its time is that of one task
        self._task_meter = meter = self.meter.child(self.meter.remaining(now), now)
        result: AgentResult | None = None
        # A cell for each task: to stop one is to take back what it and its children act under.
        self._task_cell = cell = agent_cell(self.home.ledger, self.id, self.cell)
        task.enter(partial(self._take_back, cell, DenyReason.AGENT_CANCELLED))
        try:
            task.step(TaskStep.BEGIN)
            result = await self.work(
                task.order.prompt,
                task.order.inputs,
                task.order.shape,
                meter=meter,
                mail=self._mail,
                history=self._history(),
            )
        except Exception as error:  # noqa: BLE001 - whoever waits for the task is told
            task.break_off(error)
        else:
            self._settle(task, result)
        finally:
            if result is None and not task.is_over:  # the session ends under it
                self._settle(task, stopped(self.id))
            self._task_cell = self._task_meter = None
            self._take_back(cell, DenyReason.AGENT_CLOSED)
            meter.hand_back()

    def _settle(self, task: Task[Any], result: AgentResult) -> None:
        """Note how a task ended; what only ended with its agent can be resumed."""
        if result.status is RunStatus.CANCELLED and self.cell.reason is not None:
            if self.cell.reason is DenyReason.AGENT_CANCELLED:
                task.settle(result)
            else:
                task.suspend(result)
        else:
            task.settle(result)

    def _history(self) -> tuple[Earlier, ...]:
        done = [task for task in self._tasks.values() if task.state is TaskState.DONE]
        return tuple(
            Earlier(prompt=task.order.prompt, answer=task.outcome.answer)
            for task in done[-self.bounds.history_tasks_max :]
            if task.outcome is not None
        )

    def _suspend_waiting(self) -> None:
        if self.cell.reason is None:
            return
        waiting, self._queue = self._queue, deque()
        for task in waiting:
            if task.state is TaskState.QUEUED:
                task.suspend(stopped(self.id))

    def _refuse_closed(self) -> None:
        if self.cell.reason is not None or self._state in (
            AgentState.CLOSED,
            AgentState.CANCELLED,
        ):
            raise ConfigError(
                f"agent {self.id!r} has ended",
                code="E-AGENT-STATE",
                fix="reopen it: what it may do is decided on anew then",
            )

    def _end(self, step: AgentStep) -> None:
        self._step(step)
        self.give_back()
        self.home.desk.forget(self.id)

    def _step(self, step: AgentStep) -> None:
        before = self._state
        self._state = agent_after(before, step)
        if self._state is not before:
            # What was done is done, whether or not it can be written down.
            with suppress(ConfigError):
                self._save()

    def _save(self) -> None:
        detail: dict[str, object] = {
            "role": self.role,
            "preamble": self.preamble,
            "model": f"{self.model.provider}:{self.model.name}",
            "grant": {**_as_json(self.grant), "pins": [_as_json(pin) for pin in self.grant.pins]},
            "labels": [[label.name, label.server] for label in sorted(self.standing.labels)],
            "budget": _as_json(self.budget),
        }
        record = AgentRecord(
            path=self.id, state=self._state, incarnation=self.incarnation, detail=detail
        )
        self.records.save_agent(record, at=self.home.ports.clock.wall())

    def _changed(self, task: Task[Any]) -> None:
        with suppress(ConfigError):
            # what clings to the agent is on record before what it has read is
            self._save()
            self._keep(task)

    def _keep(self, task: Task[Any]) -> None:
        order, result = task.order, task.outcome
        detail: dict[str, object] = {
            "prompt": order.prompt,
            "inputs": dict(order.inputs),
            "schema": dict(order.shape.schema) if order.shape.schema is not None else None,
        }
        if result is not None:
            detail["status"] = result.status.value
            detail["answer"] = result.answer
            detail["sources"] = list(result.sources)
        self.records.save_task(
            self.id, TaskRecord(number=task.number, state=task.state, detail=detail)
        )


def _as_json(value: object) -> dict[str, object]:
    slots = cast("tuple[str, ...]", getattr(type(value), "__slots__", ()))
    return {name: getattr(value, name) for name in slots}


def _order_of(record: TaskRecord) -> TaskOrder:
    detail = record.detail
    schema, inputs = detail.get("schema"), detail.get("inputs")
    shape: AnswerShape[object] = any_answer
    if isinstance(schema, Mapping):
        shape = answer_shape(cast("Mapping[str, object]", schema))
    return TaskOrder(
        prompt=str(detail.get("prompt", "")),
        inputs=dict(cast("Mapping[str, object]", inputs)) if isinstance(inputs, Mapping) else {},
        shape=shape,
    )


def _result_of(agent: AgentId, record: TaskRecord) -> AgentResult | None:
    status = record.detail.get("status")
    if not isinstance(status, str):
        return None
    return AgentResult(agent=agent, status=RunStatus(status), answer=record.detail.get("answer"))
