"""Every name that can be misspelt: exit code 2, the place, the nearest right name, nothing started."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.orchestrator.cli.project import Project, flags_of
from tests.orchestrator.cli.running import Finished, Remit

pytestmark = pytest.mark.subprocess


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """One misspelling: in `file`, `old` became `new`; `right` is the name that was meant."""

    id: str
    file: str
    old: str
    new: str
    right: str


SEEN_WITHOUT_SERVERS = [
    Slip(
        id="a server in a grant",
        file="pipeline.toml",
        old='"files/write_file"',
        new='"fils/write_file"',
        right="files",
    ),
    Slip(
        id="a role",
        file="pipeline.toml",
        old='role = "writer"',
        new='role = "wirter"',
        right="writer",
    ),
    Slip(
        id="a key of the pipeline",
        file="pipeline.toml",
        old="servers =",
        new="server =",
        right="servers",
    ),
    Slip(
        id="a key of an agent",
        file="pipeline.toml",
        old="prompt =",
        new="promt =",
        right="prompt",
    ),
    Slip(
        id="a key of a budget",
        file="pipeline.toml",
        old="budget = { turns",
        new="budget = { turn",
        right="turns",
    ),
    Slip(
        id="a key of a grant",
        file="pipeline.toml",
        old="grant = { tools",
        new="grant = { tool",
        right="tools",
    ),
    Slip(
        id="a key of an input",
        file="pipeline.toml",
        old='default = "hello"',
        new='defualt = "hello"',
        right="default",
    ),
    Slip(
        id="a type of an input",
        file="pipeline.toml",
        old='type = "path"',
        new='type = "paht"',
        right="path",
    ),
    Slip(
        id="an input in a prompt",
        file="pipeline.toml",
        old="${inputs.word}",
        new="${inputs.wrod}",
        right="word",
    ),
    Slip(
        id="an agent that is needed",
        file="pipeline.toml",
        old="[agents.writer]",
        new='[agents.last]\nmodel = "recipe:recipes.py:writer"\nneeds = ["wirter"]\n[agents.writer]',
        right="writer",
    ),
    Slip(
        id="the provider of a recipe",
        file="pipeline.toml",
        old='"recipe:recipes.py',
        new='"recpie:recipes.py',
        right="recipe:recipes.py:writer",
    ),
    Slip(
        id="a recipe's file",
        file="pipeline.toml",
        old="recipe:recipes.py:",
        new="recipe:recipe.py:",
        right="recipes.py",
    ),
    Slip(
        id="a policy's file",
        file="pipeline.toml",
        old='"project.policy"',
        new='"projct.policy"',
        right="project.policy",
    ),
    Slip(
        id="the servers file",
        file="pipeline.toml",
        old='".mcp.json"',
        new='".mpc.json"',
        right=".mcp.json",
    ),
    Slip(
        id="an effect",
        file="project.policy",
        old='permit "look"',
        new='permt "look"',
        right="permit",
    ),
    Slip(
        id="an operation",
        file="project.policy",
        old='"look"  call',
        new='"look"  cal',
        right="call",
    ),
    Slip(
        id="a role in a policy",
        file="project.policy",
        old="files/list_files for role writer",
        new="files/list_files for role wirter",
        right="writer",
    ),
    Slip(
        id="a server in a policy",
        file="project.policy",
        old="on files/list_files",
        new="on fils/list_files",
        right="files",
    ),
    Slip(
        id="a parameter of a policy",
        file="project.policy",
        old='"${out}"',
        new='"${uot}"',
        right="out",
    ),
]
SEEN_BESIDE_SERVERS = [
    Slip(
        id="a tool in a grant",
        file="pipeline.toml",
        old='"files/write_file"',
        new='"files/wirte_file"',
        right="write_file",
    ),
    Slip(
        id="a tool in a policy",
        file="project.policy",
        old="on files/list_files",
        new="on files/list_fiels",
        right="list_files",
    ),
    Slip(
        id="a pointer in a policy",
        file="project.policy",
        old="arg(/path)",
        new="arg(/paht)",
        right="path",
    ),
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.make(tmp_path)
    agent = tmp_path / "an-agent-has-started"
    project.change("recipes.py", "def writer(task: AgentTask):\n", f"{_TELLS.format(str(agent))}")
    return project


_TELLS = "def writer(task: AgentTask):\n    open({!r}, 'w').close()\n"


def no_agent_started(project: Project) -> bool:
    return not (project.folder.parent / "an-agent-has-started").exists()


def line_of(project: Project, slip: Slip) -> int:
    """Return the line in which the misspelt name now stands."""
    text = (project.folder / slip.file).read_text()
    last = slip.new.rpartition("\n[")[0] or slip.new
    return text[: text.index(slip.new) + len(last)].count("\n") + 1


def told(finished: Finished, project: Project, slip: Slip) -> None:
    """The error names the right name and the place."""
    assert finished.code == 2, finished.err
    assert f"'{slip.right}'" in finished.err or f"`{slip.right}`" in finished.err, finished.err
    assert f"{slip.file}:{line_of(project, slip)}" in finished.err, finished.err


@pytest.mark.parametrize("slip", SEEN_WITHOUT_SERVERS, ids=lambda slip: slip.id)
def test_a_misspelling_is_told_before_anything_is_approved_or_started(
    remit: Remit, project: Project, home: Path, slip: Slip
) -> None:
    project.change(slip.file, slip.old, slip.new)

    finished = remit("run", project.pipeline)

    told(finished, project, slip)
    assert not project.started
    assert no_agent_started(project)
    assert list((home / "state" / "runs").iterdir()) == []


@pytest.mark.parametrize("slip", SEEN_BESIDE_SERVERS, ids=lambda slip: slip.id)
def test_a_misspelling_that_only_a_server_can_show_is_told_before_any_agent_starts(
    remit: Remit, project: Project, slip: Slip
) -> None:
    project.change(slip.file, slip.old, slip.new)
    flags = flags_of(remit("run", project.pipeline))

    finished = remit("run", project.pipeline, *flags)

    told(finished, project, slip)
    assert no_agent_started(project)


@pytest.mark.parametrize(
    "slip", SEEN_WITHOUT_SERVERS[:2] + SEEN_BESIDE_SERVERS[:1], ids=lambda s: s.id
)
def test_a_plan_tells_the_same_misspellings(remit: Remit, project: Project, slip: Slip) -> None:
    project.change(slip.file, slip.old, slip.new)
    first = remit("run", project.pipeline, "--dry-run")
    flags = flags_of(first) if first.code == 6 else []

    told(remit("run", project.pipeline, "--dry-run", *flags), project, slip)


def test_the_object_of_a_misspelling_has_the_place_and_the_fix(
    remit: Remit, project: Project
) -> None:
    project.change("pipeline.toml", 'role = "writer"', 'role = "wirter"')

    finished = remit("run", project.pipeline, "--json")

    assert finished.code == 2
    assert finished.json["code"] == "E-PIPELINE-ROLE"
    assert "'writer'" in str(finished.json["fix"])
    assert str(finished.json["where"]).startswith(f"{project.pipeline}:")
    assert finished.err == ""


def test_a_misspelt_function_of_a_recipe_is_told_before_a_server_starts(
    remit: Remit, project: Project
) -> None:
    project.change("pipeline.toml", "recipes.py:writer", "recipes.py:wirter")
    flags = flags_of(remit("run", project.pipeline))

    finished = remit("run", project.pipeline, *flags)

    assert finished.code == 2
    assert "'writer'" in finished.err
    assert "recipes.py" in finished.err
    assert not project.started


def test_a_misspelt_provider_of_a_model_is_told_before_a_server_starts(
    remit: Remit, project: Project
) -> None:
    flags = flags_of(remit("run", project.pipeline))

    finished = remit("run", project.pipeline, "--model", "opnai:gpt-5", *flags)

    assert finished.code == 2
    assert "'openai'" in finished.err
    assert not project.started


def test_a_misspelt_input_is_told(remit: Remit, project: Project) -> None:
    finished = remit("run", project.pipeline, "--input", "wrod=x")

    assert finished.code == 2
    assert "'word'" in finished.err
    assert not project.started


def test_a_misspelt_option_is_told(remit: Remit, project: Project) -> None:
    finished = remit("run", project.pipeline, "--dryrun")

    assert finished.code == 2
    assert "--dry-run" in finished.err


def test_a_misspelt_name_in_an_approval_starts_nothing(remit: Remit, project: Project) -> None:
    flags = flags_of(remit("run", project.pipeline))
    flags[1] = flags[1].replace("pipeline.toml", "pipelin.toml")

    finished = remit("run", project.pipeline, *flags)

    assert finished.code in (2, 6)
    assert not project.started


def test_a_pipeline_that_there_is_not_is_told(remit: Remit, project: Project) -> None:
    finished = remit("run", project.pipeline.replace("pipeline.toml", "pipelin.toml"))

    assert finished.code == 2
    assert "pipelin.toml" in finished.err
    assert "'pipeline.toml'" in finished.err


def test_an_unknown_key_of_a_servers_file_is_a_warning_with_place_and_nearest_name(
    remit: Remit, project: Project
) -> None:
    project.write(".mcp.json", project.servers(timout=5))

    finished = remit("run", project.pipeline)

    warning = next(line for line in finished.err.splitlines() if line.startswith("warning: "))
    assert finished.code == 6
    assert ".mcp.json:" in warning
    assert "timout" in warning
    assert "'timeout'" in warning


def test_a_file_that_is_no_toml_is_told_with_its_line(remit: Remit, project: Project) -> None:
    project.change("pipeline.toml", 'name = "greeting"', 'name = "greeting')

    finished = remit("run", project.pipeline)

    assert finished.code == 2
    assert "pipeline.toml:2" in finished.err
