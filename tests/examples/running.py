"""Runs an example as CI does: copied, nobody to ask, approvals by options."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.architecture.sources import ROOT
from tests.orchestrator.cli.running import Finished

__all__ = ["approved", "copied", "remit"]


def copied(place: Path, name: str) -> Path:
    """Copy an example and its servers: what a run leaves there would be seen."""
    folder = place / "examples"
    for each in (name, "servers"):
        shutil.copytree(ROOT / "examples" / each, folder / each)
    return folder / name


def remit(folder: Path, *words: str) -> Finished:
    """Run a command in an example's folder."""
    finished = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "REMIT_HOME": str(folder.parents[1] / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Finished(finished.returncode, finished.stdout, finished.stderr)


def approved(folder: Path, pipeline: str) -> list[str]:
    """Return the options that a run needs: one error leads to the next."""
    options: list[str] = []
    for _ in range(2):
        ended = remit(folder, "run", pipeline, "--json", *options)
        assert ended.code == 6
        options += shlex.split(str(ended.json["fix"]).partition(" add ")[2])
    return options
