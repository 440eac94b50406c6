"""One task of an agent: how far it is, what it asks, and its answer. Runs nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

import anyio

from orchestrator.agents.lifecycle import TASK_ENDS, TaskState, TaskStep, task_after
from orchestrator.agents.mailbox import Mailbox, Message
from orchestrator.agents.results import AgentResult
from orchestrator.agents.structured import AnswerShape
from orchestrator.core.content import AUTHORITY, TRUST
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason, RemitError
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.asks import AskDesk, AskStream

__all__ = ["Answer", "Task", "TaskFailedError", "TaskOrder"]

T = TypeVar("T")

_STEPS: Final = {RunStatus.OK: TaskStep.SUCCEED, RunStatus.CANCELLED: TaskStep.STOP}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Generic[T]):
    """What an agent answered: typed, and as untrusted as all that it has read.

    `sources` are the `server/tool` whose results it was handed; `result` says what it spent.
    """

    value: T
    agent: AgentId
    sources: tuple[str, ...]
    result: AgentResult
    trust: str = TRUST
    authority: str = AUTHORITY


class TaskFailedError(RemitError):
    """A task that has no answer. `result` says how it ended; `result.answer` is what there was."""

    def __init__(self, result: AgentResult) -> None:
        cause = result.error
        super().__init__(
            cause.message if cause is not None else f"agent {result.agent!r} has no answer",
            code=cause.code if cause is not None else "E-TASK-FAILED",
            why=cause.why if cause is not None else "",
            fix=cause.fix if cause is not None else "",
        )
        self.result = result


@dataclass(kw_only=True, slots=True)
class TaskOrder:
    """What a task is: what was asked for, of whom, within what."""

    prompt: str
    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    shape: AnswerShape[object]


class Task(Generic[T]):
    """One piece of work of one agent, in the background. Made by `start`.

    Attributes:
        number: which of the agent's tasks it is, from 1.
        agent: whose it is.
        order: what was asked for.
        mail: messages that the agent has not read yet.
    """

    __slots__ = (
        "_attended",
        "_desk",
        "_ended",
        "_fault",
        "_listened",
        "_on_change",
        "_over",
        "_result",
        "_state",
        "_take_back",
        "agent",
        "mail",
        "number",
        "order",
    )

    def __init__(
        self,
        *,
        number: int,
        agent: AgentId,
        order: TaskOrder,
        desk: AskDesk,
        on_change: Callable[[Task[T]], None],
        mail: Mailbox | None = None,
        state: TaskState = TaskState.QUEUED,
    ) -> None:
        self.number = number
        self.agent = agent
        self.order = order
        self.mail = Mailbox() if mail is None else mail
        self._desk = desk
        self._on_change = on_change
        self._state = state
        self._result: AgentResult | None = None
        self._fault: Exception | None = None
        self._take_back: Callable[[], None] | None = None
        self._over = False
        self._ended: anyio.Event | None = None
        self._listened = False
        self._attended = False
        if state is TaskState.QUEUED:
            self._attend()

    @property
    def state(self) -> TaskState:
        """How far it is."""
        return self._state

    @property
    def asking(self) -> bool:
        """True while it waits for a person."""
        below = f"{self.agent}/"
        return any(
            ask.agent == self.agent or ask.agent.startswith(below) for ask in self._desk.open
        )

    def asks(self) -> AskStream:
        """Go through what it and the agents below it ask people, until the task is over."""
        self._listened = True
        return AskStream(self._desk, self.agent, lambda: self._over)

    async def wait(self) -> AgentResult:
        """Return what became of it, good or bad. Where nobody listens to its asks, they are refused.

        An interrupted task is waited for: somebody may resume it.
        """
        if not self._listened:
            self._leave()
        if self._ended is None:  # made for who waits: most tasks of a crowd have nobody yet
            self._ended = anyio.Event()
            if self._over:
                self._ended.set()
        await self._ended.wait()
        if self._fault is not None:
            raise self._fault
        if self._result is None:
            return _cancelled(self.agent)
        return self._result

    async def result(self) -> Answer[T]:
        """Return its answer. Raises TaskFailedError, with what there is, if it has none."""
        result = await self.wait()
        if result.status is not RunStatus.OK:
            raise TaskFailedError(result)
        value = cast("T", self.order.shape.read(result.answer))
        return Answer(value=value, agent=self.agent, sources=result.sources, result=result)

    def send(self, text: str) -> None:
        """Write to the agent: it reads before its next turn. Raises ConfigError if it is over."""
        if self._state in TASK_ENDS:
            raise ConfigError(
                f"the task is over ({self._state.value}): nobody reads the message",
                code="E-TASK-OVER",
                fix="start another task",
            )
        self.mail.put(Message(text=text))

    def cancel(self) -> None:
        """Give it up for good. An answer that comes later is dropped. Idempotent."""
        if self._state in TASK_ENDS:
            return
        self.step(TaskStep.CANCEL)
        self._end(_cancelled(self.agent))
        self._stop()

    def interrupt(self) -> None:
        """Stop it, so that it can be resumed. Raises ConfigError if it is over."""
        self.step(TaskStep.INTERRUPT)
        self._stop()

    # ------------------------------------------------------- for whoever runs it

    def step(self, step: TaskStep) -> None:
        """Take a step of the table. Raises ConfigError where there is none."""
        before = self._state
        self._state = task_after(before, step)
        if step is TaskStep.RESUME:
            self._over, self._ended, self._result, self._fault = False, None, None, None
            self._attend()
        if self._state is not before:
            self._on_change(self)

    def enter(self, take_back: Callable[[], None]) -> None:
        """Note what takes back the authority that it works under: that stops it, and all below it."""
        self._take_back = take_back

    def settle(self, result: AgentResult) -> None:
        """Note how the run ended. A task that was given up or interrupted stays so."""
        self._take_back = None
        self.step(_STEPS.get(result.status, TaskStep.FAIL))
        if self._state in TASK_ENDS:
            self._end(result)

    def suspend(self, result: AgentResult) -> None:
        """Note that its agent ended under it: it can be resumed by the agent's next incarnation."""
        self._take_back = None
        if self._state is not TaskState.INTERRUPTED:
            self.step(TaskStep.INTERRUPT)
        self._end(result)

    def restore(self, result: AgentResult | None) -> None:
        """Take up what is on record: what was not over when its process ended was interrupted."""
        if self._state in (TaskState.QUEUED, TaskState.RUNNING):
            self.step(TaskStep.INTERRUPT)
        if self._state in TASK_ENDS:
            self._end(result)
        self._leave()

    def break_off(self, fault: Exception) -> None:
        """Note a mistake of this program, which whoever waits for the task is told."""
        self._take_back = None
        self._fault = fault
        self.step(TaskStep.FAIL)
        self._end(None)

    @property
    def is_over(self) -> bool:
        """True if whoever waits for it is told."""
        return self._over

    @property
    def outcome(self) -> AgentResult | None:
        """How it ended; None while it has not."""
        return self._result

    def _end(self, result: AgentResult | None) -> None:
        if self._over:
            return
        self._result = result
        self._over = True
        if self._ended is not None:
            self._ended.set()
        self._leave()
        self._on_change(self)

    def _attend(self) -> None:
        if not self._attended:
            self._attended = True
            self._desk.attend(self.agent)

    def _leave(self) -> None:
        if self._attended:
            self._attended = False
            self._desk.leave(self.agent)
        self._desk.tell()

    def _stop(self) -> None:
        if self._take_back is not None:
            self._take_back()


def _cancelled(agent: AgentId) -> AgentResult:
    error = AuthorityError(
        f"the task of agent {agent!r} was cancelled", reason=DenyReason.AGENT_CANCELLED
    )
    return AgentResult(agent=agent, status=RunStatus.CANCELLED, error=error)
