from __future__ import annotations

import json
import re
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.running import Finished, Remit

_ROLE = ("--role", "anybody")


def approvals(said: Finished) -> list[str]:
    found = re.findall(r"(--approve) (\S+@[0-9a-f]{64})", said.err)
    return [word for pair in found for word in pair]


def test_what_init_writes_runs_once_it_is_approved(remit: Remit):
    assert remit("init").code == 0
    pending = remit("run", "pipelines/first.toml", "--quiet")
    assert pending.code == 6

    ended = remit("run", "pipelines/first.toml", "--json", *approvals(pending))

    assert ended.code == 0, ended.err
    assert "list_capabilities" in ended.out


def test_what_init_writes_runs_beside_servers_that_the_project_had_before(remit: Remit):
    servers = {"files": {"command": "true"}, "notes": {"command": "npx", "args": ["-y", "notes"]}}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    remit("init")
    pending = remit("run", "pipelines/first.toml", "--quiet")

    ended = remit("run", "pipelines/first.toml", "--json", *approvals(pending))

    assert ended.code == 0, ended.err
    assert "list_capabilities" in ended.out


def test_the_policy_to_begin_with_is_one_that_check_accepts(remit: Remit):
    remit("init", "--policy")

    ended = remit("policy", "check", "policies/default.policy")

    assert ended.code == 0, ended.out + ended.err


@pytest.mark.parametrize("words", [("--policy",), ("--policy", "default")])
def test_with_policy_only_the_policy_is_written(remit: Remit, words: tuple[str, ...]):
    remit("init", *words)

    assert [str(path) for path in sorted(Path().rglob("*")) if path.is_file()] == [
        "policies/default.policy"
    ]


def test_a_file_that_differs_is_shown_and_kept(remit: Remit):
    Path("policies").mkdir()
    Path("policies/default.policy").write_text("policy mine v1 { default deny }\n")

    ended = remit("init")

    assert ended.code == 0
    assert Path("policies/default.policy").read_text() == "policy mine v1 { default deny }\n"
    assert "kept as it is: policies/default.policy" in ended.out
    assert "-policy mine v1 { default deny }" in ended.out


def test_of_a_servers_file_that_differs_nothing_is_shown(remit: Remit):
    Path(".mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "s3cret"}}}}'
    )

    ended = remit("init")

    assert "kept as it is: .mcp.json" in ended.out
    assert "s3cret" not in ended.out + ended.err


def test_nothing_is_written_through_a_link(remit: Remit, tmp_path: Path):
    target = tmp_path / "elsewhere"
    Path(".mcp.json").symlink_to(target)

    ended = remit("init", "--json")

    assert not target.exists()
    files = cast("list[dict[str, str]]", ended.json["files"])
    assert {"path": ".mcp.json", "state": "different"} in files


def test_a_policy_that_there_is_not_is_an_error_with_the_nearest(remit: Remit):
    ended = remit("init", "--policy", "defualt")

    assert ended.code == 2
    assert "E-INIT-POLICY" in ended.err
    assert "'default'" in ended.err


def test_each_server_there_is_gets_a_rule_that_asks(remit: Remit, home: Path):
    labels = ("files", "any", "my-server", "2nd", "server")
    servers = {label: {"command": "serve"} for label in labels}
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    remit("init", "--policy")

    explained = [
        remit("policy", "explain", "policies/default.policy", *_ROLE, "--call", f"{label}/anything")
        for label in labels
    ]
    assert [ended.code for ended in explained] == [4] * len(labels)


def test_twice_is_as_once(remit: Remit):
    remit("init")

    ended = remit("init", "--json")

    files = cast("list[dict[str, str]]", ended.json["files"])
    assert {file["state"] for file in files} == {"there already"}
