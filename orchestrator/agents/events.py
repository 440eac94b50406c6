"""What an agent does, told as it happens, in the past tense. Plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.ids import AgentId, CallId
from orchestrator.core.outcomes import CallOutcome, RunStatus

__all__ = [
    "AgentEnded",
    "AgentEvent",
    "AgentNoted",
    "AgentSaid",
    "AgentStarted",
    "CallEnded",
    "CallProgressed",
    "CallStarted",
    "EventListener",
    "InputMissing",
    "TurnEnded",
    "VisitEnded",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStarted:
    """An agent began to work."""

    agent: AgentId
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded:
    """A model's turn is over. `number` counts from 1; `usd` is what all turns so far have cost."""

    agent: AgentId
    number: int
    calls: int
    tokens: int
    usd: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNoted:
    """A recipe told of its progress."""

    agent: AgentId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSaid:
    """A piece of what a model writes, as it arrives; the pieces of a turn are its text. Untrusted."""

    agent: AgentId
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call was handed to the broker. `number` counts the calls of one run of the agent from 1.

    `arguments` are the model's own: nobody has looked at them yet.
    """

    agent: AgentId
    server: str
    tool: str
    number: int = 0
    arguments: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallProgressed:
    """A server told how far a call has come, in its own measure; `total` is None if it does not say.

    `number` is that of the call's start. It is told some times a second at the most.
    """

    agent: AgentId
    server: str
    tool: str
    done: float
    total: float | None = None
    number: int = 0

    @property
    def how_far(self) -> str:
        """The numbers in words, `3 of 12`."""
        done = f"{self.done:,.10g}"
        return done if self.total is None else f"{done} of {self.total:,.10g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call is over. `reason`, `rule` and `bytes_sent` are set where it was denied or refused.

    `number` is that of its start; 0 where it was refused before it began. `content` is what the
    agent was handed: untrusted, within the bounds of a result.
    """

    agent: AgentId
    server: str
    tool: str
    outcome: CallOutcome
    seconds: float
    delivery: Delivery = Delivery.ANSWERED
    reason: DenyReason | None = None
    rule: str = ""
    bytes_sent: int = 0
    message: str = ""
    call: CallId | None = None
    number: int = 0
    content: UntrustedContent | None = field(default=None, hash=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentEnded:
    """An agent is done, or has failed."""

    agent: AgentId
    status: RunStatus
    seconds: float
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMissing:
    """A server wanted something of a person, nobody could be asked, and it was told so at once.

    `agent` is whose call it was; empty if that cannot be told. `mode` is `form` or `url`; `message`,
    `schema` and `host` are the server's own, bounded and untrusted.
    """

    agent: AgentId
    server: str
    mode: str
    message: str
    schema: Mapping[str, object] = field(default_factory=dict[str, object], hash=False)
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitEnded:
    """A server says that a person is done at the address that it asked them to visit.

    `agent` is whose call it was; empty if that cannot be told. `visit` is what `Elicitation.visit`
    was when they were asked.
    """

    agent: AgentId
    server: str
    visit: str


AgentEvent = (
    AgentStarted
    | AgentSaid
    | TurnEnded
    | AgentNoted
    | CallStarted
    | CallProgressed
    | CallEnded
    | InputMissing
    | VisitEnded
    | AgentEnded
)
"""Anything that a listener may be told."""

EventListener = Callable[[AgentEvent], None]
"""Is told what agents do, in the step in which it happens; must not block and must not raise."""
