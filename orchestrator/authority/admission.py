"""What a new agent may reach: what is on offer ∩ its policy ∩ its grant ∩ what its parent may delegate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import Capability, CapabilityTable, Row
from orchestrator.core.calls import ToolSpec
from orchestrator.core.capability import CapabilityRef
from policies import Effect, Operation, PolicySet, Principal, Resource, Verdict
from policies.patterns import NamePattern

__all__ = ["Grant", "Offer", "attenuate"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a parent hands to a child, by `server/pattern`. It only narrows; None leaves the policy alone.

    Patterns are those of the policy language: exact names, `*`, `{a,b}`.
    """

    tools: tuple[str, ...] | None = None

    def admits(self, ref: CapabilityRef) -> bool:
        """True if the grant does not leave this capability out."""
        if self.tools is None:
            return True
        for entry in self.tools:
            server, _, pattern = entry.partition("/")
            if server == ref.server and NamePattern.parse(pattern).matches(ref.name):
                return True
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One capability of a ready server, before anybody decided on it."""

    ref: CapabilityRef
    target: Cell
    link: Cell
    spec: ToolSpec


def attenuate(
    offers: Iterable[Offer],
    *,
    principal: Principal,
    policy: PolicySet,
    grant: Grant,
    parent: Principal | None,
) -> CapabilityTable:
    """Return the table of a new agent. Nothing in it exceeds any of the four sets (I6).

    `parent` is the agent that spawns it; None is the session itself, whose acts are a person's.
    An agent may pass on only what a `delegate` rule permits it without condition.
    """
    capabilities: list[Capability] = []
    rows: list[Row] = []
    for offer in offers:
        resource = Resource(offer.ref.server, offer.ref.kind.value, offer.ref.name)
        verdict = policy.verdict(principal, Operation.CALL, resource)
        granted = grant.admits(offer.ref) and (
            parent is None or _delegable(policy.verdict(parent, Operation.DELEGATE, resource))
        )
        row = Row(
            ref=offer.ref,
            effects=verdict.possible,
            rule=_deciding_rule(verdict),
            granted=granted,
        )
        rows.append(row)
        if row.visible:
            capabilities.append(
                Capability(
                    ref=offer.ref,
                    verdict=verdict,
                    target=offer.target,
                    link=offer.link,
                    spec=offer.spec,
                )
            )
    return CapabilityTable(principal=principal, policy=policy, capabilities=capabilities, rows=rows)


def _delegable(verdict: Verdict) -> bool:
    return verdict.constant is not None and verdict.constant.effect is Effect.PERMIT


def _deciding_rule(verdict: Verdict) -> str:
    constant = verdict.constant
    return str(constant.reasons[0]) if constant is not None and constant.reasons else ""
