"""The question and the answer: who wants what, what is known, what was decided. No behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from policies.errors import Place

__all__ = [
    "Annotations",
    "Budget",
    "Context",
    "Deadline",
    "Decision",
    "Duty",
    "Effect",
    "Expiry",
    "Keep",
    "Kind",
    "Label",
    "Mark",
    "MaxChildren",
    "MaxDepth",
    "Metered",
    "Operation",
    "Principal",
    "Rate",
    "Reason",
    "Redact",
    "Request",
    "Resource",
    "RuleWord",
    "Scope",
]


class Effect(Enum):
    """What a decision says. Forbid wins over ask, ask over permit."""

    PERMIT = "permit"
    ASK = "ask"
    FORBID = "forbid"


class RuleWord(Enum):
    """The word that a rule begins with."""

    PERMIT = "permit"
    ASK = "ask"
    FORBID = "forbid"
    REQUIRE = "require"
    """A forbid where its condition is not true."""
    LIMIT = "limit"
    """Says how much at most; decides nothing."""
    OBLIGE = "oblige"
    """Says what must be done with a result, or kept on record; decides nothing."""


class Operation(Enum):
    """What somebody wants to do. The last three are what a server asks of its host."""

    CALL = "call"
    READ = "read"
    GET_PROMPT = "get_prompt"
    COMPLETE = "complete"
    SUBSCRIBE = "subscribe"
    DELEGATE = "delegate"
    SAMPLE = "sample"
    ELICIT = "elicit"
    LIST_ROOTS = "list_roots"


class Kind(Enum):
    """What a target can be narrowed to. A resource template counts as a resource."""

    TOOL = "tool"
    RESOURCE = "resource"
    PROMPT = "prompt"


class Metered(Enum):
    """What a budget counts."""

    CALLS = "calls"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"
    TURNS = "turns"


class Scope(Enum):
    """Whose calls a rate or a budget adds up."""

    AGENT = "agent"
    SESSION = "session"


# ------------------------------------------------------------------------------------------ question


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. `depth` is 0 for the parent's own agent, 1 for its children.

    `above` are the agents that it descends from, the nearest last, each without its own `above`.
    """

    role: str
    agent: str = ""
    depth: int = 0
    interactive: bool = False
    above: tuple[Principal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotations:
    """A server's hints about one of its tools, as it gave them: claims, not facts. None: not said."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class Resource:
    """What is asked for: a tuple, never a joined string. `kind` is MCP's word (tool, resource …).

    `digest` is that of the pinned definition; empty if it is not pinned.
    """

    server: str
    kind: str
    name: str
    digest: str = ""
    annotations: Annotations = Annotations()


@dataclass(frozen=True, slots=True, order=True)
class Label:
    """What clings to whoever has seen a result: a word, and the server that it came from."""

    name: str
    server: str


@dataclass(frozen=True, slots=True)
class Context:
    """What else is known.

    Attributes:
        arguments: exactly as they would be sent.
        labels: what clings to the agent by now.
        wall: seconds since 1970-01-01 UTC; None if the time is not known.
        left: what is left of budgets, by `Metered`'s words; what is not in it has no value.
    """

    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    labels: frozenset[Label] = frozenset()
    wall: float | None = None
    left: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """May this principal do this, with this?"""

    principal: Principal
    action: Operation
    resource: Resource
    context: Context = Context()


# -------------------------------------------------------------------------------------------- answer


@dataclass(frozen=True, slots=True)
class Redact:
    """Blank these members of a result. `pointers` are JSON pointers into its structured content."""

    pointers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Let the result carry this label, beside `untrusted`."""

    label: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep these arguments in the record of the call. `pointers` are JSON pointers into them; `` is all."""

    pointers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rate:
    """At most so many in any stretch of so many seconds. `rule` is who says so, and counts apart."""

    count: int
    seconds: float
    scope: Scope
    rule: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Not beyond so much. Calls are those that this rule is about; the rest is the agent's whole."""

    metered: Metered
    amount: float
    scope: Scope
    rule: str


@dataclass(frozen=True, slots=True)
class Deadline:
    """The call may take so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Expiry:
    """A person's yes is good for so many seconds, and is waited for no longer."""

    seconds: float


@dataclass(frozen=True, slots=True)
class MaxDepth:
    """What is delegated reaches agents down to this depth."""

    depth: int


@dataclass(frozen=True, slots=True)
class MaxChildren:
    """What is delegated reaches so many live children of one agent."""

    children: int


Duty: TypeAlias = Redact | Mark | Keep | Rate | Budget | Deadline | Expiry | MaxDepth | MaxChildren
"""What whoever enforces a decision has to do besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that spoke: its id, its place, its effect. `errored` if its condition had no value.

    `word` is what the rule begins with: a `require` that is not met speaks as a forbid. `text` is the
    id and the place as people read them.
    """

    rule: str
    place: Place
    effect: Effect
    errored: bool = False
    word: RuleWord | None = field(default=None, compare=False)
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # written once, where the rule is made ready: each call that it permits records it
        object.__setattr__(self, "text", f'"{self.rule}" ({self.place})')

    def __str__(self) -> str:
        return self.text

    @property
    def marked(self) -> str:
        """The rule with its place, and that its condition had no value where it had none."""
        return f"{self} (its condition has no value)" if self.errored else str(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer. No reasons with FORBID means that nothing permits it: default deny.

    `duties` come with PERMIT and ASK only: of limits on the same, the least of each.
    """

    effect: Effect
    reasons: tuple[Reason, ...] = ()
    duties: tuple[Duty, ...] = ()

    @property
    def by_default(self) -> bool:
        """True if no rule spoke."""
        return not self.reasons
