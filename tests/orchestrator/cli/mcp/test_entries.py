from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from orchestrator.cli.demo import files_server
from tests.orchestrator.cli.running import Remit

SECRET = {
    "command": "serve",
    "args": ["--token", "s3cret-arg"],
    "env": {"TOKEN": "s3cret-env", "HOST": "${HOST_NAME}"},
}
FILES = [sys.executable, "-I", files_server.__file__, "--root", ".", "--out", "."]


def written(path: Path) -> dict[str, object]:
    return json.loads(path.read_text())["mcpServers"]


def project(**servers: object) -> None:
    Path(".git").mkdir(exist_ok=True)
    Path(".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def test_a_command_is_added_to_the_profile(remit: Remit, home: Path):
    ended = remit("mcp", "add", "files", "--env", "A=1", "--", "serve", "--root", ".")

    assert ended.code == 0, ended.err
    assert written(home / "config" / "mcp.json") == {
        "files": {"command": "serve", "args": ["--root", "."], "env": {"A": "1"}}
    }
    assert (home / "config" / "mcp.json").stat().st_mode & 0o777 == 0o600


def test_an_address_is_added_with_its_headers(remit: Remit, home: Path):
    ended = remit(
        "mcp", "add", "far", "https://far.example/mcp", "--header", "Authorization=Bearer ${T}"
    )

    assert ended.code == 0, ended.err
    assert written(home / "config" / "mcp.json") == {
        "far": {
            "type": "http",
            "url": "https://far.example/mcp",
            "headers": {"Authorization": "Bearer ${T}"},
        }
    }


def test_an_entry_that_is_there_is_not_replaced(remit: Remit, home: Path):
    remit("mcp", "add", "files", "--", "serve")

    ended = remit("mcp", "add", "files", "--", "other")

    assert ended.code == 2
    assert "E-SERVER-EXISTS" in ended.err
    assert written(home / "config" / "mcp.json") == {"files": {"command": "serve", "args": []}}


@pytest.mark.parametrize(
    "words",
    [
        ("bad name!", "--", "serve"),
        ("a", "--header", "A=b", "--", "serve"),
        ("a", "https://x.example/", "more"),
        ("a", "--env", "A=b", "https://x.example/"),
        ("a", "--header", "Host=elsewhere", "https://user:pass@x.example/"),
    ],
)
def test_what_makes_no_server_is_an_error_or_told_and_no_file_is_spoilt(
    remit: Remit, home: Path, words: tuple[str, ...]
):
    ended = remit("mcp", "add", *words)

    listed = remit("mcp", "list", "--json")
    assert listed.code == 0
    assert ended.code == 2 or '"config_error"' in listed.out


def test_a_servers_entry_is_shown_without_a_value(remit: Remit, home: Path):
    project(own=SECRET)

    text, as_json = remit("mcp", "get", "own"), remit("mcp", "get", "own", "--json")

    assert "s3cret" not in text.out + text.err + as_json.out + as_json.err
    assert as_json.json["env"] == ["HOST", "TOKEN"]
    assert as_json.json["variables"] == ["HOST_NAME"]


def test_a_server_is_removed(remit: Remit, home: Path):
    remit("mcp", "add", "files", "--", "serve")

    ended = remit("mcp", "remove", "files")

    assert ended.code == 0
    assert written(home / "config" / "mcp.json") == {}


def test_the_nearest_label_is_named_where_one_is_misspelt(remit: Remit, home: Path):
    remit("mcp", "add", "files", "--", "serve")

    for command in ("remove", "get", "ping"):
        ended = remit("mcp", command, "fiels")
        assert ended.code == 2
        assert "'files'" in ended.err


def test_a_projects_server_is_approved_by_its_whole_digest(remit: Remit, home: Path):
    project(own={"command": "serve"})
    digest = remit("mcp", "get", "own", "--json").json["digest"]

    ended = remit("mcp", "approve", f"own@{digest}")

    assert ended.code == 0, ended.err
    assert remit("mcp", "get", "own", "--json").json["state"] == "approved"


def test_a_name_alone_approves_nothing_where_nobody_can_be_asked(remit: Remit, home: Path):
    project(own={"command": "serve"})

    ended = remit("mcp", "approve", "own")

    assert ended.code == 6
    assert remit("mcp", "get", "own", "--json").json["state"] == "pending"


def test_an_approval_is_of_what_stands_there_now(remit: Remit, home: Path):
    project(own={"command": "serve"})
    digest = remit("mcp", "get", "own", "--json").json["digest"]
    project(own={"command": "other"})

    ended = remit("mcp", "approve", f"own@{digest}")

    assert ended.code == 2
    assert remit("mcp", "get", "own", "--json").json["state"] == "pending"


def test_a_rejected_server_stays_so_until_it_changes(remit: Remit, home: Path):
    project(own={"command": "serve"})

    remit("mcp", "reject", "own")

    assert remit("mcp", "get", "own", "--json").json["state"] == "rejected"
    project(own={"command": "other"})
    assert remit("mcp", "get", "own", "--json").json["state"] == "changed"


def test_a_server_of_ones_own_needs_no_approval(remit: Remit, home: Path):
    remit("mcp", "add", "files", "--", "serve")

    assert "E-APPROVE-OWN" in remit("mcp", "approve", "files").err


def test_a_server_answers_a_ping(remit: Remit, home: Path):
    remit("mcp", "add", "files", "--", *FILES)

    ended = remit("mcp", "ping", "files", "--json")

    assert ended.code == 0, ended.out
    assert str(ended.json["detail"]).startswith("MCP 2025-11-25")


def test_a_projects_server_is_not_pinged_before_it_is_approved(remit: Remit, home: Path):
    touched = Path("touched").absolute()
    project(own={"command": sys.executable, "args": ["-c", f"open({str(touched)!r}, 'w')"]})

    ended = remit("mcp", "ping", "own")

    assert ended.code == 6
    assert not touched.exists()
