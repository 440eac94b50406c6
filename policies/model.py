"""The values of the policy language: questions, answers, and the rules in between. No behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from policies.errors import Place

__all__ = [
    "AllOf",
    "AnyOf",
    "Between",
    "Compare",
    "Comparison",
    "Condition",
    "Context",
    "Decision",
    "DepthBound",
    "Effect",
    "Exists",
    "Kind",
    "Names",
    "Not",
    "OneOf",
    "Operation",
    "Parameter",
    "Place",
    "Pointer",
    "Policy",
    "Principal",
    "Reason",
    "Request",
    "Resource",
    "Role",
    "Rule",
    "Scalar",
    "ServerSet",
    "Source",
    "Target",
    "Template",
    "Test",
    "Under",
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


class Kind(Enum):
    """What a target can be narrowed to. A resource template counts as a resource."""

    TOOL = "tool"
    RESOURCE = "resource"
    PROMPT = "prompt"


class Comparison(Enum):
    """How an argument is compared with a literal."""

    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="


# ------------------------------------------------------------------------------ question and answer


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
    _text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # written once, where the rule is made ready: each call that it permits records it
        object.__setattr__(self, "_text", f'"{self.rule}" ({self.place})')

    def __str__(self) -> str:
        return self._text


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


# ------------------------------------------------------------------------------------------- sources


@dataclass(frozen=True, slots=True)
class Source:
    """A policy file's text. `path` is only for messages: nothing is read from it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Parameter:
    """`${name}` in a string, filled in when the policy is loaded."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Template:
    """A string with parameters in it: its pieces, in order."""

    parts: tuple[str | Parameter, ...]


Scalar: TypeAlias = str | int | float | bool | Template | None
"""A literal. A loaded set holds no `Template` any more."""


# ---------------------------------------------------------------------------------------- conditions


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where in the arguments: a JSON pointer (RFC 6901) and its unescaped keys."""

    text: str
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """`arg(/p) <= 10`."""

    pointer: Pointer
    comparison: Comparison
    literal: Scalar
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """`arg(/p) in ["a", "b"]`."""

    pointer: Pointer
    options: tuple[Scalar, ...]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """`arg(/p) in 1..10`, both ends included."""

    pointer: Pointer
    low: int | float
    high: int | float
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Under:
    """`arg(/p) under "out/"`."""

    pointer: Pointer
    prefix: str | Template
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """`exists arg(/p)`: the one test that always has a value."""

    pointer: Pointer
    place: Place


@dataclass(frozen=True, slots=True)
class Not:
    """`not C`; what has no value keeps having none."""

    part: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """`A and B`: false if one is false, else without a value if one has none."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """`A or B`: true if one is true, else without a value if one has none."""

    parts: tuple[Condition, ...]


Test: TypeAlias = Compare | OneOf | Between | Under | Exists
"""A condition that looks at one argument."""

Condition: TypeAlias = Test | Not | AllOf | AnyOf
"""What follows `when`. Its value is true, false or none."""


# --------------------------------------------------------------------------------------------- rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Which names: alternatives with `*`.

    `by_segment` is for a quoted URI pattern: `*` stays within one segment, and `**` stands for any
    number of whole segments. Otherwise `*` stands for any characters.
    """

    text: str
    alternatives: tuple[str, ...]
    by_segment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """On what: servers (None is any), names, and the kind if one is written.

    `written` is the server as the file names it: a server, a set, or `any server`.
    """

    servers: frozenset[str] | None
    names: Names
    kind: Kind | None
    written: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthBound:
    """`depth <= 2` or `depth >= 2`: how far below the parent's own agent."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. No roles means all; no condition means always."""

    id: str
    effect: Effect
    operations: frozenset[Operation]
    target: Target
    place: Place
    roles: frozenset[str] | None = None
    depth: DepthBound | None = None
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """A declared role."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class ServerSet:
    """A named set of servers."""

    name: str
    servers: frozenset[str]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One `policy NAME v1 { … }`."""

    name: str
    place: Place
    roles: tuple[Role, ...] = ()
    sets: tuple[ServerSet, ...] = ()
    rules: tuple[Rule, ...] = ()
