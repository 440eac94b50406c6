"""What a span of a call says of its authority: names, digests and numbers of ours, never content."""

from __future__ import annotations

from orchestrator.authority.snapshot import CapabilitySnapshot
from orchestrator.broker.deciding import rule_of
from orchestrator.core.errors import AuthorityError
from orchestrator.core.ports import Span
from orchestrator.telemetry import names
from policies import Decision

__all__ = ["tell_decision", "tell_refusal"]


def tell_decision(
    span: Span, snapshot: CapabilitySnapshot | None, decision: Decision | None
) -> None:
    """Say from which view the call was made, and by which rule of which policy it was decided."""
    if snapshot is not None:
        span.set(names.SNAPSHOT_ID, snapshot.digest)
        span.set(names.POLICY_DIGEST, snapshot.table.policy.digest)
        span.set(names.GENERATION, snapshot.cell.generation)
    if decision is not None:
        span.set(names.AUTHORITY_DECISION, decision.effect.value)
        span.set(names.POLICY_RULE, rule_of(decision))


def tell_refusal(span: Span, error: AuthorityError) -> None:
    """Say why the call was refused, and what of it the server may have seen."""
    span.fail(error.reason.value)
    span.set(names.AUTHORITY_REASON, error.reason.value)
    span.set(names.DELIVERY, error.delivery.value)
    span.set(names.BYTES_SENT, error.bytes_sent)
