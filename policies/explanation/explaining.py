"""Says why: the rule that decided, those that lost, and what the nearest rule lacked.

Shows the types of arguments, never their values: an explanation may end in a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from policies.evaluation import PolicySet
from policies.explanation.nearest import NearMiss, lets_through, nearest_rule
from policies.model import Decision, Effect, Reason, Request

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A decision with its grounds.

    Attributes:
        decision: what `decide` says.
        deciding: the rules that decided; empty if nothing permits the request.
        losing: rules that spoke and were overruled.
    """

    request: Request
    decision: Decision
    deciding: tuple[Reason, ...]
    losing: tuple[Reason, ...]
    _let_through: bool = field(repr=False)
    _policy_set: PolicySet = field(repr=False, compare=False)

    @property
    def nearest(self) -> NearMiss | None:
        """The permit or ask that lacked least, if none let the request through."""
        return None if self._let_through else nearest_rule(self._policy_set, self.request)

    def to_text(self) -> str:
        """Return lines for a person."""
        request = self.request
        what = f"{request.resource.server}/{request.resource.name}"
        role = request.principal.role
        lines = [f"{self.decision.effect.value}: {request.action.value} on {what} for role {role}"]
        lines += [f"  by {_word(reason)} {reason.marked}" for reason in self.deciding]
        if not self.deciding:
            lines.append("  no rule permits it (default deny)")
        lines += [f"  over {_word(reason)} {reason.marked}" for reason in self.losing]
        lines += [f"  with {duty}" for duty in self.decision.duties]
        nearest = self.nearest
        if nearest is not None:
            lines.append(f"  nearest {_word(nearest.rule)} {nearest.rule.marked}:")
            lines += [f"    {lack}" for lack in nearest.lacks]
            lines += [f"    {test}" for test in nearest.failed]
        return "\n".join(lines)

    def to_agent(self) -> str:
        """Return one line for the agent that asked: nothing about what it cannot see.

        The nearest rule is told only if it is about this very thing; otherwise its name, or a
        pattern in it, would say what else there is.
        """
        if self.deciding:
            return f"{self.decision.effect.value} by {self.deciding[0].rule}"
        nearest = self.nearest
        if nearest is None or not nearest.about_this:
            return "no rule permits it"
        return f"no rule permits it; {'; '.join((*nearest.lacks, *map(str, nearest.failed)))}"

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
            "duties": [str(duty) for duty in self.decision.duties],
            "nearest": None
            if nearest is None
            else {
                **_reason_json(nearest.rule),
                "lacks": list(nearest.lacks),
                "failed": [
                    {
                        "operand": test.operand,
                        "operator": test.operator,
                        "expected": test.expected,
                        "actual": test.actual,
                        "flaw": test.flaw,
                        "errored": test.errored,
                        "negated": test.negated,
                    }
                    for test in nearest.failed
                ],
            },
        }


def explain(policy_set: PolicySet, request: Request) -> Explanation:
    """Decide `request` and say why. What the nearest rule lacked is worked out when it is asked."""
    verdict = policy_set.verdict(request.principal, request.action, request.resource)
    decision = verdict.decide(request.context)
    spoken = verdict.spoken(request.context)
    if policy_set.bounds is None:
        let_through = any(reason.effect is not Effect.FORBID for reason in spoken)
    else:
        let_through = all(lets_through(layer, request) for layer in policy_set.layers)
    return Explanation(
        request=request,
        decision=decision,
        deciding=decision.reasons,
        losing=tuple(reason for reason in spoken if reason.effect is not decision.effect),
        _let_through=let_through,
        _policy_set=policy_set,
    )


def _word(reason: Reason) -> str:
    return reason.effect.value if reason.word is None else reason.word.value


def _reason_json(reason: Reason) -> dict[str, object]:
    return {
        "rule": reason.rule,
        "effect": reason.effect.value,
        "word": _word(reason),
        "path": reason.place.path,
        "line": reason.place.line,
        "errored": reason.errored,
    }
