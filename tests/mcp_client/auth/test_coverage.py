"""The pure parts of authorization are run in every branch by the tests that are theirs alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

PURE = ("flow", "discovery")
SECONDS = 120


@pytest.mark.subprocess
def test_the_flow_and_discovery_are_covered_in_every_branch(tmp_path: Path):
    data = f"--data-file={tmp_path / 'data'}"
    tests = [f"tests/mcp_client/auth/test_{name}.py" for name in PURE]
    measured = [data, "--rcfile=", "--branch", "--source=mcp_client.auth"]
    files = ",".join(f"*/mcp_client/auth/{name}.py" for name in PURE)
    for words in (
        ["run", *measured, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        ["report", data, "--rcfile=", "--show-missing", "--fail-under=100", f"--include={files}"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "coverage", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

        assert done.returncode == 0, done.stdout + done.stderr
