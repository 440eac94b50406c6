"""Clocks and logs that the audit tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.audit.log import AuditLog
from orchestrator.core.ids import RunId


class StepClock:
    """A clock that goes on by a millisecond each time it is asked."""

    def __init__(self) -> None:
        self._milliseconds = 0

    def now(self) -> float:
        """Return the seconds so far."""
        self._milliseconds += 1
        return self._milliseconds / 1000

    def wall(self) -> float:
        """Return a moment of 2026."""
        return 1_790_000_000 + self.now()


@pytest.fixture
def clock() -> StepClock:
    """A new clock."""
    return StepClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a log is to be."""
    return tmp_path / "runs" / "r1" / "audit.jsonl"


@pytest.fixture
def log(path: Path, clock: StepClock) -> AuditLog:
    """A log that was just created."""
    return AuditLog.create(path, RunId("r1"), clock)
