"""What every test run shares: the requirements' counts at its end. Fixtures live further down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.marks import marks_below
from tests.requirements import ROOT, requirements, tally

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many lines of the requirements manifest are proven."""
    counts = tally(requirements(), marks_below(ROOT / "tests"))
    terminalreporter.write_line(f"requirements: {counts}")
