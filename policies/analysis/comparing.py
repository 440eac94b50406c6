"""Whether one set of policies allows more than another: a request that shows it, or that none can.

Nothing is said to be proved that was not looked at: where some requests are left, the answer is "not
proved". A request that shows something is one that the evaluator itself decides so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice

from policies.analysis.patience import SOLVER_COST, Patience
from policies.analysis.proving import Answer, search
from policies.analysis.spaces import Side, Space, spaces
from policies.evaluation import PolicySet
from policies.evaluation.conditions import compile_condition
from policies.evaluation.ready import who_fits
from policies.limits import PolicyLimits
from policies.model import (
    Decision,
    Effect,
    Never,
    Request,
    Rule,
    RuleWord,
)

__all__ = ["Claim", "Proof", "Widening", "breaks", "compare", "subset"]

_RANK = {Effect.FORBID: 0, Effect.ASK: 1, Effect.PERMIT: 2}


class Proof(Enum):
    """What is known of a claim about all requests."""

    PROVED = "proved"
    REFUTED = "refuted"
    NOT_PROVED = "not proved"
    """No request against it was found, and not all that rules can tell apart were looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Widening:
    """A request, and what each side says to it: the new one allows more. `old` may be missing."""

    request: Request
    new: Decision
    old: Decision | None = None

    def to_text(self) -> str:
        """Return the request and the rules that decide it, on a few lines."""
        request = self.request
        lines = [f"{request.action.value} {request.resource.server}/{request.resource.name}"]
        lines += [f"  {name}: {value}" for name, value in _said(request)]
        rules = ", ".join(str(reason) for reason in self.new.reasons)
        was = f", before {self.old.effect.value}" if self.old is not None else ""
        lines.append(f"  {self.new.effect.value} by {rules}{was}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        request = self.request
        return {
            "operation": request.action.value,
            "server": request.resource.server,
            "kind": request.resource.kind,
            "name": request.resource.name,
            **dict(_said(request)),
            "effect": self.new.effect.value,
            "by": [reason.rule for reason in self.new.reasons],
            "before": None if self.old is None else self.old.effect.value,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What came of a claim. `witnesses` refute it; `open` are kinds of requests left to look at."""

    proof: Proof
    witnesses: tuple[Widening, ...] = ()
    open: tuple[str, ...] = ()


def compare(old: PolicySet, new: PolicySet, *, limits: PolicyLimits | None = None) -> Claim:
    """Return what `new` allows that `old` did not: one request for each rule that newly allows."""
    bounds = limits or new.limits
    return _widened(Side(old), Side(new), bounds, Patience(bounds), first_only=False)


def subset(
    child: PolicySet,
    parent: PolicySet,
    *,
    delegable: bool = False,
    limits: PolicyLimits | None = None,
    patience: Patience | None = None,
) -> Claim:
    """Return whether `parent` allows all that `child` allows, and asks no more about it.

    With `delegable`, whether the parent may hand on all that the child may do. `patience` is shared
    by claims that are looked at together.
    """
    bounds = limits or child.limits
    patience = patience or Patience(bounds)
    return _widened(Side(parent, delegable), Side(child), bounds, patience, first_only=True)


def breaks(
    policy_set: PolicySet,
    never: Never,
    *,
    limits: PolicyLimits | None = None,
    patience: Patience | None = None,
) -> Claim:
    """Return whether some request that `never` speaks of is permitted. To ask is not to permit."""
    bounds = limits or policy_set.limits
    patience = patience or Patience(bounds)
    holds = None if never.condition is None else compile_condition(never.condition, bounds)

    def against(request: Request) -> Widening | None:
        decision = policy_set.decide(request)
        concerned = _concerned(never, request) and (
            holds is None or holds(request.context, request.resource, {}) is True
        )
        permitted = decision.effect is Effect.PERMIT and concerned
        return Widening(request=request, new=decision) if permitted else None

    side = Side(policy_set)
    cut = spaces((side,), bounds, patience, (never,))
    concerned = (space for space in cut if all(space.rules))

    def prove(space: Space) -> Answer | None:
        return search(space, bounds, never)

    return _searched(concerned, against, prove, bounds, patience, first_only=True)


def _widened(
    old: Side, new: Side, limits: PolicyLimits, patience: Patience, *, first_only: bool
) -> Claim:
    def against(request: Request) -> Widening | None:
        now = new.policy_set.decide(request)
        if now.effect is Effect.FORBID:
            return None
        asked = Request(
            principal=request.principal,
            action=old.action(request.action),
            resource=request.resource,
            context=request.context,
        )
        before = old.policy_set.decide(asked)
        if _RANK[now.effect] <= _RANK[before.effect]:
            return None
        return Widening(request=request, new=now, old=before)

    # where no rule of the new side allows, it allows no more than the other
    allowing = (RuleWord.PERMIT, RuleWord.ASK)
    concerned = (
        space
        for space in spaces((old, new), limits, patience)
        if any(isinstance(rule, Rule) and rule.word in allowing for rule in space.rules[1])
    )

    def prove(space: Space) -> Answer | None:
        return search(space, limits)

    return _searched(concerned, against, prove, limits, patience, first_only=first_only)


def _searched(
    concerned: Iterator[Space],
    against: Callable[[Request], Widening | None],
    prove: Callable[[Space], Answer | None],
    limits: PolicyLimits,
    patience: Patience,
    *,
    first_only: bool,
) -> Claim:
    found: dict[tuple[object, ...], Widening] = {}
    left: dict[str, None] = {}
    for space in concerned:
        whole = space.size <= limits.analysis_requests_max
        asked = sum(map(len, space.rules))
        requests = patience.of(islice(space.requests(), limits.analysis_requests_max), asked)
        witness = next((seen for each in requests if (seen := against(each)) is not None), None)
        if witness is None and not (whole and space.complete and not patience.over):
            patience.take(SOLVER_COST)
            answer = None if patience.over else prove(space)
            if answer is not None and answer.request is not None:
                witness = against(answer.request)
            if witness is None and not (answer is not None and answer.none and space.complete):
                left[_shown(space)] = None
        if witness is not None:
            found.setdefault(_rules_of(witness), witness)
            if first_only:
                break
    if patience.over and not (found and first_only):
        left["what is left after so many rules were asked"] = None
    if found:
        return Claim(proof=Proof.REFUTED, witnesses=tuple(found.values()), open=tuple(left))
    return Claim(proof=Proof.NOT_PROVED if left else Proof.PROVED, open=tuple(left))


def _rules_of(witness: Widening) -> tuple[object, ...]:
    rules = tuple(reason.rule for reason in witness.new.reasons)
    before = witness.old.effect if witness.old is not None else None
    return (witness.request.action, witness.new.effect, before, *rules)


def _concerned(never: Never, request: Request) -> bool:
    principal, who = request.principal, never.who
    fits = who_fits(who)
    return (who.roles is None or principal.role in who.roles) and (fits is None or fits(principal))


def _shown(space: Space) -> str:
    return f"{space.action.value} {space.resource.server}/{space.resource.name}"


def _said(request: Request) -> Iterator[tuple[str, object]]:
    """Yield what a request says besides what it asks for, only what is not as usual."""
    principal, context, resource = request.principal, request.context, request.resource
    yield "role", principal.role
    if principal.agent:
        yield "agent", principal.agent
    if principal.depth:
        yield "depth", principal.depth
    if principal.interactive:
        yield "interactive", True
    if principal.above:
        yield "above", [each.agent or each.role for each in principal.above]
    if resource.digest:
        yield "digest", resource.digest
    if context.arguments:
        yield "arguments", dict(context.arguments)
    if context.labels:
        yield "labels", [f"{each.name} from {each.server}" for each in sorted(context.labels)]
    if context.wall is not None:
        yield "time", context.wall
    if context.left:
        yield "left", dict(context.left)
