"""The one port behind which a language model, a recipe or a replay stands. Knows no provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from orchestrator.agents.mailbox import Message, no_mail
from orchestrator.agents.shelf import Shelf
from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import RemitError

__all__ = [
    "NO_USAGE",
    "RECIPE_PROVIDER",
    "AgentTask",
    "Call",
    "CallResult",
    "Conversation",
    "Earlier",
    "Model",
    "Note",
    "RequestGate",
    "ToolSpec",
    "Turn",
    "TurnKeeper",
    "Usage",
    "unheard",
]

RECIPE_PROVIDER: Final = "recipe"
"""The provider's name of recipes: they cost nothing and send nothing to anybody."""

RequestGate = Callable[[], None]
"""Asked synchronously right before each request to a model; raises AuthorityError to forbid it.

An agent whose authority has ended must not send what it knows to a provider.
"""


@dataclass(frozen=True, slots=True)
class Note:
    """A line of progress that a recipe yields; it becomes an `AgentNoted` event. Calls nothing."""

    text: str


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each call
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class CallResult:
    """What became of a call: content, or the error that ended it. Exactly one is set."""

    call: Call
    content: UntrustedContent | None = None
    error: RemitError | None = None

    def unwrap(self) -> UntrustedContent:
        """Return the content, or raise the error."""
        if self.content is not None:
            return self.content
        if self.error is not None:
            raise self.error
        message = "a call's result has neither content nor error"
        raise ValueError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one turn cost, in tokens; a recipe costs none."""

    input_tokens: int = 0
    output_tokens: int = 0


NO_USAGE: Final = Usage()
"""Of a turn that nobody was asked for."""


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each turn
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class Turn:
    """One step of a model: calls to make (side by side), or the answer. `done` ends the agent.

    `malformed` counts calls that could not be understood; the model is told of them in its next
    turn. `answer` without `done` is what it said beside its calls. `open` tells of an answer that
    the exchange can go on after: the model may be told what is wrong with it. `model` and `finish`
    are what the provider says of who answered, and why it ended: for telemetry, and untrusted.
    """

    calls: tuple[Call, ...] = ()
    malformed: int = 0
    notes: tuple[str, ...] = ()
    answer: object = None
    done: bool = False
    open: bool = False
    usage: Usage = NO_USAGE
    model: str = ""
    finish: str = ""


def unheard(_: str) -> None:
    """Let a piece of text go: nobody waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A task that a persistent agent had before, and its answer: its own words, so untrusted."""

    prompt: str
    answer: object


class TurnKeeper(Protocol):
    """What a language model said in an attempt that was broken off, and where what it says now is kept."""

    @property
    def waiting(self) -> bool:
        """True while there is a turn that was kept and not taken: nobody is asked for it again."""
        ...

    def take(self) -> bytes | None:
        """Return the next turn of then; None if there is no more."""
        ...

    async def keep(self, said: bytes) -> None:
        """Keep a turn, before any call of it is made. Raises RemitError if it cannot be kept."""
        ...


# frozen by the type checker alone: at run time it costs three times as much to make, and one is made
# for each agent
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
class AgentTask:
    """What an agent is asked to do. `inputs` are other agents' results by name: untrusted.

    `history` are its earlier tasks, the oldest first. `mail` returns the messages that came since
    it was asked last; a model asks before each turn. `returns` is the JSON Schema of the answer,
    where there is one. `shelf` keeps what of results is too long for a request, where the agent may
    read on by `read_result`. `stays` tells of an agent that has other tasks after this. `said` is
    told each piece of a model's text as it arrives, by a model that can; it does not raise or wait.
    """

    agent: str
    prompt: str
    inputs: Mapping[str, object] = field(default_factory=dict[str, object])
    history: tuple[Earlier, ...] = ()
    mail: Callable[[], Sequence[Message]] = no_mail
    returns: Mapping[str, object] | None = None
    shelf: Shelf | None = None
    stays: bool = False
    turns: TurnKeeper | None = None
    said: Callable[[str], None] = unheard


class Conversation(Protocol):
    """One agent's exchange with its model."""

    async def next(self, results: Sequence[CallResult]) -> Turn:
        """Hand over the results of the last turn's calls, in their order; return the next turn.

        Raises RemitError if there is none: a ModelError, a RecipeError, the gate's AuthorityError.
        """
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
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AbstractAsyncContextManager[Conversation]:
        """Begin an exchange; leaving the context ends it and frees what it held.

        Each request to a provider is preceded by `gate()`, without a wait in between; a second
        attempt is a request of its own.
        """
        ...
