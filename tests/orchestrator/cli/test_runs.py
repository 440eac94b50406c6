"""`remit plan`, `remit runs` and `remit report`: looking at what would run, and at what did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.orchestrator.cli.project import Project
from tests.orchestrator.cli.running import Remit

pytestmark = pytest.mark.subprocess


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


@pytest.mark.parametrize(
    ("form", "begins"), [("mermaid", "flowchart"), ("dot", "digraph"), ("svg", "<svg")]
)
def test_a_picture_of_a_plan_needs_no_approval_and_starts_nothing(
    project: Project, remit: Remit, form: str, begins: str
):
    ended = remit("plan", project.pipeline, "--format", form)

    assert (ended.code, ended.out[: len(begins)], project.started) == (0, begins, False)


def test_the_plan_as_text_is_that_of_a_dry_run(project: Project, remit: Remit):
    flags = project.approved(remit)
    planned = remit("plan", project.pipeline, *flags)
    dry = remit("run", project.pipeline, "--dry-run", *flags)

    assert (planned.code, planned.out) == (0, dry.out)


def test_runs_are_listed_shown_and_drawn(project: Project, remit: Remit):
    flags = project.approved(remit)
    run = str(remit("run", project.pipeline, "--json", *flags).json["run"])
    listed = remit("runs", "list", "--json")
    shown = remit("runs", "show", run)
    drawn = remit("runs", "show", run, "--format", "mermaid")

    assert listed.json["runs"] == [
        {"run": run, "state": "ok", "pipeline": "greeting", "steps": 1, "ended": 1}
    ]
    assert "writer  ok" in shown.out
    assert 'n0["writer<br/>ok"]' in drawn.out


def test_without_a_run_there_is_nothing_to_list(remit: Remit):
    ended = remit("runs", "list")

    assert (ended.code, ended.out) == (0, "")


def test_a_picture_of_what_ran_needs_the_file_as_it_was(project: Project, remit: Remit):
    flags = project.approved(remit)
    run = str(remit("run", project.pipeline, "--json", *flags).json["run"])
    project.change("pipeline.toml", "greeting", "another")
    ended = remit("runs", "show", run, "--format", "svg", "--json")
    drawn = remit("runs", "show", run, "--format", "svg")

    assert (ended.code, drawn.code) == (0, 2)
    assert "E-RESUME-CHANGED" in drawn.err


@pytest.mark.requirement("S-28")
def test_a_report_is_one_file_without_arguments_results_or_addresses(
    project: Project, remit: Remit, tmp_path: Path
):
    project.change("pipeline.toml", 'default = "hello"', 'default = "s3cret-argument"')
    flags = project.approved(remit)
    ended = remit("run", project.pipeline, "--json", *flags)
    written = remit("report", "--json", "-o", str(tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text()

    assert (ended.code, written.code) == (0, 0)
    assert "files/write_file" in page
    assert "The record is as it was written" in page
    assert "s3cret" not in page
    assert str(tmp_path) not in page.replace(f"({project.folder}", "")


def test_a_report_of_no_run_is_an_error(remit: Remit):
    ended = remit("report", "gone", "--json")

    assert (ended.code, ended.json["code"]) == (2, "E-STATE-RUN")


def test_a_report_that_cannot_be_written_is_an_error(project: Project, remit: Remit):
    flags = project.approved(remit)
    remit("run", project.pipeline, "--json", *flags)
    ended = remit("report", "--json", "-o", "/dev/full")

    assert (ended.code, ended.json["code"]) == (1, "E-REPORT-IO")
