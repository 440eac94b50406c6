"""Says why: the rule that decided, those that lost, and what the nearest permit lacked.

Shows the types of arguments, never their values: an explanation may end in a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from policies.evaluation import (
    PolicySet,
    compile_condition,
    depth_fits,
    kind_fits,
    look_up,
    tests_of,
    type_name,
)
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Condition,
    Decision,
    Effect,
    Exists,
    Not,
    OneOf,
    Reason,
    Request,
    Rule,
    Scalar,
    Template,
    Test,
    Under,
)
from policies.patterns import matcher_of

__all__ = ["Explanation", "FailedTest", "NearMiss", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test of a condition that kept a permit from speaking.

    `actual` is the type of the argument, or `missing`; `errored` if the test had no value.
    `negated` if the test stands under `not` or `unless`, so that it would have had to be false.
    """

    pointer: str
    operator: str
    expected: str
    actual: str
    errored: bool
    negated: bool

    def __str__(self) -> str:
        wanted = f"{self.operator} {self.expected}".strip()
        verb = "must not hold" if self.negated else "must hold"
        why = (
            "it has no value" if self.errored else "it does not" if not self.negated else "it does"
        )
        return f"arg({self.pointer}) {wanted} {verb}, and {why} (the argument is {self.actual})"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearMiss:
    """The permit that lacked least: what did not fit, in words, and the tests that failed."""

    rule: Reason
    lacks: tuple[str, ...]
    failed: tuple[FailedTest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision with its grounds.

    Attributes:
        decision: what `decide` says.
        deciding: the rules that decided; empty if nothing permits the request.
        losing: rules that spoke and were overruled.
        nearest: the permit that lacked least, if there was no permit.
    """

    request: Request
    decision: Decision
    deciding: tuple[Reason, ...]
    losing: tuple[Reason, ...]
    nearest: NearMiss | None

    def to_text(self) -> str:
        """Return lines for a person."""
        request = self.request
        what = f"{request.resource.server}/{request.resource.name}"
        role = request.principal.role
        lines = [f"{self.decision.effect.value}: {request.action.value} on {what} for role {role}"]
        lines += [f"  by {reason.effect.value} {_marked(reason)}" for reason in self.deciding]
        if not self.deciding:
            lines.append("  no rule permits it (default deny)")
        lines += [f"  over {reason.effect.value} {_marked(reason)}" for reason in self.losing]
        if self.nearest is not None:
            lines.append(f"  nearest permit {self.nearest.rule}:")
            lines += [f"    {lack}" for lack in self.nearest.lacks]
            lines += [f"    {test}" for test in self.nearest.failed]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return JSON values, without any argument's value."""
        request = self.request
        nearest = self.nearest
        return {
            "effect": self.decision.effect.value,
            "operation": request.action.value,
            "server": request.resource.server,
            "kind": request.resource.kind,
            "name": request.resource.name,
            "role": request.principal.role,
            "by_default": self.decision.by_default,
            "deciding": [_reason_json(reason) for reason in self.deciding],
            "losing": [_reason_json(reason) for reason in self.losing],
            "nearest_permit": None
            if nearest is None
            else {
                **_reason_json(nearest.rule),
                "lacks": list(nearest.lacks),
                "failed": [
                    {
                        "pointer": test.pointer,
                        "operator": test.operator,
                        "expected": test.expected,
                        "actual": test.actual,
                        "errored": test.errored,
                        "negated": test.negated,
                    }
                    for test in nearest.failed
                ],
            },
        }


def explain(policy_set: PolicySet, request: Request) -> Explanation:
    """Decide `request` and say why. Slow beside `decide`: it looks at every rule."""
    decision = policy_set.decide(request)
    spoken = [
        reason
        for rule in policy_set.rules
        if (reason := _spoken(rule, request, policy_set.limits)) is not None
    ]
    losing = [reason for reason in spoken if reason.effect is not decision.effect]
    permitted = any(reason.effect is Effect.PERMIT for reason in spoken)
    return Explanation(
        request=request,
        decision=decision,
        deciding=decision.reasons,
        losing=tuple(sorted(losing, key=_position)),
        nearest=None if permitted else _nearest(policy_set, request),
    )


def _spoken(rule: Rule, request: Request, limits: PolicyLimits) -> Reason | None:
    """Return the rule's word on the request, the names of other rules left aside."""
    named = matcher_of(rule.target.names)(request.resource.name)
    if _lacks(rule, request) or named is False:
        return None
    holds: bool | None = True
    if rule.condition is not None:
        holds = compile_condition(rule.condition, limits)(request.context.arguments)
    errored = named is None or holds is None
    if holds is False or (errored and rule.effect is Effect.PERMIT):
        return None
    return Reason(rule=rule.id, place=rule.place, effect=rule.effect, errored=errored)


def _nearest(policy_set: PolicySet, request: Request) -> NearMiss | None:
    misses: list[tuple[tuple[int, int, str, int, int], NearMiss]] = []
    for rule in policy_set.rules:
        if rule.effect is Effect.PERMIT:
            lacks = _lacks(rule, request)
            failed: tuple[FailedTest, ...] = ()
            if rule.condition is not None:
                failed = tuple(_failed(rule.condition, request, policy_set.limits, negated=False))
            reason = Reason(rule=rule.id, place=rule.place, effect=rule.effect)
            miss = NearMiss(rule=reason, lacks=tuple(lack for _, lack in lacks), failed=failed)
            misses.append(
                ((sum(weight for weight, _ in lacks), len(failed), *_position(reason)), miss)
            )
    return min(misses, key=lambda each: each[0])[1] if misses else None


def _lacks(rule: Rule, request: Request) -> tuple[tuple[int, str], ...]:
    """Return what does not fit besides the condition, each with its weight, the gravest first."""
    target, resource, principal = rule.target, request.resource, request.principal
    found: list[tuple[int, str]] = []
    if target.servers is not None and resource.server not in target.servers:
        found.append((8, f"it is about server {target.written}"))
    named = matcher_of(target.names)(resource.name)
    if named is not True:
        what = "has no plain form" if named is None else "does not match"
        found.append((4, f"the name {what}: the rule names {target.names.text}"))
    if request.action not in rule.operations:
        operations = ", ".join(sorted(operation.value for operation in rule.operations))
        found.append((4, f"it is about {operations}"))
    if target.kind is not None and not kind_fits(target.kind, resource.kind):
        found.append((2, f"it is about a {target.kind.value}"))
    if rule.roles is not None and principal.role not in rule.roles:
        found.append((2, f"it is for role {', '.join(sorted(rule.roles))}"))
    if not depth_fits(rule.depth, principal.depth):
        found.append((2, f"it does not reach agents at depth {principal.depth}"))
    return tuple(found)


def _failed(
    condition: Condition, request: Request, limits: PolicyLimits, *, negated: bool
) -> list[FailedTest]:
    """Return the tests because of which a condition is not what it must be."""
    arguments = request.context.arguments
    if compile_condition(condition, limits)(arguments) is (not negated):
        return []
    match condition:
        case Not():
            return _failed(condition.part, request, limits, negated=not negated)
        case AllOf() | AnyOf():
            return [
                test
                for part in condition.parts
                for test in _failed(part, request, limits, negated=negated)
            ]
        case _:
            return [
                _failed_test(test, arguments, limits, negated=negated)
                for test in tests_of(condition)
            ]


def _failed_test(
    test: Test, arguments: Mapping[str, object], limits: PolicyLimits, *, negated: bool
) -> FailedTest:
    operator, expected = _wanted(test)
    return FailedTest(
        pointer=test.pointer.text,
        operator=operator,
        expected=expected,
        actual=type_name(look_up(arguments, test.pointer.keys)),
        errored=compile_condition(test, limits)(arguments) is None,
        negated=negated,
    )


def _wanted(test: Test) -> tuple[str, str]:
    match test:
        case Compare():
            return test.comparison.value, _written(test.literal)
        case OneOf():
            return "in", f"[{', '.join(_written(option) for option in test.options)}]"
        case Between():
            return "in", f"{test.low}..{test.high}"
        case Under():
            return "under", _written(test.prefix)
        case Exists():
            return "exists", ""
        case _:
            assert_never(test)


def _written(literal: Scalar) -> str:
    if isinstance(literal, str):
        escaped = literal.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(literal, Template):
        raise TypeError("a loaded set holds no template")
    if literal is None or isinstance(literal, bool):
        return {None: "null", True: "true", False: "false"}[literal]
    return str(literal)


def _marked(reason: Reason) -> str:
    return f"{reason} (its condition has no value)" if reason.errored else str(reason)


def _position(reason: Reason) -> tuple[str, int, int]:
    return reason.place.path, reason.place.line, reason.place.column


def _reason_json(reason: Reason) -> dict[str, object]:
    return {
        "rule": reason.rule,
        "effect": reason.effect.value,
        "path": reason.place.path,
        "line": reason.place.line,
        "errored": reason.errored,
    }
