"""An audit record that is kept in memory only: for embedded use and for tests. Writes nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["RECORDS_MAX", "MemoryAudit", "MemoryRecord"]

RECORDS_MAX: Final = 100_000
"""About 100 MB of records; then the oldest go, and are counted."""


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """One record, as it was appended."""

    kind: str
    fields: Mapping[str, object]


class MemoryAudit:
    """Keeps the last records of one session.

    Attributes:
        records: oldest first.
        flushed: how many records there were, ever, at the last flush.
        dropped: how many old records made room for new ones.
    """

    def __init__(self, *, records_max: int = RECORDS_MAX) -> None:
        self.records: deque[MemoryRecord] = deque(maxlen=records_max)
        self.flushed = 0
        self.dropped = 0

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Keep one record."""
        if len(self.records) == self.records.maxlen:
            self.dropped += 1
        self.records.append(MemoryRecord(str(kind), dict(fields)))

    def flush(self) -> None:
        """Note that everything so far came before what follows."""
        self.flushed = len(self.records) + self.dropped

    def of_kind(self, *kinds: str) -> tuple[MemoryRecord, ...]:
        """Return the records of these kinds, oldest first."""
        return tuple(record for record in self.records if record.kind in kinds)
