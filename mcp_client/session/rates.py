"""How often something may happen within a time; it has no clock of its own."""

from __future__ import annotations

import math

__all__ = ["RateWindow"]


class RateWindow:
    """So many at once, and so many again once the time since the first of them has passed."""

    __slots__ = ("_began", "_count", "_count_max", "_seconds")

    def __init__(self, count_max: int, seconds: float) -> None:
        self._count_max = count_max
        self._seconds = seconds
        self._began = -math.inf
        self._count = 0

    def take(self, now: float) -> bool:
        """Return whether one more may happen now, and count it if it may."""
        if now - self._began >= self._seconds:
            self._began = now
            self._count = 0
        if self._count >= self._count_max:
            return False
        self._count += 1
        return True
