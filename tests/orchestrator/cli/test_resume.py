"""`remit run --resume`: what goes on, under whose word, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.orchestrator.cli.project import Project, flags_of
from tests.orchestrator.cli.running import Finished, Remit

pytestmark = pytest.mark.subprocess

GATED = """
[agents.publisher]
role = "writer"
needs = ["writer"]
model = "recipe:recipes.py:publisher"
gate = "Publish it?"
grant = { tools = ["files/list_files"] }
"""
PUBLISHER = (
    '\ndef publisher(task):\n    yield Call("files", "list_files")\n    return "published"\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)
    made.write("pipeline.toml", (made.folder / "pipeline.toml").read_text() + GATED)
    made.write("recipes.py", (made.folder / "recipes.py").read_text() + PUBLISHER)
    return made


def stopped_at_the_gate(project: Project, remit: Remit) -> tuple[str, list[str], Finished]:
    flags = project.approved(remit)
    ended = remit("run", project.pipeline, "--json", *flags)
    assert ended.code == 4
    return str(ended.json["run"]), flags, ended


def passing(ended: Finished, home: Path) -> list[str]:
    """The option that the summary of a run shows for its gate."""
    word = next(word for word in ended.out.split() if word.startswith("publisher@"))
    return ["--pass", word]


def test_a_gate_that_nobody_answers_stops_its_step_and_a_resume_with_leave_goes_on(
    project: Project, remit: Remit, home: Path
):
    run, flags, _ = stopped_at_the_gate(project, remit)
    shown = remit("run", "--resume", run, *flags)
    ended = remit("run", "--resume", run, "--json", *flags, *passing(shown, home))

    assert (shown.code, ended.code) == (4, 0)
    assert ended.json["result"]["value"]["publisher"] == "published"  # type: ignore[index]
    told = remit("audit", "tail", run).out
    assert "agent_started agent=publisher" in told
    assert "agent=writer" not in told


def test_leave_at_a_gate_is_for_these_answers_alone(project: Project, remit: Remit):
    run, flags, _ = stopped_at_the_gate(project, remit)
    ended = remit("run", "--resume", run, "--json", *flags, "--pass", f"publisher@{'0' * 64}")

    assert ended.code == 4


def test_a_run_goes_on_only_with_what_is_approved_today(project: Project, remit: Remit):
    run, _, _ = stopped_at_the_gate(project, remit)
    ended = remit("run", "--resume", run, "--json")

    assert (ended.code, ended.json["code"]) == (6, "E-PENDING-APPROVAL")


def test_a_run_goes_on_under_todays_policy(project: Project, remit: Remit, home: Path):
    run, flags, _ = stopped_at_the_gate(project, remit)
    leave = passing(remit("run", "--resume", run, *flags), home)
    project.change("project.policy", "call on files/list_files", "call on files/read_file")
    pending = remit("run", "--resume", run, "--json", *flags)
    ended = remit("run", "--resume", run, "--json", *flags, *flags_of(pending), *leave)

    assert ended.code == 3
    assert {agent["name"]: agent["status"] for agent in ended.json["agents"]} == {  # type: ignore[union-attr]
        "writer": "ok",
        "publisher": "denied",
    }


def test_a_recipe_that_has_changed_does_not_go_on(project: Project, remit: Remit):
    run, flags, _ = stopped_at_the_gate(project, remit)
    project.change("recipes.py", "published", "told")
    ended = remit("run", "--resume", run, "--json", *flags)

    assert (ended.code, ended.json["code"]) == (2, "E-RESUME-CHANGED")


def test_a_run_that_ended_well_has_nothing_left(tmp_path: Path, remit: Remit):
    project = Project.make(tmp_path)
    flags = project.approved(remit)
    run = str(remit("run", project.pipeline, "--json", *flags).json["run"])
    ended = remit("run", "--resume", run, "--json", *flags)

    assert (ended.code, ended.json["code"]) == (2, "E-RESUME-DONE")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--resume", "nothing"], "E-STATE-RUN"),
        (["--resume", "nothing", "pipeline.toml"], "E-USAGE"),
        (["--resume", "nothing", "--input", "a=b"], "E-USAGE"),
        (["pipeline.toml", "--restart", "a"], "E-USAGE"),
        ([], "E-USAGE"),
    ],
)
def test_words_that_mean_nothing_together_are_an_error(remit: Remit, words: list[str], code: str):
    ended = remit("run", "--json", *words)

    assert (ended.code, ended.json["code"]) == (2, code)


def test_what_is_said_of_a_step_that_there_is_not_is_an_error(project: Project, remit: Remit):
    run, flags, _ = stopped_at_the_gate(project, remit)
    ended = remit("run", "--resume", run, "--json", *flags, "--restart", "publsher")

    assert (ended.code, ended.json["code"]) == (2, "E-RESUME-SETTLE")
