"""Runs the tests that policies bring along: each a request, and what must come of it. Reads no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from policies.evaluation import PolicySet
from policies.explanation import explain
from policies.model import Case, Context, Decision, Principal, Request, Resource

__all__ = ["Outcome", "request_of", "run_tests"]

_PINNED = "0" * 64
"""Stands for whatever digest a definition has that is pinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one test. `why` says what was otherwise; empty if it passed."""

    case: Case
    decision: Decision
    why: str = ""

    @property
    def passed(self) -> bool:
        """True if the decision is what the test says."""
        return not self.why


def run_tests(policy_set: PolicySet) -> tuple[Outcome, ...]:
    """Decide each test of a set, and return what came of them, in the order of the files."""
    return tuple(_outcome(policy_set, case) for case in policy_set.tests)


def request_of(case: Case) -> Request:
    """Return the request that a test is about."""
    above = tuple(Principal(role=role, agent=role, depth=n) for n, role in enumerate(case.below, 1))
    return Request(
        principal=Principal(
            role=case.role,
            agent=case.agent,
            depth=case.depth,
            interactive=case.interactive,
            above=above,
        ),
        action=case.operation,
        resource=Resource(
            case.server,
            case.kind.value,
            case.name,
            _PINNED if case.pinned else "",
            case.annotations,
        ),
        context=Context(
            # a loaded set's tests hold plain values only
            arguments=cast("Mapping[str, object]", case.arguments),
            labels=case.labels,
            wall=case.at,
            left=case.left,
        ),
    )


def _outcome(policy_set: PolicySet, case: Case) -> Outcome:
    request = request_of(case)
    decision = policy_set.decide(request)
    if decision.effect is not case.effect:
        grounds = " ".join(explain(policy_set, request).to_text().split())
        return Outcome(case=case, decision=decision, why=f"not {case.effect.value}, but {grounds}")
    found = tuple(sorted(reason.rule for reason in decision.reasons))
    if case.by is not None and found != case.by:
        return Outcome(
            case=case,
            decision=decision,
            why=f"decided by {_named(found)}, and not by {_named(case.by)}",
        )
    return Outcome(case=case, decision=decision)


def _named(rules: tuple[str, ...]) -> str:
    return ", ".join(f'"{rule}"' for rule in rules) or "default"
