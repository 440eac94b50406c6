"""Requests that asked for progress: whom to tell, and how far the clock may move; it ends none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.progress import Progress, read_progress
from mcp_client.session.pending import PendingRequest

__all__ = ["ProgressBook", "Progressing"]


class Progressing:
    """A request that asked for progress."""

    __slots__ = ("done", "latest", "pending", "seconds", "tell")

    def __init__(
        self,
        pending: PendingRequest,
        tell: Callable[[Progress], object],
        *,
        seconds: float,
        latest: float,
    ) -> None:
        self.pending = pending
        self.tell = tell
        self.seconds = seconds
        self.latest = latest
        self.done = -math.inf


class ProgressBook:
    """The requests of one connection that asked for progress and have not ended.

    Attributes:
        entries: they, by id.
    """

    __slots__ = ("_limits", "entries")

    def __init__(self, limits: ClientLimits) -> None:
        self._limits = limits
        self.entries: dict[int, Progressing] = {}

    def add(self, entry: Progressing) -> None:
        """Take note of a request; its id is its token."""
        self.entries[entry.pending.id] = entry

    def forget(self, request_id: int) -> None:
        """Take a request out that has ended."""
        self.entries.pop(request_id, None)

    def take(self, params: Mapping[str, object], now: float) -> tuple[Progressing, Progress] | None:
        """Return whom a notification concerns, its clock moved; None if nobody, or no step ahead."""
        token = params.get("progressToken")
        # true is equal to 1 as a key, and is no token
        entry = self.entries.get(token) if type(token) is int else None
        progress = read_progress(params, self._limits)
        if entry is None or progress is None or not progress.done > entry.done:
            return None
        entry.done = progress.done
        entry.pending.deadline = min(now + entry.seconds, entry.latest)
        return entry, progress
