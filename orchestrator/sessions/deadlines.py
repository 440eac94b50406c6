"""When agents at work are out of time: one timer for all of a session. It ends none itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from anyio import CancelScope

from mcp_client.net.reactor import Reactor, TimerHandle

__all__ = ["Deadlines", "Worker"]


class Worker(Protocol):
    """What has only so much time."""

    def run_out(self) -> None:
        """Its time is over: stop at once. Synchronous; must not raise."""
        ...


class Deadlines:
    """Who works, and until when.

    Those with the same time are over in the order in which they began: only the first of each
    are looked at. The timer is set for the earliest that there was, and moved on when it comes.

    Attributes:
        scope: makes a cancel scope of the loop that there is.
    """

    def __init__(self) -> None:
        self.scope: Callable[[], CancelScope] = CancelScope
        self._reactor: Reactor | None = None
        self._spans: dict[float, dict[Worker, float]] = {}
        self._timer: TimerHandle | None = None
        self._timer_at = math.inf

    def begin(self, reactor: Reactor, scope: Callable[[], CancelScope] = CancelScope) -> None:
        """Watch by this loop's clock. `scope` makes its own scopes.

        To find out which loop runs, as anyio's does each time, costs as much again as a scope.
        """
        self._reactor = reactor
        self.scope = scope

    def end(self) -> None:
        """Watch nobody any more."""
        self._reactor = None
        self._spans.clear()
        self._disarm()

    def watch(self, worker: Worker, seconds: float) -> bool:
        """Tell a worker in so many seconds, unless it is forgotten before. False: nobody watches."""
        reactor = self._reactor
        if reactor is None:
            return False
        until = reactor.now() + seconds
        self._spans.setdefault(seconds, {})[worker] = until
        if until < self._timer_at:
            self._arm(reactor, until)
        return True

    def forget(self, worker: Worker, seconds: float) -> None:
        """Leave alone who was to have so many seconds: it has ended. Harmless if nobody watched it."""
        span = self._spans.get(seconds)
        if span is not None:
            span.pop(worker, None)
            if not span:
                del self._spans[seconds]

    def _arm(self, reactor: Reactor, until: float) -> None:
        self._disarm()
        self._timer_at = until
        self._timer = reactor.at(until, self._look)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_at = None, math.inf

    def _look(self) -> None:
        """Tell those whose time is over, and come back when the next one's is."""
        reactor = self._reactor
        if reactor is None:
            return
        self._disarm()
        now = reactor.now()
        for seconds, span in tuple(self._spans.items()):
            for worker in _over(span, now):
                self.forget(worker, seconds)
                worker.run_out()
        if self._spans:
            self._arm(reactor, min(next(iter(span.values())) for span in self._spans.values()))


def _over(span: Mapping[Worker, float], now: float) -> Sequence[Worker]:
    over: list[Worker] = []
    for worker, until in span.items():
        if until > now:
            break
        over.append(worker)
    return over
