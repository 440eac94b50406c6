"""The values of the policy language: questions, answers, and the rules in between. No behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

__all__ = [
    "Context",
    "Decision",
    "Effect",
    "Operation",
    "Place",
    "Principal",
    "Reason",
    "Request",
    "Resource",
]


class Effect(Enum):
    """What a rule says, and what a decision says. Forbid wins over ask, ask over permit."""

    PERMIT = "permit"
    ASK = "ask"
    FORBID = "forbid"


class Operation(Enum):
    """What somebody wants to do."""

    CALL = "call"
    READ = "read"
    GET_PROMPT = "get_prompt"
    COMPLETE = "complete"
    DELEGATE = "delegate"


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a policy file. Lines and columns count from 1."""

    path: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. `depth` is 0 for the parent's own agent, 1 for its children."""

    role: str
    agent: str = ""
    depth: int = 0
    interactive: bool = False


@dataclass(frozen=True, slots=True)
class Resource:
    """What is asked for: a tuple, never a joined string. `kind` is MCP's word (tool, resource …)."""

    server: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Context:
    """What else is known: the arguments exactly as they would be sent."""

    arguments: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """May this principal do this, with this?"""

    principal: Principal
    action: Operation
    resource: Resource
    context: Context = Context()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that spoke: its id, its place, its effect. `errored` if its condition had no value."""

    rule: str
    place: Place
    effect: Effect
    errored: bool = False

    def __str__(self) -> str:
        return f'"{self.rule}" ({self.place})'


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer. No reasons with FORBID means that nothing permits it: default deny."""

    effect: Effect
    reasons: tuple[Reason, ...] = ()
    duties: tuple[object, ...] = ()

    @property
    def by_default(self) -> bool:
        """True if no rule spoke."""
        return not self.reasons
