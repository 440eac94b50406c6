"""What is decided on one call: its agent's frozen verdict, every policy since, and all above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from orchestrator.authority.ceilings import Ceiling, broken_pin
from orchestrator.authority.history import PolicyHistory
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import AgentId
from policies import Context, Decision, Effect, Label, Operation, Principal, Request, explain

__all__ = ["Deciding", "asked_by", "rule_of"]

_STRICTNESS: Final = {Effect.PERMIT: 0, Effect.ASK: 1, Effect.FORBID: 2}


class Deciding:
    """Decides calls. `wall` is the clock of policies that look at the time."""

    def __init__(self, history: PolicyHistory, wall: Callable[[], float]) -> None:
        self.history = history
        self._wall = wall

    def decide(
        self,
        wish: Wish,
        snapshot: CapabilitySnapshot,
        capability: Capability,
        *,
        labels: frozenset[Label] | None = None,
    ) -> Decision:
        """Return the strictest of what has a say, with the duties of all.

        `labels` stand in for what clings to the agent now.

        Raises AuthorityError for an argument that differs from what a spawn has fixed.
        """
        table = snapshot.table
        current = self.history.present is table.policy
        if current and (constant := capability.constant) is not None:
            return constant
        context = self._context(wish, labels)
        self._keep_pins(wish, capability)
        decision = capability.verdict.decide(context)
        for ceiling in capability.ceilings:
            decision = _stricter(decision, ceiling.refusal(context))
        if current:
            return decision
        since = self.history.since(table.policy)
        if not since:
            raise AuthorityError(
                f"{wish.ref}: agent {wish.view.agent!r} started under a policy that is not kept",
                reason=DenyReason.POLICY_CHANGED,
            )
        principal = _named(table.principal, wish.view.agent)
        for policy in since[1:]:
            decision = _stricter(
                decision,
                policy.decide(
                    Request(
                        principal=principal,
                        action=capability.operation,
                        resource=capability.resource,
                        context=context,
                    )
                ),
            )
            # what an agent above may not hand on any more, its descendants may not use (I6)
            for above in principal.above:
                handed = policy.verdict(above, Operation.DELEGATE, capability.resource)
                ceiling = Ceiling(verdict=handed, depth=principal.depth, children=0)
                decision = _stricter(decision, ceiling.refusal(context))
        return decision

    def not_permitted(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability
    ) -> AuthorityError:
        """Say what the nearest permit for this very tool lacked; nothing about other tools."""
        question = Request(
            principal=snapshot.table.principal,
            action=capability.operation,
            resource=capability.resource,
            context=self._context(wish),
        )
        policies = self.history.since(snapshot.table.policy)
        # One of them permits it after a change of policy, and has no nearest permit then.
        nearest = next(
            (
                found
                for policy in reversed(policies)
                if (found := explain(policy, question).nearest) is not None
            ),
            None,
        )
        if nearest is None or not nearest.about_this:
            return AuthorityError(f"{wish.ref} is refused: no permit", reason=DenyReason.NO_PERMIT)
        return AuthorityError(
            f"{wish.ref} is refused: no permit",
            reason=DenyReason.NO_PERMIT,
            rule=f"nearest {nearest.rule}",
            why="; ".join((*nearest.lacks, *map(str, nearest.failed))),
        )

    def _context(self, wish: Wish, labels: frozenset[Label] | None = None) -> Context:
        standing = wish.view.standing
        # by place: for a class, keywords cost as much again as all that it does
        return Context(
            wish.values,
            standing.labels if labels is None else labels,
            self._wall(),
            standing.spending.left(),
        )

    def _keep_pins(self, wish: Wish, capability: Capability) -> None:
        broken = broken_pin(capability.pins, wish.values) if capability.pins else None
        if broken is not None:
            raise AuthorityError(
                f"{wish.ref}: the argument {broken.pointer} is fixed, and this is not its value",
                reason=DenyReason.ARGUMENT_FIXED,
                fix=f"call it with {broken.pointer} as {broken.value!r}",
            )


def _named(principal: Principal, agent: AgentId) -> Principal:
    """Return the principal with all names: a table that several agents share has none."""
    parts = agent.split("/")
    above = tuple(
        replace(
            each,
            agent="/".join(parts[:depth]),
            above=tuple(replace(other, above=()) for other in principal.above[: depth - 1]),
        )
        for depth, each in enumerate(principal.above, 1)
    )
    return replace(principal, agent=agent, above=above)


def rule_of(decision: Decision) -> str:
    """Return the first rule that decided, with its place; empty by default."""
    return decision.reasons[0].text if decision.reasons else ""


def asked_by(decision: Decision) -> str:
    """Return what a person is told of why they are asked: the first rule, and whether it had a value."""
    return decision.reasons[0].marked if decision.reasons else ""


def _stricter(one: Decision, other: Decision | None) -> Decision:
    """Return the stricter decision, with the duties of both."""
    if other is None:
        return one
    first, second = sorted((one, other), key=lambda each: -_STRICTNESS[each.effect])
    duties = tuple(dict.fromkeys((*first.duties, *second.duties)))
    return Decision(effect=first.effect, reasons=first.reasons, duties=duties)
