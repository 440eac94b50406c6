"""What is under way and can be interrupted: a request on the wire, a wait for a person."""

from __future__ import annotations

from typing import NamedTuple

import anyio

from mcp_client.session import PendingRequest
from orchestrator.authority.gate import Permit, Stamp
from orchestrator.authority.ledger import Ledger
from orchestrator.broker.wire import Link
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason

__all__ = ["CallFlight", "DrainFlight", "Draining", "RenewalFlight", "Seen", "WaitFlight"]


class DrainFlight:
    """A frame that had begun when its call ended, and of which bytes may still leave.

    It stays in the ledger until it is drained, whatever is taken back meanwhile: every receipt
    has to wait for it (I2).
    """

    __slots__ = ("_ledger", "_permit", "link", "pending")

    def __init__(self, ledger: Ledger, permit: Permit, pending: PendingRequest, link: Link) -> None:
        self._ledger = ledger
        self._permit = permit
        self.pending = pending
        self.link = link

    def lapsed(self) -> DenyReason | None:
        """Return why the frame would not be begun any more; None if it would, or is all out."""
        return None if self.pending.drained else self._permit.lapsed()

    def interrupt(self, reason: DenyReason) -> None:
        """Stay: nobody waits for the call, but its bytes are not out yet."""
        self._ledger.depart(self)


class Draining:
    """The frames whose calls have ended before their last byte left: one a connection at most."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._flights: list[DrainFlight] = []

    def keep(self, permit: Permit, pending: PendingRequest, link: Link) -> None:
        """Keep a call's frame in the ledger until it is drained."""
        self.sweep()
        if not pending.drained and all(item.pending is not pending for item in self._flights):
            flight = DrainFlight(self._ledger, permit, pending, link)
            self._flights.append(flight)
            self._ledger.depart(flight)

    def sweep(self) -> None:
        """Forget those that are drained."""
        for flight in [item for item in self._flights if item.pending.drained]:
            self._flights.remove(flight)
            self._ledger.arrive(flight)


class Seen(NamedTuple):
    """What a request was handed over with: how often its session had begun anew, which credentials."""

    session: int
    credentials: object


class CallFlight:
    """A request that was handed to a client session under a permit.

    `session` and `credentials` are what `seen` consists of.
    """

    __slots__ = ("_credentials", "_draining", "_session", "link", "pending", "permit")

    def __init__(
        self,
        permit: Permit,
        pending: PendingRequest,
        link: Link,
        draining: Draining,
        session: int,
        credentials: object,
    ) -> None:
        self.permit = permit
        self.pending = pending
        self.link = link
        self._draining = draining
        self._session = session
        self._credentials = credentials

    @property
    def seen(self) -> Seen:
        """What the request was handed over with: hardly a call is turned away, and asks."""
        return Seen(self._session, self._credentials)

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
        self.leave()
        if begun:
            self.link.session.cancel(self.pending, guard=self.link.cancel_guard)

    def leave(self) -> None:
        """The call is over; what of its frame has not left yet is kept in view."""
        if not self.pending.drained:
            self._draining.keep(self.permit, self.pending, self.link)


class WaitFlight:
    """A wait for a person's answer, before anything was admitted."""

    __slots__ = ("_scope", "reason", "stamp")

    def __init__(self, *, stamp: Stamp, scope: anyio.CancelScope) -> None:
        self.stamp = stamp
        self._scope = scope
        self.reason: DenyReason | None = None

    def lapsed(self) -> DenyReason | None:
        """Return why the wait has no point any more; None if it has."""
        return self.stamp.lapsed()

    def interrupt(self, reason: DenyReason) -> None:
        """End the wait at once."""
        self.reason = reason
        self._scope.cancel()


class RenewalFlight(WaitFlight):
    """A wait of a call that was turned away, for the credentials with which it is decided anew.

    What only moves on meanwhile, as the login itself may, does not end the wait.
    """

    __slots__ = ()

    def lapsed(self) -> DenyReason | None:
        """Return what has ended for good; None if nothing has."""
        return self.stamp.ended()
