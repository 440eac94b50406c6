"""The reference monitor: the only maker of permits. Imported by the broker alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from orchestrator.authority._mint import Permit, Stamp
from orchestrator.authority.approval import Approval
from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.authority.standing import Standing
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId
from policies import Decision, Effect

__all__ = ["Gate", "Permit", "Stamp"]

_PERMIT: Final = Effect.PERMIT


class Gate:
    """Admits calls. What it admits is checked again, by the permit, where the first byte is written.

    `now` is the clock of deadlines and approvals, in seconds.
    """

    def __init__(self, *, policy: Cell, now: Callable[[], float]) -> None:
        self._policy = policy
        self._now = now

    def stamp(self, snapshot: CapabilitySnapshot, capability: Capability) -> Stamp:
        """Note what a call depends on, before it is decided: what moves after that voids it.

        Raises AuthorityError if something that it depends on is dead.
        """
        stamp = Stamp(
            snapshot.cell, capability.target, capability.link, self._policy, capability.login
        )
        reason = stamp.lapsed()
        # most have no lease, and no clock is read for them
        if reason is None and stamp.lease_until != math.inf and self._now() > stamp.lease_until:
            reason = DenyReason.LEASE_OVER
        if reason is not None:
            raise AuthorityError(
                f"{capability.ref} is not available any more: {reason.value.replace('_', ' ')}",
                reason=reason,
            )
        return stamp

    def admit(
        self,
        *,
        call: CallId,
        capability: Capability,
        stamp: Stamp,
        decision: Decision,
        approval: Approval | None,
        params: bytes,
        deadline: float,
        standing: Standing | None = None,
    ) -> Permit:
        """Return leave to send this one call once. `params` are the bytes that it would go out with.

        `standing` is whose labels the decision looked at: a label more, and nothing goes out by it.

        Raises AuthorityError: what the call depends on has moved since `stamp` was taken, the
        decision is not a permit, or the approval does not fit what is about to happen.
        """
        reason = None if stamp.clear == stamp.turn.number else stamp.lapsed()
        if reason is None and decision.effect is not _PERMIT:
            reason = self._undecided(call, capability, stamp, decision, approval, params)
        if reason is not None:
            rule = str(decision.reasons[0]) if decision.reasons else ""
            raise AuthorityError(
                f"{capability.ref} is refused: {reason.value.replace('_', ' ')}",
                reason=reason,
                rule=rule,
            )
        return Permit(call, stamp, deadline, self._now, standing)

    def _undecided(
        self,
        call: CallId,
        capability: Capability,
        stamp: Stamp,
        decision: Decision,
        approval: Approval | None,
        params: bytes,
    ) -> DenyReason | None:
        if decision.effect is Effect.FORBID:
            return DenyReason.NO_PERMIT if decision.by_default else DenyReason.FORBIDDEN
        if approval is None:
            return DenyReason.ASK_UNANSWERED
        fits = (
            approval.call == call
            and approval.agent_incarnation == stamp.agent.incarnation
            and approval.policy_generation == stamp.policy_generation
            and approval.definition_digest == capability.ref.digest
            and approval.params == params
        )
        if not fits:
            return DenyReason.APPROVAL_STALE
        if self._now() > approval.expires:
            return DenyReason.APPROVAL_EXPIRED
        return None if approval.use() else DenyReason.APPROVAL_USED
