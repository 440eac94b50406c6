"""`remit mcp pins`: what was approved of a server's definitions, approved on request, and taken back."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.cli.running import Remit

SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif message.get("method") == "tools/list":
        result = {"tools": [{"name": "look", "description": open("words.txt").read(),
                             "inputSchema": {"type": "object"}}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.fixture
def project(home: Path) -> Path:
    """A project with one server of one tool, whose description stands in a file."""
    here = Path.cwd()
    (here / "server.py").write_text(SERVER)
    (here / "words.txt").write_text("Looks\u202e around.")
    entry = {"command": sys.executable, "args": ["server.py"]}
    (here / ".mcp.json").write_text(json.dumps({"mcpServers": {"eyes": entry}}))
    return here


def flags(told: str) -> list[str]:
    return [word for word in told.replace("'", "").split() if "@" in word]


def approve(remit: Remit) -> None:
    """Approve the server, then its definitions, as an error says."""
    words: list[str] = []
    for _ in range(2):
        pending = remit("mcp", "pins", "approve", "eyes", *words, "--json")
        assert pending.code == 6
        words += [w for flag in flags(str(pending.json["fix"])) for w in ("--approve", flag)]
    assert remit("mcp", "pins", "approve", "eyes", *words).code == 0


def tools(remit: Remit) -> object:
    rows = cast("list[dict[str, object]]", remit("mcp", "pins", "list", "--json").json["servers"])
    return rows[0]["tools"]


@pytest.mark.requirement("S-45")
def test_nothing_is_approved_without_a_person_or_a_digest(remit: Remit, project: Path):
    ended = remit("mcp", "pins", "approve", "eyes", "--json")

    assert (ended.code, ended.json["code"]) == (6, "E-PENDING-APPROVAL")
    assert tools(remit) == 0


@pytest.mark.requirement("S-45", "F-1")
def test_what_is_approved_is_listed_shown_and_forgotten(remit: Remit, project: Path):
    approve(remit)

    assert tools(remit) == 1
    shown = remit("mcp", "pins", "show", "eyes")
    assert "tool look" in shown.out
    assert "Looks<U+202E> around." in shown.out
    assert remit("mcp", "pins", "forget", "eyes", "--json").json["forgotten"] == 1
    assert tools(remit) == 0


@pytest.mark.requirement("S-24", "S-45")
def test_definitions_are_shown_to_programs_as_untrusted(remit: Remit, project: Path):
    approve(remit)

    shown = remit("mcp", "pins", "show", "eyes", "--json").json

    assert (shown["trust"], shown["authority"]) == ("untrusted_external", "none")
    assert cast("list[dict[str, object]]", shown["tools"])[0]["name"] == "look"


@pytest.mark.requirement("S-45")
def test_a_changed_definition_is_shown_against_the_one_that_was_approved(
    remit: Remit, project: Path
):
    approve(remit)
    (project / "words.txt").write_text("Looks around, and tells everybody.")

    pending = remit("mcp", "pins", "approve", "eyes", "--json")
    server = flags(str(pending.json["fix"]))
    told = remit("mcp", "pins", "approve", "eyes", "--approve", server[0], "--json")

    assert told.code == 6
    assert "- Looks<U+202E> around." in str(told.json["why"])
    assert "+ Looks around, and tells everybody." in str(told.json["why"])


@pytest.mark.parametrize("verb", ["show", "forget"])
def test_what_was_never_approved_is_told(remit: Remit, project: Path, verb: str):
    ended = remit("mcp", "pins", verb, "eyes", "--json")

    assert (ended.code, ended.json["code"]) == (2, "E-PIN-NONE")


@pytest.mark.parametrize("verb", ["show", "forget", "approve"])
def test_a_server_that_there_is_not_is_told(remit: Remit, project: Path, verb: str):
    ended = remit("mcp", "pins", verb, "eyse", "--json")

    assert (ended.code, ended.json["fix"]) == (2, "did you mean 'eyes'?")
