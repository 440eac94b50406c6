from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.jsonc import blank_comments
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import (
    EntryState,
    ServersSource,
    load_servers,
)
from orchestrator.sessions.importing.clients import Client, Places, client_of, read_client
from orchestrator.sessions.importing.dialects import (
    NAME_CHARS_MAX,
    ImportedEntry,
    rewrite_servers,
)
from orchestrator.sessions.importing.merging import Fate, merge_entries, without_entry, write_merged

CLAUDE_DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "server-filesystem@1.2.3", "/srv"],
              "env": {"TOKEN": "literal"}}
  }
}"""

CLAUDE_CODE = """{
  "numStartups": 12,
  "mcpServers": {
    "github": {"type": "http", "url": "https://api.example/mcp",
               "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
               "oauth": {"clientId": "abc", "callbackPort": 8123}},
    "events": {"type": "sse", "url": "https://events.example/sse"}
  },
  "projects": {
    "PROJECT": {"mcpServers": {"local": {"command": "./serve", "timeout": 5000}}},
    "/elsewhere": {"mcpServers": {"other": {"command": "other"}}}
  }
}"""

VSCODE = """{
  // what the editor asks for
  "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
  "servers": {
    "play": {
      "type": "stdio", "command": "npx", "args": ["-y", "@playwright/mcp@1.0.0",],
      "env": {"KEY": "${input:api-key}", "HOST": "${env:MY_HOST}"},
      "envFile": "${workspaceFolder}/.env", /* with tokens */
      "dev": {"watch": "src/**"}
    },
    "boxed": {"command": "srv", "sandboxEnabled": true},
    "socket": {"type": "http", "url": "unix:///run/mcp.sock"},
  },
}"""

CURSOR = """{"mcpServers": {
  "my server.v2": {"url": "https://cursor.example/mcp",
     "auth": {"CLIENT_ID": "id-1", "CLIENT_SECRET": "s3cret", "scopes": ["read", "write"]}},
  "tools": {"command": "uvx", "args": ["thing"], "autoApprove": ["*"]}
}}"""

GEMINI = """{
  "theme": "Dark",
  "mcp": {"allowed": ["one"]},
  "mcpServers": {
    "one": {"command": "python", "args": ["one.py"], "env": {"A": "$MY_A", "B": "x${MY_B}"},
            "trust": true, "timeout": 30000},
    "two": {"url": "https://two.example/sse"},
    "three": {"httpUrl": "https://three.example/mcp", "includeTools": ["only_this"]}
  }
}"""

CODEX = """
model = "gpt-5"

[mcp_servers.docs]
command = "docs-server"
args = ["--stdio"]
env = { MODE = "ro" }
env_vars = ["DOCS_TOKEN", { name = "DOCS_HOST", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 45

[mcp_servers.issues]
url = "https://issues.example/mcp"
bearer_token_env_var = "ISSUES_TOKEN"
http_headers = { "X-Team" = "blue" }
env_http_headers = { "X-User" = "ISSUES_USER" }
scopes = ["issues:read"]
oauth = { client_id = "codex-1" }
enabled = false

[mcp_servers.narrow]
command = "narrow"
enabled_tools = ["look"]
default_tools_approval_mode = "approve"
"""

ZED = """{
  "context_servers": {
    "old": {"source": "custom", "command": {"path": "srv", "args": ["-x"], "env": {"A": "1"}}},
    "new": {"source": "custom", "enabled": true, "command": "srv2", "args": [], "env": {}},
  }
}"""


def imported(text: str, client: Client, folder: Path) -> dict[str, ImportedEntry]:
    file = folder / "client-file"
    file.write_text(text.replace("PROJECT", str(folder)))
    entries = rewrite_servers(read_client(file, client, project=folder), client)
    return {entry.source: entry for entry in entries}


def notes(entry: ImportedEntry) -> str:
    return "\n".join(entry.notes)


def test_an_entry_of_claude_desktop_comes_as_it_is(tmp_path: Path):
    found = imported(CLAUDE_DESKTOP, Client.CLAUDE_DESKTOP, tmp_path)

    assert found["files"].entry == {
        "command": "npx",
        "args": ["-y", "server-filesystem@1.2.3", "/srv"],
        "env": {"TOKEN": "literal"},
    }
    assert found["files"].notes == []


def test_a_text_that_claude_desktop_would_not_expand_is_told(tmp_path: Path):
    text = '{"mcpServers": {"a": {"command": "run", "args": ["${HOME}"]}}}'

    found = imported(text, Client.CLAUDE_DESKTOP, tmp_path)

    assert "remit expands" in notes(found["a"])


def test_of_claude_code_the_persons_servers_and_this_projects_come(tmp_path: Path):
    found = imported(CLAUDE_CODE, Client.CLAUDE_CODE, tmp_path)

    assert set(found) == {"github", "events", "local"}
    assert found["github"].entry["headers"] == {"Authorization": "Bearer ${GITHUB_TOKEN}"}
    assert found["github"].entry["oauth"] == {"clientId": "abc", "callbackPort": 8123}
    assert found["events"].entry["type"] == "sse"
    assert found["local"].entry == {"command": "./serve", "timeout": 5000}


def test_what_vscode_asks_a_person_for_becomes_a_variable(tmp_path: Path):
    play = imported(VSCODE, Client.VSCODE, tmp_path)["play"]

    assert play.entry["env"] == {"KEY": "${API_KEY}", "HOST": "${env:MY_HOST}"}
    assert play.variables == ["API_KEY"]
    assert "API_KEY" in notes(play)
    assert "'envFile' is left out" in notes(play)


def test_a_sandboxed_server_comes_turned_off(tmp_path: Path):
    boxed = imported(VSCODE, Client.VSCODE, tmp_path)["boxed"]

    assert boxed.entry == {"command": "srv", "disabled": True}
    assert "'sandboxEnabled' narrowed it" in notes(boxed)


def test_an_address_that_is_no_web_address_is_left_out(tmp_path: Path):
    socket = imported(VSCODE, Client.VSCODE, tmp_path)["socket"]

    assert socket.entry == {}
    assert "neither http nor https" in notes(socket)


def test_cursors_login_comes_without_its_secret(tmp_path: Path):
    server = imported(CURSOR, Client.CURSOR, tmp_path)["my server.v2"]

    assert server.name == "my-server-v2"
    assert server.entry["oauth"] == {"clientId": "id-1", "scopes": "read write"}
    assert "s3cret" not in repr(server) + notes(server) + json.dumps(server.entry)
    assert "is called my-server-v2 here" in notes(server)


def test_no_files_consent_comes_along(tmp_path: Path):
    tools = imported(CURSOR, Client.CURSOR, tmp_path)["tools"]

    assert tools.entry == {"command": "uvx", "args": ["thing"]}
    assert "no file gives consent" in notes(tools)


def test_geminis_variables_and_transports_are_written_as_ours(tmp_path: Path):
    found = imported(GEMINI, Client.GEMINI, tmp_path)

    assert found["one"].entry["env"] == {"A": "${MY_A}", "B": "x${MY_B}"}
    assert found["one"].entry["timeout"] == 30000
    assert found["two"].entry == {"type": "sse", "url": "https://two.example/sse"}
    assert found["three"].entry == {
        "type": "http",
        "url": "https://three.example/mcp",
        "disabled": True,
    }


def test_codexs_variables_and_seconds_are_written_as_ours(tmp_path: Path):
    found = imported(CODEX, Client.CODEX, tmp_path)

    assert found["docs"].entry == {
        "command": "docs-server",
        "args": ["--stdio"],
        "env": {"MODE": "ro", "DOCS_TOKEN": "${DOCS_TOKEN}", "DOCS_HOST": "${DOCS_HOST}"},
        "timeout": 45000,
    }
    assert found["issues"].entry == {
        "url": "https://issues.example/mcp",
        "headers": {
            "X-Team": "blue",
            "X-User": "${ISSUES_USER}",
            "Authorization": "Bearer ${ISSUES_TOKEN}",
        },
        "oauth": {"clientId": "codex-1", "scopes": "issues:read"},
        "disabled": True,
    }
    assert found["narrow"].entry == {"command": "narrow", "disabled": True}


def test_both_forms_of_zed_are_read(tmp_path: Path):
    found = imported(ZED, Client.ZED, tmp_path)

    assert found["old"].entry == {"command": "srv", "args": ["-x"], "env": {"A": "1"}}
    assert found["new"].entry == {"command": "srv2", "args": [], "env": {}}


@pytest.mark.parametrize(
    ("text", "client"),
    [
        (CLAUDE_DESKTOP, Client.CLAUDE_DESKTOP),
        (CLAUDE_CODE, Client.CLAUDE_CODE),
        (VSCODE, Client.VSCODE),
        (CURSOR, Client.CURSOR),
        (GEMINI, Client.GEMINI),
        (CODEX, Client.CODEX),
        (ZED, Client.ZED),
    ],
)
def test_what_comes_in_is_a_servers_file_that_can_be_read(
    text: str, client: Client, tmp_path: Path
):
    entries = imported(text, client, tmp_path)
    target = tmp_path / "mcp.json"
    write_merged(merge_entries(target, entries.values()), shared=False)
    environ: dict[str, str] = dict.fromkeys(
        (
            "API_KEY", "MY_HOST", "MY_A", "MY_B", "DOCS_TOKEN", "DOCS_HOST", "ISSUES_USER",
            "ISSUES_TOKEN", "GITHUB_TOKEN",
        ),
        "x",
    )  # fmt: skip

    file = load_servers(
        target,
        ServersSource(
            minimum=None, origin=Origin.PROFILE, project=tmp_path, home=tmp_path, environ=environ
        ),
    )

    wanted = {entry.name for entry in entries.values() if entry.entry}
    assert {entry.name for entry in file.entries} == wanted
    assert {entry.state for entry in file.entries} <= {EntryState.READY, EntryState.DISABLED}


def test_labels_that_become_one_are_told_apart(tmp_path: Path):
    long = "x" * 60
    text = json.dumps({"mcpServers": {n: {"command": "a"} for n in ("a b", "a.b", long)}})

    found = imported(text, Client.CURSOR, tmp_path)

    assert [entry.name for entry in found.values()] == ["a-b", "a-b-2", "x" * NAME_CHARS_MAX]


def test_a_label_that_is_there_already_is_not_replaced(tmp_path: Path):
    target = tmp_path / "mcp.json"
    target.write_text('{"mcpServers": {"Files": {"command": "mine"}}, "other": 1}')
    entries = imported(CLAUDE_DESKTOP, Client.CLAUDE_DESKTOP, tmp_path)

    merged = merge_entries(target, entries.values())

    assert [fate for _, fate in merged.fates] == [Fate.KEPT]
    assert not merged.changed
    kept = cast("dict[str, object]", json.loads(merged.text))
    assert kept == {"mcpServers": {"Files": {"command": "mine"}}, "other": 1}


def test_half_a_surrogate_pair_in_the_file_is_written_back_as_it_was(tmp_path: Path):
    target = tmp_path / "mcp.json"
    target.write_text(r'{"mcpServers": {"a": {"command": "x"}, "b": {"command": "\ud83d"}}}')

    write_merged(without_entry(target, "a"), shared=False)

    assert json.loads(target.read_text()) == {"mcpServers": {"b": {"command": "\ud83d"}}}


def test_the_same_entry_twice_is_already_there(tmp_path: Path):
    target = tmp_path / "mcp.json"
    entries = imported(CLAUDE_DESKTOP, Client.CLAUDE_DESKTOP, tmp_path)
    write_merged(merge_entries(target, entries.values()), shared=False)

    merged = merge_entries(target, entries.values())

    assert [fate for _, fate in merged.fates] == [Fate.SAME]
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_file_without_servers_says_where_they_should_be(tmp_path: Path):
    with pytest.raises(ConfigError, match="no servers") as caught:
        imported('{"servers": {}}', Client.CURSOR, tmp_path)

    assert "'mcpServers'" in caught.value.why


def test_a_client_that_is_not_known_is_told_with_the_nearest():
    with pytest.raises(ConfigError, match="claude-dekstop") as caught:
        client_of("claude-dekstop")

    assert "claude-desktop" in caught.value.fix


@pytest.mark.parametrize("client", list(Client))
def test_every_client_has_a_place(client: Client, tmp_path: Path):
    places = Places.from_environment({}, home=tmp_path, project=tmp_path / "p", platform="linux")

    assert all(path.is_relative_to(tmp_path) for path in places.own(client))
    assert all(path.is_relative_to(tmp_path / "p") for path in places.of_project(client))


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{"a": 1} // end', '{"a": 1}       '),
        ('{"a": "//no", "b": "/* no */"}', '{"a": "//no", "b": "/* no */"}'),
        ("[1, /* two */ 2,\n]", "[1,           2 \n]"),
        ('{"a": [1,],}', '{"a": [1 ] }'),
        ('{"a": 1, // last\n}', '{"a": 1         \n}'),
        ('{"a": "\\",}"}', '{"a": "\\",}"}'),
        ("/* never closed", "               "),
    ],
)
def test_comments_become_blanks_of_their_length(text: str, plain: str):
    assert blank_comments(text) == plain
