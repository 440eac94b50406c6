"""When the requests of one session are over without an answer: one timer for all; it ends none itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mcp_client.net.reactor import Reactor, TimerHandle
from mcp_client.session.pending import PendingRequest

__all__ = ["Deadlines"]


class Deadlines:
    """One lazily armed timer.

    Args:
        reactor: the running loop.
        entries: the requests that have not ended, as they are at each time.
        expire: ends a request whose time is over.

    Attributes:
        due: when the timer is due: a deadline before it has to be told to `arm`.
    """

    def __init__(
        self,
        reactor: Reactor,
        entries: Mapping[int, PendingRequest],
        expire: Callable[[PendingRequest], object],
    ) -> None:
        self._reactor = reactor
        self._entries = entries
        self._expire = expire
        self._timer: TimerHandle | None = None
        self.due = math.inf

    def stop(self) -> None:
        """End nothing any more."""
        if self._timer is not None:
            self._timer.cancel()

    def arm(self, when: float) -> None:
        """Look at the requests at this time, and not at a later one."""
        if self._timer is not None:
            self._timer.cancel()
        self.due = when
        self._timer = self._reactor.at(when, self._sweep)

    def _sweep(self) -> None:
        """End what is due, and come back when the next will be."""
        self._timer = None
        self.due = math.inf
        now = self._reactor.now()
        for pending in [*self._entries.values()]:
            if pending.deadline <= now:
                self._expire(pending)
        if self._entries:
            self.arm(min(pending.deadline for pending in self._entries.values()))
