"""The benchmark "revocation to bytes": remit's own rows, and how a server's log is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "revocation" / "run.py"


@pytest.mark.subprocess
@pytest.mark.requirement("I1")
@pytest.mark.requirement("I7")
def test_the_call_arrives_unless_the_tool_was_withdrawn_or_has_changed_or_its_login_is_over(
    tmp_path: Path,
) -> None:
    rows = [
        word for row in ("control", "withdraw", "definition", "logout") for word in ("--row", row)
    ]
    command = [sys.executable, str(PROGRAM), str(tmp_path), "--only", "remit", "--json", *rows]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=55, check=True)

    (told,) = json.loads(ended.stdout)
    assert told["failed"] == {}
    assert told["frames"] == {"control": 1, "withdraw": 0, "definition": 0, "logout": 0}
