from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.cli import main
from tests.orchestrator.cli.running import ROOT_FOLDER, Finished, Remit


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of its own, and an empty current folder."""
    place = tmp_path / "home"
    monkeypatch.setenv("REMIT_HOME", str(place))
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return place


@pytest.fixture
def remit(home: Path, capsys: pytest.CaptureFixture[str]) -> Remit:
    """The command, in this process."""

    def run(*words: str) -> Finished:
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        return Finished(code, captured.out, captured.err)

    return run


@pytest.fixture
def remit_process(home: Path) -> Remit:
    """The command, as a process of its own."""

    def run(*words: str, env: Mapping[str, str] | None = None) -> Finished:
        finished = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", *words],
            env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER), **(env or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Finished(finished.returncode, finished.stdout, finished.stderr)

    return run
