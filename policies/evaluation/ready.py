"""One rule made ready to be asked: its tests as functions, its answers made. Knows no other rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from policies.evaluation.conditions import Predicate, compile_condition, reads_resource
from policies.limits import PolicyLimits
from policies.model import (
    Context,
    Decision,
    DepthBound,
    Effect,
    Kind,
    Names,
    Principal,
    Reason,
    Resource,
    Rule,
    RuleWord,
    Target,
    Who,
)
from policies.patterns import Matcher, glob, matcher_of, uri_parts

__all__ = ["Entry", "Made", "Maybe", "Ready", "depth_fits", "entries_of", "kind_fits", "who_fits"]

_KINDS: Final = {
    Kind.TOOL: frozenset({"tool"}),
    Kind.RESOURCE: frozenset({"resource", "resource_template"}),
    Kind.PROMPT: frozenset({"prompt"}),
}
_NO_PARTS: Final[Mapping[str, str]] = {}


def kind_fits(wanted: Kind | None, kind: str) -> bool:
    """Return True if a target of this kind speaks about something of MCP's `kind`."""
    return wanted is None or kind in _KINDS[wanted]


def who_fits(who: Who) -> Callable[[Principal], bool] | None:
    """Return a test for all that a rule says of whom it is about, its roles aside; None if nothing."""
    tests: list[Callable[[Principal], bool]] = []
    if who.depth is not None:
        bound = who.depth
        tests.append(lambda principal: depth_fits(bound, principal.depth))
    if who.interactive is not None:
        wanted = who.interactive
        tests.append(lambda principal: principal.interactive is wanted)
    if who.agents is not None:
        named = _any_glob(who.agents)
        tests.append(lambda principal: named(principal.agent))
    if who.below_agents is not None:
        above = _any_glob(who.below_agents)
        tests.append(lambda principal: any(above(each.agent) for each in principal.above))
    if who.below_roles is not None:
        roles = who.below_roles
        tests.append(lambda principal: any(each.role in roles for each in principal.above))
    if len(tests) <= 1:
        return tests[0] if tests else None
    return lambda principal: all(test(principal) for test in tests)


def depth_fits(bound: DepthBound, depth: int) -> bool:
    """Return True if an agent at this depth is within the bound."""
    return (bound.low is None or depth >= bound.low) and (bound.high is None or depth <= bound.high)


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A rule made ready. `negated` is a `require`: it speaks unless its condition is true."""

    rule: Rule
    effect: Effect | None
    holds: Predicate | None
    negated: bool
    spoken: Decision
    errored: Decision
    reads_resource: bool


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """A rule about what is asked; whether it speaks may depend on the context."""

    ready: Ready
    name_known: bool
    names: Names

    def answer(self, context: Context, resource: Resource) -> Decision | None:
        """Return the rule's decision, or None if it does not speak."""
        ready = self.ready
        holds: bool | None = True
        if ready.holds is not None:
            parts = uri_parts(self.names, resource.name) if self.names.parts else _NO_PARTS
            holds = ready.holds(context, resource, parts)
            if ready.negated:
                holds = None if holds is None else not holds
        if holds is False:
            return None
        if holds is True and self.name_known:
            return ready.spoken
        # no value: a permit does not speak, everything else does; an ask then only restricts
        return None if ready.effect is Effect.PERMIT else ready.errored


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One target of a rule, with the cheapest questions first."""

    roles: frozenset[str] | None
    matches: Matcher
    fits: Callable[[Principal], bool] | None
    kind: Kind | None
    known: Maybe
    unknown: Maybe


Made: TypeAlias = tuple[Target, Entry]
"""A target and what was made of it."""


def entries_of(rule: Rule, limits: PolicyLimits) -> tuple[Made, ...]:
    """Make a rule ready, once for each of its targets."""

    def decision(*, errored: bool) -> Decision:
        if effect is None:
            return Decision(effect=Effect.PERMIT, duties=rule.duties)
        reason = Reason(
            rule=rule.id, place=rule.place, effect=effect, errored=errored, word=rule.word
        )
        return Decision(effect=effect, reasons=(reason,), duties=rule.duties)

    effect = rule.effect
    ready = Ready(
        rule=rule,
        effect=effect,
        holds=None if rule.condition is None else compile_condition(rule.condition, limits),
        negated=rule.word is RuleWord.REQUIRE,
        spoken=decision(errored=False),
        errored=decision(errored=True),
        reads_resource=rule.condition is not None and reads_resource(rule.condition),
    )
    fits = who_fits(rule.who)
    return tuple(
        (
            target,
            Entry(
                roles=rule.who.roles,
                matches=matcher_of(target.names),
                fits=fits,
                kind=target.kind,
                known=Maybe(ready, name_known=True, names=target.names),
                unknown=Maybe(ready, name_known=False, names=target.names),
            ),
        )
        for target in rule.targets
    )


def _any_glob(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    globs = tuple(glob(pattern) for pattern in patterns)
    return lambda name: any(matches(name) for matches in globs)
