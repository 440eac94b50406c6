"""What `remit ask` imports on its way to a model, counted: a heavy import is noticed without a clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "orchestrator.pipelines",
    "networkx",
    "pydantic_ai",
    "textual",
    "starlette",
    "opentelemetry",
    "authlib",
    "joserfc",
)
"""What an answer without a pipeline, a screen, a page, a trace or a login has no use for."""
SCRIPT = """
import sys
from orchestrator.cli.frame import main
code = main(["ask", "anything", "--no-project"])
print(code, *sys.modules)
"""


@pytest.mark.subprocess
def test_a_question_imports_nothing_that_it_has_no_use_for(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "REMIT_HOME": str(tmp_path / "home")},
    )

    code, *modules = done.stdout.split()
    assert (code, "E-ASK-MODEL" in done.stderr) == ("2", True), done.stderr
    assert "orchestrator.sessions.standing" in modules
    assert [name for name in modules if name.startswith(HEAVY)] == []
