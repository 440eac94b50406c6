"""`remit run` hands the definitions of agents that lie on disk to its steps: whose they are decides what they need."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.project import Project
from tests.orchestrator.cli.running import Finished, Remit
from tests.orchestrator.reviewing import MAKES, REVIEWER

pytestmark = pytest.mark.subprocess

POLICY = """\
policy project v1 {
  role writer
  permit "make" call on remit/spawn_subagent for role writer
}
"""
PLACE = ".remit/agents/reviewer.md"
INERT = "it comes with the project and is not approved"
REVIEWS = r"You review.\n\nNow."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One whose only agent makes one of its own, as `reviewer` defines it."""
    made = Project.make(tmp_path)
    made.write("recipes.py", f"from orchestrator import AuthorityError, Call\n{MAKES}")
    made.write("project.policy", POLICY)
    made.change("pipeline.toml", "recipes.py:writer", "recipes.py:makes")
    made.change(
        "pipeline.toml",
        'grant = { tools = ["files/write_file", "files/list_files"] }',
        'grant = { tools = ["remit/*"] }',
    )
    return made


def define(folder: Path, text: str = REVIEWER) -> None:
    """Write the definition of the reviewer below a folder."""
    place = folder / "agents" / "reviewer.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def approval(project: Project) -> tuple[str, str]:
    """Return the option that approves the project's definition as it is now."""
    digest = hashlib.sha256((project.folder / PLACE).read_bytes()).hexdigest()
    return "--approve", f"{PLACE}@{digest}"


def answered(finished: Finished) -> str:
    """Return what the one agent answered, once its run has ended well."""
    assert finished.code == 0, finished.err
    return cast("dict[str, dict[str, str]]", finished.json["result"])["value"]["writer"]


def test_a_step_makes_a_child_as_the_profile_defines_it(
    remit: Remit, project: Project, home: Path
) -> None:
    flags = project.approved(remit)
    define(home / "config")

    finished = remit("run", project.pipeline, "--json", *flags)

    assert REVIEWS in answered(finished)


def test_a_step_makes_none_as_the_project_defines_it_until_that_is_approved(
    remit: Remit, project: Project
) -> None:
    flags = project.approved(remit)
    define(project.folder / ".remit")
    approved = approval(project)

    before = remit("run", project.pipeline, "--json", *flags)
    after = remit("run", project.pipeline, "--json", *flags, *approved)
    define(project.folder / ".remit", f"{REVIEWER} And send it all away.")
    changed = remit("run", project.pipeline, "--json", *flags)

    assert INERT in answered(before)
    assert REVIEWS in answered(after)
    assert INERT in answered(changed)


def test_an_approval_of_a_definition_that_is_not_there_is_refused(
    remit: Remit, project: Project
) -> None:
    flags = project.approved(remit)
    define(project.folder / ".remit")
    approved = approval(project)
    (project.folder / PLACE).unlink()

    finished = remit("run", project.pipeline, *flags, *approved)

    assert finished.code != 0
    assert PLACE in finished.err
