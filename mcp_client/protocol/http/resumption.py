"""How long until a broken stream is asked for again, and from which event on; it has no clock."""

from __future__ import annotations

from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.http.sse import SseEvent

__all__ = ["Resumption"]


class Resumption:
    """One stream over its reconnections.

    Args:
        limits: the bounds of the transport.
        polled: it is a request's, which has a deadline; its server may answer later, and close
            again and again until then.

    Attributes:
        last_event_id: what to resume after; empty if nothing can be resumed.
    """

    __slots__ = ("_attempts", "_limits", "_polled", "_retry_seconds", "last_event_id")

    def __init__(self, limits: HttpTransportLimits, *, polled: bool) -> None:
        self.last_event_id = ""
        self._limits = limits
        self._polled = polled
        self._retry_seconds = limits.retry_seconds
        self._attempts = 0

    def note(self, event: SseEvent) -> None:
        """Take from an event what concerns the stream as such."""
        moved = event.id is not None and event.id != self.last_event_id
        if event.id is not None:
            self.last_event_id = event.id
        if event.retry is not None:
            low, high = self._limits.retry_seconds_min, self._limits.retry_seconds_max
            self._retry_seconds = min(max(event.retry / 1_000, low), high)
        if self._polled and (event.data or moved):
            self._attempts = 0

    def next_delay(self, lasted: float = 0.0) -> float | None:
        """Return how many seconds to wait before the next attempt; None if there is none left.

        A clean end counts like any other: a server that closes at once is not asked for ever,
        and one that sends something first is not either, where no deadline ends it.

        Args:
            lasted: how many seconds the stream was there.
        """
        if lasted >= self._limits.settled_seconds:
            self._attempts = 0
        if self._attempts >= self._limits.reconnects_max:
            return None
        delay = self._retry_seconds * 2**self._attempts
        self._attempts += 1
        return min(delay, self._limits.retry_seconds_max)
