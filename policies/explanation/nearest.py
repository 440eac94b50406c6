"""Which permit lacked least, and what. Shows the types of arguments, never their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies.evaluation import (
    MISSING,
    PolicySet,
    compile_condition,
    depth_fits,
    kind_fits,
    look_up,
    tests_of,
    type_name,
    who_fits,
)
from policies.explanation.words import check_words, fact_words, operand_words
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Argument,
    Condition,
    Effect,
    Elements,
    Fact,
    Left,
    Not,
    Operand,
    Reason,
    Request,
    Rule,
    Target,
    Test,
    UriPart,
    Who,
)
from policies.patterns import matcher_of, uri_parts

__all__ = ["FailedTest", "NearMiss", "nearest_permit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test of a condition that kept a permit from speaking.

    `operand` is what it looks at (`arg(/path)`, or a whole fact like `after untrusted`). `actual` is
    the type of the value, or `missing`; empty where there is no single one. `errored` if the test
    had no value. `negated` if it stands under `not` or `unless`, so that it would have had to be
    false.
    """

    operand: str
    operator: str
    expected: str
    actual: str
    errored: bool
    negated: bool

    def __str__(self) -> str:
        wanted = " ".join(filter(None, (self.operand, self.operator, self.expected)))
        verb = "must not hold" if self.negated else "must hold"
        why = (
            "it has no value" if self.errored else "it does not" if not self.negated else "it does"
        )
        actual = f" (the {_NOUNS.get(self.operand[:3], 'argument')} is {self.actual})"
        return f"{wanted} {verb}, and {why}{actual if self.actual else ''}"


_NOUNS = {"bud": "budget", "uri": "part"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The permit that lacked least: what did not fit, in words, and the tests that failed.

    `about_this` if it is about this very thing and operation: then it names nothing else.
    """

    rule: Reason
    lacks: tuple[str, ...]
    failed: tuple[FailedTest, ...]
    about_this: bool = False


def nearest_permit(policy_set: PolicySet, request: Request) -> NearMiss | None:
    """Return the permit that lacked least; None if there are no permits at all."""
    best: tuple[tuple[int, int, str, int, int], NearMiss] | None = None
    for rule in policy_set.rules:
        if rule.effect is not Effect.PERMIT:
            continue
        lacks = _lacks(rule, request)
        weight = sum(each for each, _ in lacks)
        if best is not None and weight > best[0][0]:
            continue
        failed: tuple[FailedTest, ...] = ()
        if rule.condition is not None:
            failed = tuple(_failed(rule, rule.condition, request, policy_set.limits))
        reason = Reason(rule=rule.id, place=rule.place, effect=Effect.PERMIT, word=rule.word)
        miss = NearMiss(
            rule=reason,
            lacks=tuple(lack for _, lack in lacks),
            failed=failed,
            about_this=all(each < _ELSEWHERE for each, _ in lacks),
        )
        place = reason.place
        key = (weight, len(failed), place.path, place.line, place.column)
        if best is None or key < best[0]:
            best = (key, miss)
    return best[1] if best is not None else None


_ELSEWHERE = 4
"""What weighs so much is about another thing."""


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


def _failed(
    rule: Rule,
    condition: Condition,
    request: Request,
    limits: PolicyLimits,
    *,
    negated: bool = False,
) -> list[FailedTest]:
    """Return the tests because of which a condition is not what it must be."""
    parts = _uri_parts(rule, request)
    answer = compile_condition(condition, limits)(request.context, request.resource, parts)
    if answer is (not negated):
        return []
    match condition:
        case Not():
            return _failed(rule, condition.part, request, limits, negated=not negated)
        case AllOf() | AnyOf():
            return [
                test
                for part in condition.parts
                for test in _failed(rule, part, request, limits, negated=negated)
            ]
        case _:
            return [
                _failed_test(test, request, parts, errored=answer is None, negated=negated)
                for test in tests_of(condition)
            ]


def _uri_parts(rule: Rule, request: Request) -> Mapping[str, str]:
    for target in rule.targets:
        found = uri_parts(target.names, request.resource.name)
        if found:
            return found
    return {}


def _failed_test(
    test: Test | Fact,
    request: Request,
    parts: Mapping[str, str],
    *,
    errored: bool,
    negated: bool,
) -> FailedTest:
    if not isinstance(test, Test):
        return FailedTest(
            operand=fact_words(test),
            operator="",
            expected="",
            actual="",
            errored=errored,
            negated=negated,
        )
    operator, expected = check_words(test.check)
    return FailedTest(
        operand=operand_words(test.operand),
        operator=operator,
        expected=expected,
        actual=_actual(test.operand, request, parts),
        errored=errored,
        negated=negated,
    )


def _actual(operand: Operand, request: Request, parts: Mapping[str, str]) -> str:
    match operand:
        case Argument(pointer=pointer) | Elements(pointer=pointer):
            return type_name(look_up(request.context.arguments, pointer.keys))
        case Left(metered=metered):
            return type_name(request.context.left.get(metered.value, MISSING))
        case UriPart(name=name):
            return type_name(parts.get(name, MISSING))
        case _:
            return ""
