"""What cannot be used as a pattern. Knows no pattern."""

from __future__ import annotations

__all__ = ["PatternError"]


class PatternError(ValueError):
    """A pattern, pointer, path, host or network that cannot be used; the message says why."""
