"""S-1: each surface reaches the official SDK's server over each transport, and calls a tool of it."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Final

import anyio
import pytest

import policies
from orchestrator import ParentSession
from tests.mcp_client.http.test_sdk_server import PROGRAM, the_sdks_server
from tests.orchestrator.agents.stage import recipe
from tests.orchestrator.cli.child import on_terminal
from tests.orchestrator.cli.running import Remit
from tests.orchestrator.surfaces.acp.stage import Home, Message, make_home, running

pytestmark = [pytest.mark.subprocess, pytest.mark.requirement("S-1", "S-31")]

POLICY: Final = 'policy all v1 { permit "add" call on sdk/add }\n'
BODY: Final = """
def adds(task):
    answer = yield Call("sdk", "add", {"a": 20, "b": 22})
    return "it comes to " + answer.text
"""
MODEL: Final = f"from orchestrator import Call\n{BODY}"
ADDED: Final = "it comes to 42"

Entry = Mapping[str, object]


@pytest.fixture
def anyio_backend() -> str:
    """Commands run a loop of their own; the transports are tested on both elsewhere."""
    return "asyncio"


@pytest.fixture(scope="module", params=["stdio", "http", "sse"])
def entry(request: pytest.FixtureRequest) -> Generator[Entry]:
    """What a servers file says of the server, while it is there."""
    if request.param == "stdio":
        yield {"command": sys.executable, "args": [str(PROGRAM), "stdio"]}
        return
    with the_sdks_server("sse" if request.param == "sse" else "json") as url:
        yield {"type": request.param, "url": url}


@pytest.fixture
def profile(home: Path, entry: Entry) -> list[str]:
    """A profile with the server, and the words that name the model."""
    config = home / "config"
    config.mkdir(parents=True, mode=0o700)
    home.chmod(0o700)
    (config / "own.policy").write_text(POLICY)
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    servers = {"sdk": {**entry, "description_trust": "first-use"}}
    (config / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    Path(".git").mkdir()
    Path("model.py").write_text(MODEL)
    digest = hashlib.sha256(MODEL.encode()).hexdigest()
    return ["--model", "recipe:model.py:adds", "--approve", f"model.py@{digest}"]


def test_a_question(remit: Remit, profile: list[str]):
    ended = remit("ask", "what?", *profile, "--quiet")

    assert (ended.code, ended.out) == (0, f"{ADDED}\n"), ended.err


def test_a_conversation(profile: list[str]):
    with on_terminal("shell", *profile) as child:
        child.shows("you>")
        child.said("what?", ADDED, "you>")
        child.type("/quit\r")

        assert child.ended() == 0


async def test_an_editors_session(tmp_path: Path, entry: Entry):
    home = make_home(tmp_path, POLICY)
    (home.project / "model.py").write_text(MODEL)
    async with running(home, "adds") as editor:
        await editor.prompt(await editor.open(home, handed(entry)), "what?")

    assert ADDED in editor.said()


def handed(entry: Entry) -> Message:
    """Return the server as an editor hands it over."""
    more: Message = {"headers": []} if "url" in entry else {"env": []}
    return {"name": "sdk", **entry, **more}


async def test_a_subagent(tmp_path: Path, entry: Entry):
    async def yes(items: object) -> bool:
        return True

    servers = tmp_path / "servers.json"
    servers.write_text(json.dumps({"mcpServers": {"sdk": entry}}))
    opening = ParentSession.open(
        servers=servers,
        policy=policies.load([policies.Source("all.policy", POLICY)]),
        confirm=yes,
        environ={"REMIT_HOME": str(Home(tmp_path / "state", tmp_path).state)},
    )
    with anyio.fail_after(60):
        async with opening as session:
            result = await session.subagent("adder", model=recipe(BODY, "adds")).run("what?")

    assert result.answer == ADDED
