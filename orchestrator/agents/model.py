"""The one port behind which a language model, a recipe or a replay stands. Knows no provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import RemitError

__all__ = [
    "AgentTask",
    "Call",
    "CallResult",
    "Conversation",
    "Model",
    "Note",
    "ToolSpec",
    "Turn",
    "Usage",
]


@dataclass(frozen=True, slots=True)
class Note:
    """A line of progress that a recipe yields; it becomes an `AgentNoted` event. Calls nothing."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What became of a call: content, or the error that ended it. Exactly one is set."""

    call: Call
    content: UntrustedContent | None = None
    error: RemitError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one turn cost. Tokens; 0 where the model counts none."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step of a model: calls to make (side by side), or the answer. `done` ends the agent."""

    calls: tuple[Call, ...] = ()
    notes: tuple[str, ...] = ()
    answer: object = None
    done: bool = False
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTask:
    """What an agent is asked to do. `inputs` are other agents' results by name: untrusted."""

    agent: str
    prompt: str
    inputs: Mapping[str, object] = field(default_factory=dict[str, object])


class Conversation(Protocol):
    """One agent's exchange with its model."""

    async def next(self, results: Sequence[CallResult]) -> Turn:
        """Hand over the results of the last turn's calls, in their order; return the next turn."""
        ...


class Model(Protocol):
    """Where turns come from."""

    @property
    def name(self) -> str:
        """The model's name, as telemetry shows it."""
        ...

    @property
    def provider(self) -> str:
        """The provider's name, as telemetry shows it; `recipe` for recipes."""
        ...

    def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec]
    ) -> AbstractAsyncContextManager[Conversation]:
        """Begin an exchange; leaving the context ends it and frees what it held."""
        ...
