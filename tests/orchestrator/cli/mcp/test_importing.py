from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.running import Remit

SERVERS = {"mcpServers": {"files": {"command": "serve", "env": {"TOKEN": "s3cret-value"}}}}


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of somebody who has used Cursor."""
    folder = tmp_path / "person"
    (folder / ".cursor").mkdir(parents=True)
    (folder / ".cursor" / "mcp.json").write_text(json.dumps(SERVERS))
    monkeypatch.setenv("HOME", str(folder))
    return folder


def test_a_clients_own_file_comes_into_the_profile(remit: Remit, home: Path, person: Path):
    ended = remit("mcp", "import", "--from", "cursor")

    assert ended.code == 0
    target = home / "config" / "mcp.json"
    assert json.loads(target.read_text()) == SERVERS
    assert target.stat().st_mode & 0o777 == 0o600
    assert "files: added" in ended.out


def test_no_value_of_an_entry_is_printed(remit: Remit, person: Path):
    shown = remit("mcp", "import", "--from", "cursor", "--dry-run")
    as_json = remit("mcp", "import", "--from", "cursor", "--json")

    assert "s3cret-value" not in shown.out + shown.err + as_json.out + as_json.err


def test_a_dry_run_writes_nothing(remit: Remit, home: Path, person: Path):
    ended = remit("mcp", "import", "--from", "cursor", "--dry-run")

    assert ended.code == 0
    assert not (home / "config" / "mcp.json").exists()
    assert "nothing was written" in ended.err


def test_a_file_of_the_project_stays_the_projects(remit: Remit, home: Path, person: Path):
    Path(".git").mkdir()
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text('{"servers": {"own": {"command": "serve"}}}')

    ended = remit("mcp", "import", "--from", "vscode", ".vscode/mcp.json")

    assert ended.code == 0
    assert json.loads(Path(".mcp.json").read_text()) == {
        "mcpServers": {"own": {"command": "serve"}}
    }
    assert not (home / "config" / "mcp.json").exists()
    listed = remit("mcp", "list", "--json").json
    assert [row["state"] for row in cast("list[dict[str, str]]", listed["servers"])] == ["pending"]


def test_where_a_client_has_no_file_the_projects_is_named(remit: Remit, person: Path):
    Path(".git").mkdir()
    Path(".gemini").mkdir()
    Path(".gemini/settings.json").write_text("{}")

    ended = remit("mcp", "import", "--from", "gemini")

    assert ended.code == 2
    assert "E-IMPORT-FILE" in ended.err
    assert ".gemini/settings.json" in ended.err


def test_a_client_without_a_file_anywhere_says_where_it_was_looked_for(remit: Remit, person: Path):
    ended = remit("mcp", "import", "--from", "claude-code")

    assert ended.code == 2
    assert ".claude.json" in ended.err
