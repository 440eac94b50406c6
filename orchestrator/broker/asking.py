"""Asking a person about one call: who waits, for how long, and what their yes is bound to."""

from __future__ import annotations

from contextlib import suppress

import anyio

from orchestrator.authority.approval import Approval
from orchestrator.authority.gate import Stamp
from orchestrator.authority.ledger import Ledger
from orchestrator.authority.snapshot import Capability
from orchestrator.broker.flights import WaitFlight
from orchestrator.broker.ports import BrokerPorts
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ports import ApprovalRequest

__all__ = ["Asking"]


class Asking:
    """Where `ask` leads. A yes is good for as long as it was waited for."""

    def __init__(self, *, ledger: Ledger, ports: BrokerPorts) -> None:
        self._ledger = ledger
        self._ports = ports

    async def ask(
        self, wish: Wish, capability: Capability, stamp: Stamp, rule: str, seconds: float
    ) -> Approval:
        """Return a person's yes to exactly this call. `seconds` is how long it is waited for.

        Raises AuthorityError: nobody can be asked here, nobody answered in time, the answer was
        no, or what the call depends on ended while the person was thinking.
        """
        request = ApprovalRequest(
            agent=wish.view.agent,
            ref=capability.ref,
            call=wish.id,
            arguments=wish.values,
            rule=rule,
        )
        scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        flight = WaitFlight(stamp=stamp, scope=scope)
        answer: bool | None = None
        # whoever looks at the run meanwhile sees what led here; what cannot be kept stops the send
        with suppress(OSError):
            self._ports.audit.flush()
        self._ledger.depart(flight)
        try:
            with scope, self._ports.telemetry.waiting():
                answer = await self._ports.approver.approve(request)
        finally:
            self._ledger.arrive(flight)
        self._ports.audit.append(
            "approval",
            {
                "call": wish.id,
                "agent": wish.view.agent,
                "rule": rule,
                "approved": answer is True and flight.reason is None,
            },
        )
        if flight.reason is not None:
            reason, why = flight.reason, flight.reason.value.replace("_", " ")
        elif answer is None:
            reason, why = DenyReason.ASK_UNANSWERED, "nobody answered in time"
        elif not answer:
            reason, why = DenyReason.ASK_DECLINED, "a person said no"
        else:
            return self._approval(wish, capability, stamp, seconds)
        raise AuthorityError(f"{wish.ref}: {why}", reason=reason, rule=rule)

    def _approval(
        self, wish: Wish, capability: Capability, stamp: Stamp, seconds: float
    ) -> Approval:
        return Approval(
            call=wish.id,
            agent_incarnation=stamp.agent.incarnation,
            policy_generation=stamp.policy_generation,
            definition_digest=capability.ref.digest,
            params=wish.params,
            expires=self._ports.clock.now() + seconds,
        )
