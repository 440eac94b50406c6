"""What a call waits for that its server turned away: a session begun anew, other credentials. It sends no call."""

from __future__ import annotations

from typing import Final

import anyio

from mcp_client.auth.errors import NeedsAuthorizationError
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.http.errors import AuthorizationRequiredError, SessionLostError
from mcp_client.session.asking import reason_of
from orchestrator.authority.gate import Gate
from orchestrator.authority.ledger import Ledger
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot
from orchestrator.broker.failing import failed
from orchestrator.broker.flights import RenewalFlight, Seen
from orchestrator.broker.wire import Link
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason

__all__ = ["TURNED_AWAY", "Renewing", "TurnedAwayError", "something_due"]

TURNED_AWAY: Final = (SessionLostError, AuthorizationRequiredError)
"""The errors with which a server says that it did not execute a call, and why."""


class TurnedAwayError(Exception):
    """The server turned a call away before it executed it, or it was not sent for that reason."""

    def __init__(
        self, error: SessionLostError | AuthorizationRequiredError, link: Link, seen: Seen
    ) -> None:
        super().__init__("the server turned the call away")
        self.error = error
        self.link = link
        self.seen = seen
        self.reason = reason_of(error)


class Renewing:
    """Gets for a call what it was turned away for. The call then goes the whole road again."""

    def __init__(self, *, ledger: Ledger, gate: Gate) -> None:
        self._ledger = ledger
        self._gate = gate

    async def before(
        self, wish: Wish, snapshot: CapabilitySnapshot, capability: Capability, link: Link
    ) -> None:
        """Wait for what is due anyhow, before the call is decided: what moves by it would void that.

        Raises as `session`.
        """
        renewal = link.session.renewal
        if renewal.credentials_due:
            await renewal.credentials_ready()
        if renewal.is_due or not link.is_fresh():
            # the count before the one that is due, or that was listed
            seen = renewal.count - (not renewal.is_due)
            await self.session(wish, snapshot, capability, link, seen, Delivery.NOT_SENT)

    async def after(
        self,
        wish: Wish,
        snapshot: CapabilitySnapshot,
        capability: Capability,
        away: TurnedAwayError,
    ) -> None:
        """Return once the call may be decided anew.

        Raises AuthorityError if what it depends on has ended, or a person would have to log in and
        nobody is here; CallFailedError for whatever else is in the way.
        """
        error = away.error
        # what has ended meanwhile begins nothing anew, and gets no credentials
        self._gate.stamp(snapshot, capability)
        if isinstance(error, SessionLostError):
            seen = away.seen.session
            await self.session(wish, snapshot, capability, away.link, seen, error.delivery)
        else:
            await self._credentials(wish, snapshot, capability, away, error)

    async def session(
        self,
        wish: Wish,
        snapshot: CapabilitySnapshot,
        capability: Capability,
        link: Link,
        seen: int,
        delivery: Delivery,
    ) -> None:
        """Return once the session has begun anew, and what it offers is known."""
        try:
            await link.session.renewal.renew(seen)
            # What the server offers now may be another thing under the same name (I8).
            await link.catch_up()
        except McpError as error:
            # it may have failed because authority ended: then that is what there is to say
            self._gate.stamp(snapshot, capability)
            raise failed(wish, error, delivery) from error

    async def _credentials(
        self,
        wish: Wish,
        snapshot: CapabilitySnapshot,
        capability: Capability,
        away: TurnedAwayError,
        error: AuthorizationRequiredError,
    ) -> None:
        source = away.link.session.renewal.credentials
        if source is None:
            raise failed(wish, error) from error
        scope = anyio.CancelScope()
        # a person may take minutes: what ends meanwhile ends the wait
        flight = RenewalFlight(stamp=self._gate.stamp(snapshot, capability), scope=scope)
        self._ledger.depart(flight)
        try:
            with scope:
                await source.renewed(error, away.seen.credentials)
        except NeedsAuthorizationError as missing:
            raise AuthorityError(
                f"{wish.ref}: its server wants a login, or one that reaches further",
                reason=DenyReason.NEEDS_AUTH,
                delivery=Delivery.REFUSED,
                fix=f"remit mcp login {wish.ref.server}",
            ) from missing
        except McpError as failure:
            self._gate.stamp(snapshot, capability)
            raise failed(wish, failure, Delivery.REFUSED) from failure
        finally:
            self._ledger.arrive(flight)
        if flight.reason is not None:
            raise AuthorityError(
                f"{wish.ref}: stopped: {flight.reason.value.replace('_', ' ')}",
                reason=flight.reason,
                delivery=Delivery.REFUSED,
            )


def something_due(link: Link) -> bool:
    """Whether a call has to wait for something anyhow, before it is decided: see `Renewing.before`."""
    renewal = link.session.renewal
    if renewal.is_due or not link.is_fresh():
        return True
    return renewal.credentials is not None and renewal.credentials_due
