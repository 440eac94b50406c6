"""remit: a scripted `Model`, `replace_policy`, `remove_server`, `cancel_agent`, `spawn_subagent`."""

from __future__ import annotations

import http.client
import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3]))

from driving import Hands, Script, Stage, main

import policies
from orchestrator import Call, ParentSession
from orchestrator.agents.model import Turn

VERSION_OF = ("remit",)
POLICY = """
policy p v1 {
  permit "spawn" call on remit/spawn_subagent
  permit "server" call on s/*
  permit "hand on" delegate on any server/*
}
"""
NOTHING = 'policy p v2 { forbid "all" call on any server/* }'


class Scripted:
    name = provider = "scripted"

    def __init__(self, script: Script, *others: Script) -> None:
        self.scripts = [script, *others]

    @asynccontextmanager
    async def converse(self, task, tools, gate) -> AsyncGenerator[_Conversation]:
        yield _Conversation(self.scripts["/" in task.agent], gate)


class _Conversation:
    def __init__(self, script: Script, gate) -> None:
        self.script, self.gate = script, gate

    async def next(self, results: Sequence[object]) -> Turn:
        name = await self.script.next()
        self.gate()
        if not name:
            return Turn(answer="done", done=True)
        if name == "child":
            return Turn(calls=(Call("remit", "spawn_subagent", {"name": "c", "prompt": "go"}),))
        return Turn(calls=(Call("s", name),))


async def yes(_) -> bool:
    return True


@asynccontextmanager
async def session_of(stage: Stage) -> AsyncGenerator[ParentSession]:
    command, *args = stage.command
    project = stage.folder / "project"
    project.mkdir()
    servers = project / ".mcp.json"
    servers.write_text(json.dumps({"mcpServers": {"s": {"command": command, "args": args}}}))

    async with ParentSession.open(
        servers=servers,
        policy=policies.load([policies.Source("p.policy", POLICY)]),
        confirm=yes,
        environ={"REMIT_HOME": str(stage.folder / "home"), "PATH": "/usr/bin:/bin"},
    ) as session:
        yield session


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    async with session_of(stage) as session:
        nothing = policies.load([policies.Source("n.policy", NOTHING)])
        hands.withdraw = lambda: session.replace_policy(nothing)
        hands.remove = lambda: session.remove_server("s")
        await session.subagent("a", model=Scripted(script)).run("go")


class Browser:
    """A person with a browser who lets remit in."""

    redirect_uri = "http://127.0.0.1:9/callback"

    async def visit(self, url: str) -> str:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc, timeout=5)
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().headers["Location"]


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    with tempfile.TemporaryDirectory(prefix="logout.") as name:
        servers = Path(name) / ".mcp.json"
        servers.write_text(json.dumps({"mcpServers": {"s": {"type": "http", "url": url}}}))
        async with ParentSession.open(
            servers=servers,
            policy=policies.load([policies.Source("p.policy", POLICY)]),
            confirm=yes,
            login=lambda _: Browser(),
            environ={"REMIT_HOME": f"{name}/home", "PATH": "/usr/bin:/bin"},
        ) as session:
            connection = await session.log_in("s")
            session.admit(connection.listing)
            hands.log_out = lambda: session.log_out("s")
            await session.subagent("a", model=Scripted(script)).run("go")


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    async with session_of(stage) as session:
        agent = session.subagent("p", model=Scripted(parent, child))
        await agent.run("go")


if __name__ == "__main__":
    main(sys.modules[__name__])
