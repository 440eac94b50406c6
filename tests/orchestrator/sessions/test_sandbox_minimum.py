"""The sandbox that a person's settings want of every server: what is less is not started, and says why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.core.documents import read_json, read_toml
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import (
    EntryState,
    ServerEntry,
    ServersSource,
    read_servers,
)
from orchestrator.sessions.confining import confined
from orchestrator.sessions.layers import configured_servers
from orchestrator.sessions.sandbox import (
    SANDBOX_PATHS_MAX,
    SandboxMinimum,
    minimum_lines,
    read_minimum,
    sandbox_lines,
)
from orchestrator.sessions.settings import load_settings, merge_settings, sandbox_minimum
from tests.orchestrator.sessions.controlled import state_below

STRICT = ""
OPEN = 'fs = ["${REMIT_OUT}", "${workspaceFolder}/out", "/srv"]\nread = ["/opt/x"]\nnet = true'
CODE = "E-SERVER-SANDBOX-MINIMUM"


def minimum(text: str = STRICT) -> SandboxMinimum:
    return read_minimum(
        read_toml(f"[sandbox]\n{text}\n".encode(), "config.toml").table().table("sandbox")
    )


def entry(
    sandbox: object,
    least: SandboxMinimum | None,
    *,
    origin: Origin = Origin.PROJECT,
    out: str = "/run/out",
    **more: object,
) -> ServerEntry:
    server = {"command": "/bin/true", "sandbox": sandbox, **more}
    source = ServersSource(
        origin=origin, minimum=least, project=Path("/p"), home=Path("/home/u"), environ={}, out=out
    )
    text = json.dumps({"mcpServers": {"files": server}})
    return read_servers(read_json(text, ".mcp.json"), source).entries[0]


@pytest.mark.parametrize(
    ("sandbox", "least", "lacks"),
    [
        (None, STRICT, "it has no sandbox"),
        (False, STRICT, "it has no sandbox"),
        ({"net": True}, STRICT, "its sandbox reaches the network"),
        ({"fs": ["out"]}, STRICT, "its sandbox changes out"),
        ({"read": ["/opt/x"]}, STRICT, "its sandbox reads /opt/x"),
        ({"fs": ["/srvx"]}, OPEN, "its sandbox changes /srvx"),
        ({"fs": ["/srv/../etc"]}, OPEN, "its sandbox changes /srv/../etc"),
        ({"fs": ["/opt/x"]}, OPEN, "its sandbox changes /opt/x"),
        ({"fs": ["${workspaceFolder}"]}, OPEN, "its sandbox changes ${workspaceFolder}"),
        ({"read": ["/opt"]}, OPEN, "its sandbox reads /opt"),
        (None, 'net = true\nfs = ["/"]', "it has no sandbox"),
    ],
)
def test_what_opens_more_than_the_minimum_is_not_started_and_says_what_mends_it(
    sandbox: object, least: str, lacks: str
):
    found = entry(sandbox, minimum(least))

    assert found.state is EntryState.CONFIG_ERROR
    assert found.command == ""
    problem = found.problem
    assert problem is not None
    assert problem.code == CODE
    assert lacks in problem.message
    assert "config.toml" in problem.fix
    assert "a project's servers may change" in problem.why
    assert str(problem.where).startswith(".mcp.json")


@pytest.mark.parametrize(
    ("sandbox", "least"),
    [
        ({}, STRICT),
        ({"required": True}, STRICT),
        ({"fs": ["out", "out/deep", "${REMIT_OUT}", "/run/out/a"]}, OPEN),
        ({"fs": ["/srv", "/srv/x/"], "net": True}, OPEN),
        ({"read": ["/opt/x/y", "/srv/x"]}, OPEN),
        ({"fs": ["/anything"]}, 'fs = ["/"]'),
    ],
)
def test_what_opens_no_more_than_the_minimum_is_started(sandbox: object, least: str):
    found = entry(sandbox, minimum(least))

    assert found.problem is None
    assert found.state is EntryState.READY


def test_the_minimum_is_required_without_the_entry_saying_so(monkeypatch: pytest.MonkeyPatch):
    found = entry({}, minimum())

    assert found.sandbox is not None
    assert found.sandbox.required
    assert not any("NOT REQUIRED" in line for line in sandbox_lines(found.asked_sandbox))
    with pytest.raises(ConfigError) as caught:
        confined(found, path="/nowhere")
    assert caught.value.code == "E-SERVER-SANDBOX"


def test_a_minimum_that_is_not_required_leaves_that_to_the_entry():
    found = entry({}, minimum("required = false"))

    assert found.sandbox is not None
    assert not found.sandbox.required


@pytest.mark.parametrize(
    ("of", "origin", "held"),
    [
        ("project", Origin.PROJECT, True),
        ("project", Origin.PROFILE, False),
        ("all", Origin.PROJECT, True),
        ("all", Origin.PROFILE, True),
        ("all", Origin.BUILTIN, False),
    ],
)
def test_it_says_whose_servers_are_meant(of: str, origin: Origin, *, held: bool):
    found = entry(None, minimum(f'of = "{of}"'), origin=origin)

    assert (found.problem is not None) is held


def test_a_server_that_is_reached_by_an_address_is_none_that_is_started():
    text = json.dumps({"mcpServers": {"far": {"type": "http", "url": "https://far.example/mcp"}}})
    source = ServersSource(
        origin=Origin.PROJECT,
        minimum=minimum(),
        project=Path("/p"),
        home=Path("/home/u"),
        environ={},
    )

    assert read_servers(read_json(text, ".mcp.json"), source).entries[0].problem is None


def test_a_place_that_is_nowhere_without_a_run_opens_nothing():
    opened = entry({"fs": ["."]}, minimum('fs = ["${REMIT_OUT}"]'), out="")
    same = entry({"fs": ["${REMIT_OUT}"]}, minimum('fs = ["${REMIT_OUT}"]'), out="")

    assert opened.problem is not None
    assert same.problem is None


@pytest.mark.parametrize(
    "text",
    [
        'fs = ["out"]',
        'fs = "none"',
        'read = ["~/x"]',
        'of = "nobody"',
        "net = 1",
        "more = true",
        f"fs = {json.dumps([f'/{number}' for number in range(SANDBOX_PATHS_MAX + 1)])}",
    ],
)
def test_a_minimum_that_makes_no_sense_is_an_error_with_its_place(tmp_path: Path, text: str):
    path = tmp_path / "config.toml"
    path.write_text(f"[sandbox]\n{text}\n")

    with pytest.raises(ConfigError) as caught:
        load_settings(path, Origin.PROFILE)

    assert str(path) in str(caught.value.where)


def test_a_place_that_cannot_be_told_refuses_what_it_would_confine():
    found = entry({}, minimum('fs = ["/srv/${NOBODY}"]'))

    assert found.problem is not None
    assert "cannot be told" in found.problem.message


def test_a_project_has_no_word_in_it(tmp_path: Path):
    own, theirs = tmp_path / "config.toml", tmp_path / "remit.toml"
    own.write_text("[sandbox]\n")
    theirs.write_text('[sandbox]\nfs = ["/"]\nnet = true\n')

    with pytest.raises(ConfigError) as caught:
        load_settings(theirs, Origin.PROJECT)
    mine = load_settings(own, Origin.PROFILE)

    assert caught.value.code == "E-SETTINGS-PROJECT"
    assert (
        merge_settings(mine, load_settings(tmp_path / "none", Origin.PROJECT)).minimum
        == mine.minimum
    )


def test_every_look_at_the_configured_servers_holds_them_to_it(tmp_path: Path):
    paths = state_below(tmp_path)
    paths.config.mkdir(parents=True)
    (paths.config / "config.toml").write_text('[sandbox]\nof = "all"\n')
    (paths.config / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "true"}}}')
    project = tmp_path / "project"
    project.mkdir()
    file = project / ".mcp.json"
    file.write_text('{"mcpServers": {"theirs": {"command": "true"}}}')

    found = configured_servers(paths, file, environ={}, home=tmp_path)

    codes = [each.problem.code for each in found.file.entries if each.problem is not None]
    assert codes == [CODE, CODE]
    assert found.minimum == sandbox_minimum(paths)
    (line,) = minimum_lines(found.minimum)
    assert line.startswith("every server that is started may change nothing and reach no network")
