"""A gate of a pipeline in the inbox: answered from another terminal, once, for what was shown there."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from tests.orchestrator.cli.project import Project
from tests.orchestrator.cli.running import ROOT_FOLDER, Remit
from tests.orchestrator.cli.test_resume import project

__all__ = ["project"]

pytestmark = pytest.mark.subprocess

_SECONDS_MAX = 60.0
_MOMENT = 0.2


@contextmanager
def waiting(project: Project, remit: Remit) -> Generator[subprocess.Popen[str]]:
    """A run whose asks wait for another terminal; it has ended after the block."""
    words = ["run", project.pipeline, "--inbox", "--json", *project.approved(remit)]
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        try:
            yield run
        finally:
            run.kill()


def gate(remit: Remit, run: subprocess.Popen[str]) -> dict[str, Any]:
    """The ask that stands for the gate, once it is there."""
    until = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < until and run.poll() is None:
        listed = remit("approvals", "list", "--json")
        rows = cast("list[dict[str, Any]]", listed.json["asks"]) if listed.code == 0 else []
        if rows:
            return rows[0]
        select.select([], [], [], _MOMENT)
    raise AssertionError(f"no gate is asked about; the run: {run.poll()}")


def ended(run: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = run.communicate(timeout=_SECONDS_MAX)
    assert out, err
    return cast("dict[str, Any]", json.loads(out))


def gates(remit: Remit, run: str, kind: str) -> list[dict[str, Any]]:
    lines = remit("audit", "tail", run, "--json").out.splitlines()
    return [record for line in lines if (record := json.loads(line))["kind"] == kind]


def test_a_yes_from_another_terminal_passes_the_gate_once_and_is_on_record(
    project: Project, remit: Remit, home: Path
):
    with waiting(project, remit) as run:
        row = gate(remit, run)
        number = str(row["ask"])
        plain = remit("approvals", "list").out
        shown = remit("approvals", "show", number).out
        wider = remit("approvals", "allow", number, "--session")
        allowed = remit("approvals", "allow", number)
        again = remit("approvals", "allow", number)
        told = ended(run)

    assert (row["kind"], row["agent"]) == ("gate", "publisher")
    assert "to begin" in plain
    assert f"digest      {row['digest']}" in shown
    assert "before publisher begins: Publish it?" in shown
    assert "writer answered (untrusted):" in shown
    assert "E-ASK-KIND" in wider.err
    assert allowed.code == 0
    assert again.code != 0
    assert told["status"] == "ok"
    assert told["result"]["value"]["publisher"] == "published"
    (record,) = gates(remit, str(told["run"]), "gate")
    assert (record["passed"], record["by"], record["digest"]) == (True, "person", row["digest"])
    (acted,) = gates(remit, str(told["run"]), "controlled")
    assert (acted["act"], acted["agent"], acted["digest"]) == ("allow", "publisher", row["digest"])


def test_a_no_from_another_terminal_denies_the_step(project: Project, remit: Remit, home: Path):
    with waiting(project, remit) as run:
        row = gate(remit, run)
        assert remit("approvals", "deny", str(row["ask"])).code == 0
        told = ended(run)

    assert told["status"] == "denied"
    (record,) = gates(remit, str(told["run"]), "gate")
    assert (record["passed"], record["by"]) == (False, "person")
    assert not [
        r for r in gates(remit, str(told["run"]), "agent_started") if r["agent"] == "publisher"
    ]
