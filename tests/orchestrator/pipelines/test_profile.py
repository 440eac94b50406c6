"""The profile's servers in a pipeline: only those that a grant names, only with a yes, first by label."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.pipelines.pipeline import Pipeline, PipelineRequest
from orchestrator.sessions.approvals import Origin

pytestmark = pytest.mark.requirement("S-20")
Load = Callable[..., Pipeline]
HEAD = 'remit = 1\nname = "x"\nservers = ".mcp.json"\n'
NAMING = '[agents.a]\nmodel = "openai:x"\ngrant = { tools = ["notes/read"] }\n'
OPEN = '[agents.b]\nmodel = "openai:x"\n'


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a pipeline beside a profile with a server `notes`; `servers` are the project's."""
    profile = tmp_path / "config" / "mcp.json"
    profile.parent.mkdir()
    profile.write_text(json.dumps({"mcpServers": {"notes": {"command": "mine"}}}))
    project = tmp_path / "project"
    project.mkdir()

    def load_it(text: str, *servers: str, origin: Origin = Origin.PROJECT) -> Pipeline:
        (project / "p.toml").write_text(HEAD + text)
        entries = {name: {"command": "theirs"} for name in servers}
        (project / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))
        return Pipeline.load(
            PipelineRequest(
                minimum=None,
                path=project / "p.toml",
                origin=origin,
                project=project,
                folder=project,
                out=tmp_path / "out",
                environ={},
                home=tmp_path,
                inputs={},
                profile=profile,
            )
        )

    return load_it


def test_a_server_of_the_profile_is_used_where_a_grant_names_it(load: Load):
    pipeline = load(NAMING)

    assert [(entry.name, entry.command) for entry in pipeline.servers] == [("notes", "mine")]


def test_its_use_by_this_pipeline_has_to_be_approved(load: Load):
    first, second = load(NAMING).items(), load(NAMING + 'prompt = "more"\n').items()
    lent = [[item for item in items if item.name == "notes"][-1] for items in (first, second)]

    assert {item.origin for item in lent} == {Origin.PROJECT}
    assert lent[0].digest != lent[1].digest


def test_the_profile_wins_over_a_project_entry_of_the_same_name_and_it_is_said(load: Load):
    pipeline = load(NAMING, "Notes")

    assert [entry.command for entry in pipeline.servers] == ["mine"]
    assert len([text for text in pipeline.warnings if "the profile has that name" in text]) == 1


def test_a_server_of_the_profile_that_no_grant_names_is_not_used(load: Load):
    pipeline = load(OPEN, "files")

    assert [entry.name for entry in pipeline.servers] == ["files"]


def test_an_agent_without_a_grant_keeps_the_profile_out_of_reach(load: Load):
    with pytest.raises(ConfigError) as caught:
        load(NAMING + OPEN)

    assert caught.value.code == "E-PIPELINE-GRANT"


def test_what_comes_with_remit_uses_no_profile(load: Load):
    with pytest.raises(ConfigError) as caught:
        load(NAMING, origin=Origin.BUILTIN)

    assert caught.value.code == "E-PIPELINE-SERVER"
