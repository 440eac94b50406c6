"""What the small worlds are made of: policies, scripted servers, a model, and a journal of it all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Final

import policies
from mcp_client.client import Host
from mcp_client.ports import ClientObserver
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ScriptedRequest, ScriptedServer
from mcp_client.transports.memory import MemoryTransport, WireWrite
from orchestrator import Call, CallResult, ParentSession
from orchestrator.agents.model import AgentTask, RequestGate, ToolSpec, Turn
from orchestrator.core.documents import read_json
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.testing import elapse
from policies import PolicySet

SERVERS: Final = ("s0", "s1", "s2", "s3")
TOOLS: Final = ("t0", "t1", "t2")
LIBRARY: Final = "s1"
"""Offers resources as well."""
FAR: Final = "s3"
"""Wants a login."""
TEMPLATE: Final = "mem://notes/{agent}/{call}/{n}"
AGENTS_MIN: Final = 8
STEPS_MIN: Final = 200
LARGE_ONE_IN: Final = 25


def _policy(text: str) -> PolicySet:
    return policies.load([policies.Source("sim.policy", text)])


RULES: Final = """
  permit "all" call on any server/t*
  permit "spawn" call on remit/spawn_subagent
  permit "hand on" delegate on any server/*
"""
OPEN: Final = _policy(f"""
policy open v1 {{ {RULES}
  permit "notes" read on {LIBRARY} resource "mem://notes/**" }}
""")
NARROW: Final = _policy(f"""
policy narrow v1 {{ {RULES}
  forbid "t1" call on any server/t1
  forbid "odd" call on s2/t0 when arg(/n) >= 500 }}
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much there is of what. Most worlds are small, so that there can be many."""

    early: int
    """Agents that begin at once, or nearly."""
    late: int
    """Agents that are made when much has changed already: they may have what others have lost."""
    turns: int
    calls: int
    """Side by side, in one turn."""
    changes: int
    """Of each of two who change things at the same time."""

    @classmethod
    def drawn(cls, random: Random) -> Size:
        if random.randrange(LARGE_ONE_IN) == 0:
            return cls(early=random.randint(9, 14), late=3, turns=4, calls=3, changes=6)
        return cls(
            early=AGENTS_MIN,
            late=random.randint(0, 2),
            turns=random.choice((1, 1, 2)),
            calls=2,
            changes=3,
        )


@dataclass(frozen=True, slots=True)
class Wrote:
    """Bytes that left for a server, over the n-th connection to it, at a time."""

    server: str
    wire: int
    data: bytes
    now: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """A record that was appended to the audit log."""

    kind: str
    fields: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Flushed:
    """The log was handed to the kernel."""


class Journal:
    """Everything that matters, in the order in which it happened. It is the session's audit sink."""

    def __init__(self) -> None:
        self.events: list[Wrote | Recorded | Flushed] = []
        self.started = 0
        """Agents that were made and began, by the session or by an agent."""

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        self.started += kind == "agent_started"
        self.events.append(Recorded(kind, fields))

    def flush(self) -> None:
        self.events.append(Flushed())


class _JournaledWrites(list[WireWrite]):
    def __init__(self, journal: Journal, server: str, wire: int) -> None:
        super().__init__()
        self._journal = journal
        self._server = server
        self._wire = wire

    def append(self, write: WireWrite, /) -> None:
        super().append(write)
        now = asyncio.get_running_loop().time()
        self._journal.events.append(Wrote(self._server, self._wire, write.data, now))


class SimServer(ScriptedServer):
    """A scripted server whose wire is journaled."""

    def __init__(self, name: str, journal: Journal) -> None:
        declared: dict[str, object] = {"tools": {"listChanged": True}}
        if name == LIBRARY:
            declared["resources"] = {"listChanged": True}
        super().__init__(name, capabilities=declared)
        self._journal = journal
        self.wires = 0
        self.edition = 0
        self.on("resources/list", lambda request: request.answer({"resources": []}))
        self.on("resources/templates/list", self._list_templates)
        self.hold("resources/read")
        for tool in TOOLS:
            self.add_tool(tool, None)

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> MemoryTransport:
        transport = super().transport(host, limits=limits, observer=observer)
        self.wires += 1
        self.held.clear()  # what the process before it was asked
        transport.writes = _JournaledWrites(self._journal, self.name, self.wires)
        return transport

    def _list_templates(self, request: ScriptedRequest) -> None:
        offered = {"uriTemplate": TEMPLATE, "name": "notes", "description": f"{self.edition}"}
        request.answer({"resourceTemplates": [offered]})


class SimModel:
    """A model that asks for what its seed says: some turns, some calls side by side in each."""

    name = "sim"
    provider = "sim"

    def __init__(self, random: Random, size: Size) -> None:
        self._random = random
        self._size = size

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[_SimConversation]:
        yield _SimConversation(self._random, self._size, str(task.agent), gate)


class _SimConversation:
    def __init__(self, random: Random, size: Size, agent: str, gate: RequestGate) -> None:
        self._random = random
        self._agent = agent
        self._gate = gate
        self._side_by_side = size.calls
        self._turns = random.randint(1, size.turns)
        self._calls = 0

    async def next(self, results: Sequence[CallResult]) -> Turn:
        self._gate()
        await wait(self._random, 1)
        if self._turns == 0:
            return Turn(answer="done", done=True)
        self._turns -= 1
        count = self._random.randint(1, self._side_by_side)
        return Turn(calls=tuple(self._call() for _ in range(count)))

    def _call(self) -> Call:
        self._calls += 1
        number = self._random.randint(0, 999)
        if self._agent.count("/") < 2 and self._random.random() < 0.06:
            wish = {"name": f"c{self._calls}", "prompt": "work"}
            return Call("remit", "spawn_subagent", wish)
        if self._random.random() < 0.12:
            path = self._agent.replace("/", ".")
            return Call.read(LIBRARY, f"mem://notes/{path}/{self._calls}/{number}")
        arguments: dict[str, object] = {
            "agent": self._agent,
            "call": self._calls,
            "n": number,
            "pad": "x" * self._random.choice((0, 0, 10, 5_000)),
        }
        return Call(self._random.choice(SERVERS), self._random.choice(TOOLS), arguments)


class SomebodyHere:
    """Whom a login could be asked of; a scripted server never asks for one."""

    redirect_uri = "http://127.0.0.1/"

    async def visit(self, url: str) -> str:
        raise AssertionError(url)


def admit(session: ParentSession, name: str, tools: Sequence[str] | None = None) -> bool:
    """Have a person look at what a server offers now, and let it through, or only these tools."""
    connection = next((each for each in session.servers.values() if each.name == name), None)
    if connection is None or connection.listing is None:
        return False
    session.admit(connection.listing, tools)
    return True


async def wait(random: Random, seconds_max: int) -> None:
    """Let time pass, in quarters: many things then happen at the same time, in any order."""
    await elapse(random.randrange(4 * seconds_max) / 4)


@lru_cache(maxsize=1)
def entries() -> tuple[ServerEntry, ...]:
    """All servers, as they are configured at first."""
    return reconfigured("", "")


def reconfigured(other: str, value: str) -> tuple[ServerEntry, ...]:
    """All servers; the configuration of one is another than at first."""
    found: dict[str, object] = {
        name: {"command": "none", "args": [value] * (name == other)} for name in SERVERS
    }
    headers = {"x-of": value} if other == FAR else {}
    found[FAR] = {"type": "http", "url": "https://far.example/mcp", "headers": headers}
    text = json.dumps({"mcpServers": found})
    here = Path("/")
    source = ServersSource(minimum=None, origin=Origin.PROFILE, project=here, home=here, environ={})
    return read_servers(read_json(text, "sim.json"), source).entries


def result_of(request: ScriptedRequest, text: str) -> object:
    """Return a result that fits what was asked."""
    if request.method == "resources/read":
        return {"contents": [{"uri": request.params["uri"], "text": text}]}
    return text
