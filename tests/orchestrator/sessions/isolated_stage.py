"""A parent session over real servers of which each agent has one for itself. Asserts nothing."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio

from orchestrator import Grant, OneOffSubagent, ParentSession
from orchestrator.broker import AgentView
from orchestrator.core.documents import read_json
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Approver
from orchestrator.sessions import elicitations
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.isolating import PatternConnection
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.broker.stage import IDLE, Shelf, admit_all, policy_of, until, wish

DESK = ServerName("desk")
SERVER = Path(__file__).parents[2] / "servers" / "stateful.py"
ALL = """policy open v1 {
  permit "all" call on any server/*
  permit "data" read, complete on desk resource "memory://**"
  permit "prompts" get_prompt, complete on desk/* prompt
}"""
HANDED_ON = ALL.replace('permit "all"', 'permit "hand on" delegate on desk/*\n  permit "all"')


def entry(folder: Path, **more: object) -> ServerEntry:
    """The stateful server as an entry of the profile."""
    raw = {"command": sys.executable, "args": ["-I", str(SERVER), str(folder)], "isolate": "agent"}
    return entry_of({**raw, **more})


def entry_of(raw: Mapping[str, object]) -> ServerEntry:
    text = json.dumps({"mcpServers": {DESK: raw}})
    here = Path("/")
    source = ServersSource(minimum=None, origin=Origin.PROFILE, project=here, home=here, environ={})
    return read_servers(read_json(text, "test.json"), source).entries[0]


@dataclass(kw_only=True)
class Isolated:
    """One session with such a server, and the folder into which its processes write what they read."""

    session: ParentSession
    audit: Shelf
    folder: Path

    def agent(self, name: str, *, parent: OneOffSubagent | None = None) -> OneOffSubagent:
        return self.session.subagent(name, model=IDLE, grant=Grant(None), parent=parent)

    @property
    def pattern(self) -> PatternConnection:
        return cast("PatternConnection", self.session.servers[DESK])

    def read_by(self, process: int) -> list[Mapping[str, object]]:
        """Return what one process has read so far."""
        log = self.folder / f"{process}.log"
        return [json.loads(line) for line in log.read_text().splitlines()]

    @property
    def processes(self) -> set[int]:
        """Return which processes have begun to read."""
        return {int(path.stem) for path in self.folder.glob("*.log")}


@asynccontextmanager
async def isolated(
    folder: Path,
    policy: str = ALL,
    *,
    person: Approver | None = None,
    host: elicitations.Person = elicitations.NOBODY,
    limits: OrchestratorLimits | None = None,
    found: ServerEntry | None = None,
) -> AsyncGenerator[Isolated]:
    """Run a session over it; what it offers counts as shown."""
    audit = Shelf()
    session = ParentSession(
        servers=(found or entry(folder),),
        policy=policy_of(policy),
        ports=SessionPorts(
            clock=HandClock(),
            ids=CountingIds(),
            approver=person or NobodyToAsk(),
            audit=audit,
            telemetry=NO_TELEMETRY,
            emit=lambda _: None,
            digest_arguments=lambda data: "digest",
            person=host,
        ),
        limits=limits or OrchestratorLimits(),
        builtins=(),
    )
    with anyio.fail_after(30):
        async with session.running():
            admit_all(session)
            yield Isolated(session=session, audit=audit, folder=folder)


async def say(view: AgentView, tool: str, **arguments: object) -> str:
    """Call a tool of the desk, and return what it says."""
    return (await view.call(wish(f"desk/{tool}", arguments))).text


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def gone(process: int) -> None:
    """Wait until a process is no more."""
    await until(lambda: not is_there(process))


async def held(stage: Isolated, process: int) -> None:
    """Wait until a process has read a call that it does not answer."""
    await until(lambda: any(tool_of(message) == "hold" for message in stage.read_by(process)))


def tool_of(message: Mapping[str, object]) -> object:
    params = message.get("params", {})
    return cast("Mapping[str, object]", params).get("name")
