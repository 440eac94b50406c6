"""Which permit or ask lacked least, and what. Knows its condition compiled, once for a set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final
from weakref import WeakKeyDictionary

from policies.evaluation import PolicySet, depth_fits, kind_fits, who_fits
from policies.explanation.failing import FailedTest, Failing
from policies.model import (
    Effect,
    Operation,
    Principal,
    Reason,
    Request,
    Resource,
    Rule,
    Target,
    Who,
)
from policies.patterns import matcher_of

__all__ = ["FailedTest", "NearMiss", "lets_through", "nearest_rule"]

_ELSEWHERE: Final = 4
"""What weighs least of all that makes a rule one about another thing."""
_OTHER_SERVER: Final = 8
_LETTING: Final = (Effect.PERMIT, Effect.ASK)
"""What lets a request through that nothing forbids: with an ask it goes as far as a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The permit or ask that lacked least: what did not fit, in words, and the tests that failed.

    `about_this` if it is about this very thing and operation: then it names nothing else. The rule is
    `errored` if its condition had no value.
    """

    rule: Reason
    lacks: tuple[str, ...]
    failed: tuple[FailedTest, ...]
    about_this: bool = False


def nearest_rule(policy_set: PolicySet, request: Request) -> NearMiss | None:
    """Return the permit or ask that lacked least; None if there are none at all.

    Rules about this very thing come first: of them the one that is for somebody most like who
    asks, and then the one of which fewest tests fail. Where there is none, it is the one that
    differs least, its tests left aside. Among equals a permit comes before an ask, and then the
    first by file and line. Of a set that is bounded by another, the layer that does not let the
    request through is looked at.
    """
    layer = policy_set
    if policy_set.bounds is not None:
        layers = policy_set.layers
        layer = next((each for each in layers if not lets_through(each, request)), policy_set)
    known = _KNOWN.get(layer)
    if known is None:
        known = _KNOWN[layer] = _Letting(layer)
    return known.nearest(layer, request)


def lets_through(layer: PolicySet, request: Request) -> bool:
    """Return True if a permit or an ask of this set's own speaks, overruled or not."""
    verdict = layer.own_verdict(request.principal, request.action, request.resource)
    return any(reason.effect in _LETTING for reason in verdict.spoken(request.context))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A permit or ask, and what of it does not fit whatever the arguments are."""

    reason: Reason
    lacks: tuple[str, ...]
    failing: Failing | None
    about_this: bool

    def miss(self, request: Request) -> NearMiss:
        failing, rule = self.failing, self.reason
        failed = () if failing is None else failing.tests(request)
        for test in failed:
            # a condition has a value if each of its tests has one
            if test.errored and failing is not None and failing.errs(request):
                rule = replace(rule, errored=True)
                break
        return NearMiss(rule=rule, lacks=self.lacks, failed=failed, about_this=self.about_this)


class _Letting:
    """The permits and asks of one set: each is compiled once, when it is first near to something."""

    def __init__(self, policy_set: PolicySet) -> None:
        self._limits = policy_set.limits
        self._rules = _in_order(policy_set.rules)
        self._failing: dict[str, Failing] = {}
        self._asked: dict[tuple[Principal, Operation, Resource], tuple[_Candidate, ...]] = {}

    def nearest(self, policy_set: PolicySet, request: Request) -> NearMiss | None:
        # the set is handed in: what it is the key of must not keep it alive
        key = (request.principal, request.action, request.resource)
        found = self._asked.get(key)
        if found is None:
            found = self._candidates(policy_set, request)
            if len(self._asked) >= self._limits.remembered_max:
                self._asked.clear()
            self._asked[key] = found
        if len(found) <= 1:
            return found[0].miss(request) if found else None
        return min((each.miss(request) for each in found), key=lambda miss: len(miss.failed))

    def _candidates(self, policy_set: PolicySet, request: Request) -> tuple[_Candidate, ...]:
        """Return the rules that differ least: all of them if they are about this very thing."""
        about = _in_order(policy_set.rules_about(request.action, request.resource))
        if about:
            least, near = _least(about, request, enough=0)
            return tuple(self._candidate(rule, request, about_this=True) for rule in near)
        server = request.resource.server
        here = [rule for rule in self._rules if _names(rule, server)]
        least, near = _least(here, request, enough=_ELSEWHERE)
        if least >= _OTHER_SERVER:
            _, near = _least(self._rules, request, enough=_ELSEWHERE)
        return tuple(self._candidate(rule, request, about_this=False) for rule in near[:1])

    def _candidate(self, rule: Rule, request: Request, *, about_this: bool) -> _Candidate:
        failing = self._failing.get(rule.id)
        if failing is None and rule.condition is not None:
            failing = self._failing[rule.id] = Failing(rule, rule.condition, self._limits)
        effect = rule.effect or Effect.PERMIT
        return _Candidate(
            reason=Reason(rule=rule.id, place=rule.place, effect=effect, word=rule.word),
            lacks=tuple(lack for _, lack in _lacks(rule, request)),
            failing=failing,
            about_this=about_this,
        )


_KNOWN: Final[WeakKeyDictionary[PolicySet, _Letting]] = WeakKeyDictionary()
"""What was made of each set that lives. It only remembers: a set made anew is looked at anew."""


def _in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    letting = (rule for rule in rules if rule.effect in _LETTING)
    return tuple(sorted(letting, key=_position))


def _position(rule: Rule) -> tuple[bool, str, int, int]:
    place = rule.place
    return rule.effect is Effect.ASK, place.path, place.line, place.column


def _names(rule: Rule, server: str) -> bool:
    return any(target.servers is None or server in target.servers for target in rule.targets)


def _least(rules: Iterable[Rule], request: Request, *, enough: int) -> tuple[float, list[Rule]]:
    """Return the least weight of what does not fit, and the rules of that weight, the first first.

    Where nothing weighs less than `enough`, the first such rule ends the search.
    """
    least, near = float("inf"), list[Rule]()
    for rule in rules:
        weight = sum(each for each, _ in _lacks(rule, request))
        if weight < least:
            least, near = weight, [rule]
            if 0 < enough >= least:
                break
        elif weight == least:
            near.append(rule)
    return least, near


def _lacks(rule: Rule, request: Request) -> tuple[tuple[int, str], ...]:
    """Return what does not fit besides the condition, each with its weight, the gravest first."""
    misses = [_target_lacks(target, request) for target in rule.targets]
    found = list(min(misses, key=lambda lacks: sum(weight for weight, _ in lacks)))
    if request.action not in rule.operations:
        operations = ", ".join(sorted(operation.value for operation in rule.operations))
        found.append((4, f"it is about {operations}"))
    return (*found, *_who_lacks(rule.who, request))


def _target_lacks(target: Target, request: Request) -> list[tuple[int, str]]:
    resource = request.resource
    found: list[tuple[int, str]] = []
    if target.servers is not None and resource.server not in target.servers:
        found.append((8, f"it is about server {target.written}"))
    named = matcher_of(target.names)(resource.name)
    if named is not True:
        what = "has no plain form" if named is None else "does not match"
        found.append((4, f"the name {what}: the rule names {target.names.text}"))
    if target.kind is not None and not kind_fits(target.kind, resource.kind):
        found.append((4, f"it is about a {target.kind.value}"))
    return found


def _who_lacks(who: Who, request: Request) -> list[tuple[int, str]]:
    principal = request.principal
    found: list[tuple[int, str]] = []
    if who.roles is not None and principal.role not in who.roles:
        found.append((2, f"it is for role {', '.join(sorted(who.roles))}"))
    if who.depth is not None and not depth_fits(who.depth, principal.depth):
        found.append((2, f"it does not reach agents at depth {principal.depth}"))
    if who.interactive is not None and principal.interactive is not who.interactive:
        found.append((2, f"it is for surface {'interactive' if who.interactive else 'headless'}"))
    for words, part in (
        (f"for agent {', '.join(who.agents or ())}", Who(agents=who.agents)),
        (f"below agent {', '.join(who.below_agents or ())}", Who(below_agents=who.below_agents)),
        (
            f"below role {', '.join(sorted(who.below_roles or ()))}",
            Who(below_roles=who.below_roles),
        ),
    ):
        fits = who_fits(part)
        if fits is not None and not fits(principal):
            found.append((2, f"it is {words}"))
    return found
