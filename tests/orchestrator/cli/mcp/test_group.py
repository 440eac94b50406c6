from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from orchestrator.sessions.approvals import ApprovalStore, ApproveFlag, Origin
from orchestrator.sessions.configuration import ServersSource, load_servers, server_item
from orchestrator.sessions.state import StatePaths
from tests.orchestrator.cli.running import Remit

SECRETS = (
    "s3cret-env",
    "s3cret-arg",
    "s3cret-folder",
    "s3cret.example",
    "s3cret-default",
    "s3cret-word",
)

PLANTED = {
    "mcpServers": {
        "ready": {
            "command": "/opt/s3cret-folder/server-bin",
            "args": ["--token", "s3cret-arg"],
            "env": {"TOKEN": "s3cret-env"},
        },
        "words": {"command": "TOKEN=s3cret-word server-bin"},
        "remote": {
            "url": "https://s3cret.example/mcp",
            "headers": {"Authorization": "s3cret-arg"},
        },
        "helped": {"url": "https://s3cret.example/", "headersHelper": "s3cret-folder/tool"},
        "astray": {"url": "https://user:s3cret-word@host/", "headers": {"Host": "s3cret-arg"}},
        "broken": {"command": "server-bin", "args": ["${VAR-s3cret-default}"]},
        "unset": {"command": "${s3cret-default}/x"},
        "off": {"command": "server-bin", "disabled": True},
    }
}


def write_servers(value: object, path: str = ".mcp.json") -> None:
    Path(path).write_text(json.dumps(value))


def states(remit: Remit, *words: str) -> dict[str, str]:
    rows = cast("list[dict[str, str]]", remit("mcp", "list", "--json", *words).json["servers"])
    return {row["name"]: row["state"] for row in rows}


def decide(home: Path, *, approved: bool) -> None:
    here = Path.cwd()
    paths = StatePaths.from_environment({"REMIT_HOME": str(home)})
    paths.prepare()
    source = ServersSource(minimum=None, origin=Origin.PROJECT, project=here, home=home, environ={})
    (entry,) = load_servers(Path(".mcp.json"), source).entries
    store = ApprovalStore(paths.approvals)
    store.save(store.book(here).decide(server_item(entry), approved=approved, at=1.0, by="test"))


@pytest.mark.requirement("S-28")
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_no_secret_of_a_servers_file_is_listed(remit: Remit, words: tuple[str, ...]):
    write_servers(PLANTED)

    ended = remit("mcp", "list", *words)

    assert ended.code == 0
    assert [secret for secret in SECRETS if secret in ended.out + ended.err] == []
    assert "https:" not in ended.out
    assert "TOKEN" not in ended.out
    assert "server-bin" in ended.out


def test_each_server_has_its_state(remit: Remit):
    write_servers(PLANTED)

    assert states(remit) == {
        "ready": "pending",
        "words": "pending",
        "remote": "pending",
        "helped": "unsupported",
        "astray": "config_error",
        "broken": "config_error",
        "unset": "config_error",
        "off": "disabled",
    }


@pytest.mark.parametrize(("approved", "state"), [(True, "approved"), (False, "rejected")])
def test_what_a_person_decided_is_the_state(remit: Remit, home: Path, approved: bool, state: str):
    write_servers({"mcpServers": {"a": {"command": "x"}}})
    decide(home, approved=approved)

    assert states(remit) == {"a": state}


def test_a_server_that_is_not_the_one_that_was_approved_has_changed(remit: Remit, home: Path):
    write_servers({"mcpServers": {"a": {"command": "x"}}})
    decide(home, approved=True)
    write_servers({"mcpServers": {"a": {"command": "x", "args": ["--more"]}}})

    assert states(remit) == {"a": "changed"}


@pytest.mark.requirement("S-20")
def test_the_profiles_servers_need_no_approval_and_come_first(remit: Remit, home: Path):
    (home / "config").mkdir(parents=True)
    write_servers({"mcpServers": {"a": {"command": "mine"}}}, str(home / "config" / "mcp.json"))
    write_servers({"mcpServers": {"a": {"command": "theirs"}, "b": {"command": "x"}}})

    ended = remit("mcp", "list")

    lines = [line.split() for line in ended.out.splitlines()[1:]]
    assert [(line[0], line[1], line[2], line[4]) for line in lines] == [
        ("a", "profile", "approved", "mine"),
        ("b", "project", "pending", "x"),
    ]


def test_without_a_file_there_is_nothing_to_list(remit: Remit):
    ended = remit("mcp", "list")

    assert (ended.code, ended.out) == (0, "")
    assert "no servers are configured; name a file with --servers" in ended.err


def test_a_file_that_is_named_must_be_there(remit: Remit):
    ended = remit("mcp", "list", "--servers", "none.json")

    assert ended.code == 2
    assert ended.err.startswith("E-SERVERS-FILE: ")


def test_a_server_is_listed_and_not_started(remit: Remit):
    write_servers({"mcpServers": {"a": {"command": "touch", "args": ["started"]}}})

    remit("mcp", "list")

    assert not Path("started").exists()


def test_a_server_of_which_each_agent_has_one_is_marked(remit: Remit):
    write_servers({"mcpServers": {"shell": {"command": "sh-server", "isolate": "agent"}}})

    (row,) = cast("list[dict[str, str]]", remit("mcp", "list", "--json").json["servers"])

    assert row["isolate"] == "agent"
    assert "sh-server (one for each agent)" in remit("mcp", "list").out


def test_a_server_that_writes_into_the_output_folder_can_be_used(remit: Remit):
    write_servers({"mcpServers": {"shop": {"command": "python3", "args": ["${REMIT_OUT}/x"]}}})

    assert states(remit) == {"shop": "pending"}


def test_a_servers_file_belongs_to_the_project_that_it_stands_in(remit: Remit, home: Path):
    Path(".git").mkdir()
    Path("sub").mkdir()
    write_servers({"mcpServers": {"shop": {"command": "python3"}}})
    decide(home, approved=True)
    Path(".mcp.json").rename("sub/servers.json")

    assert states(remit, "--servers", "sub/servers.json") == {"shop": "approved"}


def test_the_whole_digest_can_be_copied_and_a_part_of_it_does_not_pass_for_it(remit: Remit):
    write_servers({"mcpServers": {"a": {"command": "x"}}})

    (row,) = cast("list[dict[str, str]]", remit("mcp", "list", "--json").json["servers"])
    ended = remit("mcp", "list")

    assert ApproveFlag.parse(f"a@{row['digest']}").digest == row["digest"]
    assert f"{row['digest'][:12]}…" in ended.out
    assert "--json" in ended.err


def test_the_least_sandbox_of_the_settings_is_shown_and_held(remit: Remit, home: Path):
    write_servers({"mcpServers": {"bare": {"command": "server-bin"}}})
    (home / "config").mkdir(parents=True, mode=0o700)
    (home / "config" / "config.toml").write_text("[sandbox]\n")

    listed = remit("mcp", "list")
    shown = remit("mcp", "get", "bare", "--json").json
    started = remit("mcp", "ping", "bare")

    assert "config_error" in listed.out
    assert "a project's servers may change nothing and reach no network" in listed.err
    assert shown["problem"] == "E-SERVER-SANDBOX-MINIMUM"
    assert "it has no sandbox" in str(shown["why"])
    assert "config.toml" in str(shown["fix"])
    assert (started.code, "E-SERVER-SANDBOX-MINIMUM" in started.err) == (2, True)
