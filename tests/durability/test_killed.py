"""A bounded share of what `python tests/durability/run.py` does fifty times."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.durability.killing import Project, killed_and_resumed
from tests.durability.talking import RESULT, talk, talked_and_resumed

pytestmark = pytest.mark.subprocess


def test_a_killed_run_goes_on_and_does_nothing_twice(tmp_path: Path):
    project = Project.make(tmp_path / "twelve")
    approvals = project.approvals()
    _, whole = project.remit("run", "pipeline.toml", *approvals)
    for number in range(3):
        project.forget()
        told = killed_and_resumed(project, approvals, Random(number))
        assert told.result in (None, whole["result"]["value"])  # type: ignore[index]


@pytest.mark.parametrize("number", range(2))
def test_a_killed_step_with_a_language_model_goes_on_and_asks_for_no_kept_turn_again(
    tmp_path: Path, number: int
):
    with talk(tmp_path / "talk") as there:
        approvals = there.project.approvals()
        told, _ = talked_and_resumed(there, approvals, Random(number))

    assert told.result in (None, RESULT)
