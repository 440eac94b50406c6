"""How far a task and a persistent agent are: two tables. What is not in them is an error. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

from orchestrator.core.errors import ConfigError

__all__ = [
    "AGENT_TABLE",
    "TASK_ENDS",
    "TASK_TABLE",
    "AgentState",
    "AgentStep",
    "TaskState",
    "TaskStep",
    "agent_after",
    "task_after",
]


class TaskState(Enum):
    """How far one task of an agent is."""

    QUEUED = "queued"
    """In the agent's inbox, behind others."""
    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Stopped, by a person or by a crash, and not given up: it can be resumed."""
    DONE = "done"
    """It has an answer."""
    FAILED = "failed"
    """It ended without one, or with a part of one."""
    CANCELLED = "cancelled"
    """Given up for good: nothing that arrives later changes that."""


class TaskStep(Enum):
    """What can happen to a task."""

    BEGIN = "begin"
    INTERRUPT = "interrupt"
    RESUME = "resume"
    SUCCEED = "succeed"
    FAIL = "fail"
    STOP = "stop"
    """Its agent's authority ended under it."""
    CANCEL = "cancel"


class AgentState(Enum):
    """How far a persistent agent is."""

    IDLE = "idle"
    WORKING = "working"
    CLOSED = "closed"
    """Ended in order. Its record stays, its authority does not."""
    CANCELLED = "cancelled"
    """Ended by force, with all below it."""


class AgentStep(Enum):
    """What can happen to a persistent agent."""

    BEGIN = "begin"
    REST = "rest"
    CLOSE = "close"
    CANCEL = "cancel"
    REOPEN = "reopen"


TASK_TABLE: Final[Mapping[tuple[TaskState, TaskStep], TaskState]] = MappingProxyType(
    {
        (TaskState.QUEUED, TaskStep.BEGIN): TaskState.RUNNING,
        (TaskState.QUEUED, TaskStep.INTERRUPT): TaskState.INTERRUPTED,
        (TaskState.QUEUED, TaskStep.FAIL): TaskState.FAILED,
        (TaskState.QUEUED, TaskStep.CANCEL): TaskState.CANCELLED,
        (TaskState.RUNNING, TaskStep.SUCCEED): TaskState.DONE,
        (TaskState.RUNNING, TaskStep.FAIL): TaskState.FAILED,
        (TaskState.RUNNING, TaskStep.STOP): TaskState.CANCELLED,
        (TaskState.QUEUED, TaskStep.STOP): TaskState.CANCELLED,
        (TaskState.RUNNING, TaskStep.INTERRUPT): TaskState.INTERRUPTED,
        (TaskState.RUNNING, TaskStep.CANCEL): TaskState.CANCELLED,
        (TaskState.INTERRUPTED, TaskStep.RESUME): TaskState.QUEUED,
        (TaskState.INTERRUPTED, TaskStep.CANCEL): TaskState.CANCELLED,
        # A run that was stopped may still come to its end; that is no news any more.
        (TaskState.INTERRUPTED, TaskStep.SUCCEED): TaskState.INTERRUPTED,
        (TaskState.INTERRUPTED, TaskStep.FAIL): TaskState.INTERRUPTED,
        (TaskState.INTERRUPTED, TaskStep.STOP): TaskState.INTERRUPTED,
        (TaskState.CANCELLED, TaskStep.SUCCEED): TaskState.CANCELLED,
        (TaskState.CANCELLED, TaskStep.FAIL): TaskState.CANCELLED,
        (TaskState.CANCELLED, TaskStep.STOP): TaskState.CANCELLED,
        (TaskState.CANCELLED, TaskStep.CANCEL): TaskState.CANCELLED,
    }
)
"""Where a step leads. A cancel beats a success that comes later; a success that came before stays."""

AGENT_TABLE: Final[Mapping[tuple[AgentState, AgentStep], AgentState]] = MappingProxyType(
    {
        (AgentState.IDLE, AgentStep.BEGIN): AgentState.WORKING,
        (AgentState.IDLE, AgentStep.CLOSE): AgentState.CLOSED,
        (AgentState.IDLE, AgentStep.CANCEL): AgentState.CANCELLED,
        (AgentState.WORKING, AgentStep.REST): AgentState.IDLE,
        (AgentState.WORKING, AgentStep.CLOSE): AgentState.CLOSED,
        (AgentState.WORKING, AgentStep.CANCEL): AgentState.CANCELLED,
        (AgentState.CLOSED, AgentStep.CLOSE): AgentState.CLOSED,
        (AgentState.CLOSED, AgentStep.CANCEL): AgentState.CANCELLED,
        (AgentState.CLOSED, AgentStep.REST): AgentState.CLOSED,
        (AgentState.CLOSED, AgentStep.REOPEN): AgentState.IDLE,
        (AgentState.CANCELLED, AgentStep.CLOSE): AgentState.CANCELLED,
        (AgentState.CANCELLED, AgentStep.CANCEL): AgentState.CANCELLED,
        (AgentState.CANCELLED, AgentStep.REST): AgentState.CANCELLED,
        (AgentState.CANCELLED, AgentStep.REOPEN): AgentState.IDLE,
    }
)
"""Where a step leads. To reopen is to begin anew: another incarnation, decided on anew."""

TASK_ENDS: Final = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED})
"""States that nothing leads out of."""


def task_after(state: TaskState, step: TaskStep) -> TaskState:
    """Return the state after a step. Raises ConfigError (`E-TASK-STATE`) where there is none."""
    after = TASK_TABLE.get((state, step))
    if after is None:
        raise ConfigError(f"a task that is {state.value} cannot {step.value}", code="E-TASK-STATE")
    return after


def agent_after(state: AgentState, step: AgentStep) -> AgentState:
    """Return the state after a step. Raises ConfigError (`E-AGENT-STATE`) where there is none."""
    after = AGENT_TABLE.get((state, step))
    if after is None:
        raise ConfigError(
            f"an agent that is {state.value} cannot {step.value}", code="E-AGENT-STATE"
        )
    return after
