"""The work of one task in a session's task group. Whatever goes wrong in it, whoever waits is told, and others go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from orchestrator.agents.lifecycle import TaskStep
from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.tasks import Task

__all__ = ["Background", "BackgroundWork", "stopped"]

T = TypeVar("T")

BackgroundWork = Callable[[], Coroutine[Any, Any, None]]
"""What a session runs in its task group; it raises nothing."""


@dataclass(frozen=True, slots=True)
class Background(Generic[T]):
    """A task with the work that it is, for a task group: nothing that goes wrong in it ends others."""

    task: Task[T]
    work: Callable[[Task[T]], Awaitable[AgentResult]]
    over: Callable[[], None]
    """Done when the work is, before anybody is told; also where there was nothing to do any more."""

    async def run(self) -> None:
        """Do the work, and settle the task whatever happens."""
        task = self.task
        if task.is_over:  # it was given up before it began
            self._ended()
            return
        result: AgentResult | None = None
        fault: Exception | None = None
        try:
            task.step(TaskStep.BEGIN)
            result = await self.work(task)
        except Exception as error:  # noqa: BLE001 - whoever waits for the task is told
            fault = error
        finally:
            fault = fault or self._ended()
            if fault is not None:
                task.break_off(fault)
            else:  # without a result it was cancelled from outside: the session ends
                task.settle(result or stopped(task.agent))

    def _ended(self) -> Exception | None:
        """Do what is to be done, and return what went wrong in that: whoever waits is told all the same."""
        try:
            self.over()
        except Exception as error:  # noqa: BLE001 - a record that cannot be kept, and whatever else
            return error
        return None


def stopped(agent: AgentId) -> AgentResult:
    """Return the result of an agent whose session ended under it."""
    error = AuthorityError(
        f"agent {agent!r} was stopped: session closed", reason=DenyReason.SESSION_CLOSED
    )
    return AgentResult(agent=agent, status=RunStatus.CANCELLED, error=error)
