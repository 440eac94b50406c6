"""One line of a check-up: how it stands, and what mends it. Checks nothing itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

__all__ = ["Finding", "Level", "worst"]


class Level(Enum):
    """How something stands."""

    OK = "ok"
    WARN = "warn"
    """It works, with less than there could be."""
    FAIL = "fail"
    """It keeps remit, or a server, from working."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line: what was looked at, how it stands, what mends it.

    It holds no secret, no address and no word of a server's. `fix` is a command where there is one.
    """

    name: str
    level: Level
    detail: str
    fix: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the line as an object of texts."""
        return {
            "name": self.name,
            "level": self.level.value,
            "detail": self.detail,
            "fix": self.fix,
        }


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level there is; OK if there is none."""
    order = (Level.OK, Level.WARN, Level.FAIL)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)
