"""Every cause on every real transport: what had not begun when authority went never begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.errors import DenyReason
from tests.matrix.causes import CAUSES, Cause
from tests.matrix.rides import RIDES
from tests.matrix.run import cell, outcomes

STEPS = 6
"""Of a send: it has begun by the last. `python -m tests.matrix.run` does more."""
SILENT = Cause(lambda leave: None, DenyReason.AGENT_CANCELLED)


@pytest.mark.subprocess
@pytest.mark.requirement("I1")
@pytest.mark.requirement("I21")  # a lease that is over is one of the causes
@pytest.mark.parametrize("name", RIDES)
async def test_no_cause_lets_a_byte_out_after_it(name: str, tmp_path: Path) -> None:
    cells: dict[str, str] = {}
    for number, (cause, what) in enumerate(CAUSES.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        cells[cause] = cell(await outcomes(RIDES[name], what, STEPS, folder), what)

    assert "LEAK" not in cells.values(), cells
    # the injection covers both sides of the first byte
    assert all(0 < int(each.partition(" / ")[0]) < STEPS for each in cells.values()), cells


@pytest.mark.subprocess
@pytest.mark.parametrize("name", RIDES)
async def test_a_cause_that_takes_nothing_back_would_be_found(name: str, tmp_path: Path) -> None:
    assert cell(await outcomes(RIDES[name], SILENT, 1, tmp_path), SILENT) == "LEAK"
