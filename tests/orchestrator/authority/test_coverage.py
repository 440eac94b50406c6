"""Ledger, gate, snapshots and what stands beside them are run in every branch by their own tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

SECONDS = 300
DRAWN = ("-k", "not no_child_exceeds and not policy_and_grant_allow and not Reference")
"""Tests by drawn values, left out: they take most of the time, and each branch is another's as well."""
UNREACHABLE = "[report]\nexclude_also =\n    case _:\\n\\s+assert_never\\(\n"
"""Arms of which the types say that nothing comes there."""


@pytest.mark.subprocess
def test_what_decides_on_authority_is_covered_in_every_branch(tmp_path: Path) -> None:
    settings = tmp_path / "coveragerc"
    settings.write_text(UNREACHABLE, "utf-8")
    files = [f"--data-file={tmp_path / 'data'}", f"--rcfile={settings}"]
    tests = [
        str(path)
        for path in sorted((ROOT / "tests/orchestrator/authority").glob("test_*.py"))
        if path != Path(__file__)
    ]
    measured = ["--branch", "--source=orchestrator.authority"]
    for words in (
        ["run", *files, *measured, "-m", "pytest", "-q", "-p", "no:cacheprovider", *DRAWN, *tests],
        ["report", *files, "--show-missing", "--fail-under=100"],
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
