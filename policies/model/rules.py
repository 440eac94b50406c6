"""Rules, policies, and what a file claims of them: tests and assertions. No behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from policies.errors import Place
from policies.model.conditions import Condition, Scalar
from policies.model.questions import (
    Annotations,
    Duty,
    Effect,
    Kind,
    Label,
    Operation,
    RuleWord,
)

__all__ = [
    "Assertion",
    "Case",
    "ChildSubset",
    "DepthBound",
    "Include",
    "Names",
    "Never",
    "Policy",
    "PolicyFile",
    "Role",
    "Rule",
    "ServerSet",
    "SinkSet",
    "Source",
    "Target",
    "TestValue",
    "Trust",
    "Who",
]


@dataclass(frozen=True, slots=True)
class Source:
    """A policy file's text. `path` is only for messages: nothing is read from it."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Which names: alternatives with `*`.

    `by_segment` is for a quoted URI pattern: `*` stays within one segment, and `**` stands for any
    number of whole segments; `{x}` is a `*` and `{+x}` a `**` that a condition can look at, and
    `parts` are their names. Otherwise `*` stands for any characters.
    """

    text: str
    alternatives: tuple[str, ...]
    by_segment: bool = False
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """On what: servers (None is any), names, and the kind if one is written.

    `written` is the server as the file names it: a server, a set, or `any server`. `sink` is the
    named set of targets that it was written in, if it was.
    """

    servers: frozenset[str] | None
    names: Names
    kind: Kind | None
    written: str
    place: Place
    sink: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthBound:
    """`depth <= 2` or `depth >= 2`: how far below the parent's own agent."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Whom a rule is about; None is everybody.

    Attributes:
        roles: `for role a, b`.
        agents: `for agent "a", "b/*"`: names of agents, `*` for any characters.
        below_roles: `below role a`: an agent above it has that role.
        below_agents: `below agent "a"`.
        depth: `depth <= 2`.
        interactive: `surface interactive` or `surface headless`: can a person be asked?
    """

    roles: frozenset[str] | None = None
    agents: tuple[str, ...] | None = None
    below_roles: frozenset[str] | None = None
    below_agents: tuple[str, ...] | None = None
    depth: DepthBound | None = None
    interactive: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. No condition means always.

    The condition is as it is written, `when A unless B after L` joined into one: a `require` speaks
    where it is not true. `closed` is `unknown args deny`: its test is part of the condition.
    """

    id: str
    word: RuleWord
    operations: frozenset[Operation]
    targets: tuple[Target, ...]
    place: Place
    who: Who = Who()
    condition: Condition | None = None
    duties: tuple[Duty, ...] = ()
    closed: bool = False

    @property
    def effect(self) -> Effect | None:
        """What a decision says if this rule decides; None for a limit and an oblige."""
        return _EFFECTS.get(self.word)


_EFFECTS: Mapping[RuleWord, Effect] = {
    RuleWord.PERMIT: Effect.PERMIT,
    RuleWord.ASK: Effect.ASK,
    RuleWord.FORBID: Effect.FORBID,
    RuleWord.REQUIRE: Effect.FORBID,
}


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


@dataclass(frozen=True, slots=True)
class SinkSet:
    """A named set of targets, used as `sink(name)`."""

    name: str
    targets: tuple[Target, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Trust:
    """`trust hints of server("a")`: permits of this policy may look at the hints of these."""

    servers: frozenset[str]
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One `policy NAME v1 { … }`. The version is the policy's own."""

    name: str
    place: Place
    version: int = 1
    roles: tuple[Role, ...] = ()
    sets: tuple[ServerSet, ...] = ()
    sinks: tuple[SinkSet, ...] = ()
    trusts: tuple[Trust, ...] = ()
    rules: tuple[Rule, ...] = ()


# -------------------------------------------------------------------------------------- what is claimed

TestValue: TypeAlias = Scalar | list["TestValue"] | dict[str, "TestValue"]
"""A JSON value as a test writes it; a loaded set holds no `Template` any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One line of `tests { }`: a request, and what must come of it.

    Attributes:
        by: ids of the rules that must decide; None says nothing about them, empty is by default.
        at: seconds since 1970-01-01 UTC; None leaves the time unknown.
    """

    effect: Effect
    operation: Operation
    server: str
    kind: Kind
    name: str
    place: Place
    arguments: Mapping[str, TestValue] = field(default_factory=dict[str, TestValue])
    role: str = ""
    agent: str = ""
    depth: int = 1
    below: tuple[str, ...] = ()
    interactive: bool = True
    labels: frozenset[Label] = frozenset()
    at: float | None = None
    left: Mapping[str, float] = field(default_factory=dict[str, float])
    annotations: Annotations = field(default=Annotations())
    pinned: bool = True
    by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Never:
    """`assert never call on mail/send when …`: no such request is permitted; asking is no permit."""

    operations: frozenset[Operation]
    targets: tuple[Target, ...]
    place: Place
    who: Who = Who()
    condition: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSubset:
    """`assert child_subset(policy "worker", policy "research")`.

    What the first permits, the second permits to delegate.
    """

    child: str
    parent: str
    place: Place


Assertion: TypeAlias = Never | ChildSubset
"""A claim about all requests."""


@dataclass(frozen=True, slots=True)
class Include:
    """`include "base.policy"`: that file, beside this one or below, belongs to the set as well."""

    path: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFile:
    """All that one file says."""

    path: str
    policies: tuple[Policy, ...] = ()
    tests: tuple[Case, ...] = ()
    assertions: tuple[Assertion, ...] = ()
    includes: tuple[Include, ...] = ()
