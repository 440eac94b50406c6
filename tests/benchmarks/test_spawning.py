"""What an agent costs that waits: counted in bytes, over a real server, without a clock."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "spawning" / "run.py"
PARKED_BYTES_MAX = 8_000
"""Of what one agent holds that waits for an answer, in one task, its request and records included: 7,650."""


@pytest.mark.subprocess
def test_an_agent_that_waits_for_an_answer_holds_little(tmp_path: Path) -> None:
    command = [sys.executable, str(PROGRAM), str(tmp_path), "--only", "remit", "--json"]
    rows = ["--row", "parked", "--rounds", "1"]

    ended = subprocess.run(
        [*command, *rows], capture_output=True, text=True, timeout=55, check=True
    )

    (figure,) = json.loads(ended.stdout)["remit"]["parked"]
    assert figure / 1000 <= PARKED_BYTES_MAX
