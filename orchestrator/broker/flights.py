"""What is under way and can be interrupted: a request on the wire, a wait for a person."""

from __future__ import annotations

import anyio

from mcp_client.session import PendingRequest
from orchestrator.authority.gate import Permit, Stamp
from orchestrator.broker.wire import Link
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason

__all__ = ["CallFlight", "WaitFlight"]


class CallFlight:
    """A request that was handed to a client session under a permit."""

    __slots__ = ("link", "pending", "permit")

    def __init__(self, *, permit: Permit, pending: PendingRequest, link: Link) -> None:
        self.permit = permit
        self.pending = pending
        self.link = link

    def lapsed(self) -> DenyReason | None:
        """Return why the call may not go on; None if it may."""
        return self.permit.lapsed()

    def interrupt(self, reason: DenyReason) -> None:
        """End the call at once. The server is told if it may have seen the request."""
        begun = self.pending.delivery is not Delivery.NOT_SENT
        self.pending.fail(
            AuthorityError(
                f"stopped: {reason.value.replace('_', ' ')}",
                reason=reason,
                delivery=self.pending.delivery,
                bytes_sent=self.pending.bytes_sent,
            )
        )
        if begun:
            self.link.session.cancel(self.pending, guard=self.link.cancel_guard)


class WaitFlight:
    """A wait for a person's answer, before anything was admitted."""

    __slots__ = ("_scope", "_stamp", "reason")

    def __init__(self, *, stamp: Stamp, scope: anyio.CancelScope) -> None:
        self._stamp = stamp
        self._scope = scope
        self.reason: DenyReason | None = None

    def lapsed(self) -> DenyReason | None:
        """Return why the wait has no point any more; None if it has."""
        return self._stamp.lapsed()

    def interrupt(self, reason: DenyReason) -> None:
        """End the wait at once."""
        self.reason = reason
        self._scope.cancel()
