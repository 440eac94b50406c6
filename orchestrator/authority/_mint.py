"""Permits: leave to send one frame once. Imported by the gate alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from orchestrator.authority.ledger import Cell
from orchestrator.authority.standing import Standing
from orchestrator.core.errors import AuthorityError, Delivery, DenyReason
from orchestrator.core.ids import CallId
from policies import Label

__all__ = ["Permit", "Stamp"]

_NO_LABELS: Final[frozenset[Label]] = frozenset()


class Stamp:
    """The cells that a call depends on, with the generations that were seen when it was admitted.

    `agent` and `target` must be in force; `link` (the server), `login` (the credential that it is
    reached with) and `policy` must not have moved on either. The generations are the ones that the
    decision was made under, never the present ones. A server without a login has one cell for both.

    Attributes:
        clear: the number of the ledger's turn at which all of them were found in force. As long as
            it is that one nothing was taken back from anybody, and none needs to be looked at.
    """

    __slots__ = (
        "agent",
        "clear",
        "lease_until",
        "link",
        "link_generation",
        "login",
        "login_generation",
        "policy",
        "policy_generation",
        "target",
        "turn",
    )

    # by place: for a class, keywords cost as much again as all that it does
    def __init__(
        self, agent: Cell, target: Cell, link: Cell, policy: Cell, login: Cell | None = None
    ) -> None:
        self.agent = agent
        self.turn = agent.turn
        self.clear = math.nan  # equal to no number: nothing was looked at
        self.lease_until = agent.lease_until
        self.target = target
        self.link = link
        self.link_generation = link.generation
        self.login = link if login is None else login
        self.login_generation = self.login.generation
        self.policy = policy
        self.policy_generation = policy.generation

    def ended(self) -> DenyReason | None:
        """Return the first cause that has ended for good; None if none has. Only reads."""
        return self.agent.reason or self.login.reason or self.target.reason or self.link.reason

    def lapsed(self) -> DenyReason | None:
        """Return the first cause that is no longer in force; None if all are. Takes nothing back."""
        turn = self.turn.number
        if self.clear == turn:
            return None
        if self.agent.reason is not None:
            return self.agent.reason
        if self.login.reason is not None:
            return self.login.reason
        if self.target.reason is not None:
            return self.target.reason
        if self.link.reason is not None:
            return self.link.reason
        if self.policy.generation != self.policy_generation:
            return self.policy.reason or self.policy.void_reason
        if self.link.generation != self.link_generation:
            return self.link.void_reason
        if self.login.generation != self.login_generation:
            return self.login.void_reason
        self.clear = turn  # the one before the first look: an act since then makes this another
        return None


class Permit:
    """Leave to send one frame once; a `SendGuard` for the client.

    `deadline` is in the seconds of `now`. It ends unsent where a label is added to `standing`, the one
    that the decision looked at, if it did.

    Attributes:
        call: the call that it belongs to.
    """

    __slots__ = ("_deadline", "_labels", "_now", "_spent", "_standing", "call", "stamp")

    def __init__(
        self,
        call: CallId,
        stamp: Stamp,
        deadline: float,
        now: Callable[[], float],
        standing: Standing | None = None,
    ) -> None:
        self.call: Final = call
        self.stamp: Final = stamp
        self._deadline = deadline
        self._now = now
        self._spent = False
        self._standing = standing
        self._labels = _NO_LABELS if standing is None else standing.labels

    def lapsed(self) -> DenyReason | None:
        """Return why nothing may go out, or come back, under this permit; None if it may."""
        stamp = self.stamp
        # a call less where nothing was taken back, which is nearly always
        reason = None if stamp.clear == stamp.turn.number else stamp.lapsed()
        if reason is None and stamp.lease_until != math.inf and self._now() > stamp.lease_until:
            return DenyReason.LEASE_OVER
        return reason

    def check(self) -> None:
        """Return if the frame may go out in this very step; raise AuthorityError otherwise."""
        stamp = self.stamp
        reason = None if stamp.clear == stamp.turn.number else stamp.lapsed()
        if reason is None:
            if self._spent:
                reason = DenyReason.PERMIT_SPENT
            elif (now := self._now()) > stamp.lease_until:
                reason = DenyReason.LEASE_OVER
            elif now > self._deadline:
                reason = DenyReason.DEADLINE_PASSED
            elif self._standing is not None and not self._standing.labels <= self._labels:
                reason = DenyReason.LABEL_RAISED
            else:
                return
        raise AuthorityError(
            f"not sent: {reason.value.replace('_', ' ')}",
            reason=reason,
            delivery=Delivery.NOT_SENT,
        )

    def sent(self) -> None:
        """Spend the permit: the first byte is out."""
        self._spent = True

    def resumed(self) -> Permit:
        """Return leave to ask once for the rest of an answer to what went out under this permit.

        It depends on the same generations: what has been taken back since refuses it (I15). What the
        agent has read since does not: it asks for nothing else than it did.
        """
        return Permit(self.call, self.stamp, self._deadline, self._now)

    @property
    def spent(self) -> bool:
        """True once a byte went out under it."""
        return self._spent
