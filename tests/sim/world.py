"""A small world that a seed decides: servers, agents, somebody who takes things back, and a journal.

The code under test is the product's own: session, broker, ledger, client session, outbox. Only the
servers are scripted, the wire is in memory, and loop and time are the seeded loop's.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio

import policies
from mcp_client.client import Host
from mcp_client.ports import ClientObserver
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ScriptedRequest, ScriptedServer
from mcp_client.transports.memory import MemoryTransport, WireWrite
from orchestrator import Budget, Call, CallResult, ParentSession
from orchestrator.agents.model import AgentTask, RequestGate, ToolSpec, Turn
from orchestrator.agents.results import AgentResult
from orchestrator.core.documents import read_json
from orchestrator.core.errors import RemitError
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds, LoopClock, elapse

SERVERS = ("s0", "s1", "s2", "s3")
TOOLS = ("t0", "t1", "t2")
AGENTS = tuple(f"a{number}" for number in range(8))
LATE = tuple(f"b{number}" for number in range(3))
"""Agents that are made when much has changed already: they may have what others have lost."""

RULES = """
  permit "all" call on any server/t*
  permit "spawn" call on remit/spawn_subagent
  permit "hand on" delegate on any server/*
"""
OPEN = f"policy open v1 {{ {RULES} }}"
NARROW = f"""
policy narrow v1 {{ {RULES}
  forbid "t1" call on any server/t1
  forbid "odd" call on s2/t0 when arg(/n) >= 500 }}
"""


@dataclass(frozen=True, slots=True)
class Wrote:
    """Bytes that left for a server, over the n-th connection to it."""

    server: str
    wire: int
    data: bytes


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

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
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
        self._journal.events.append(Wrote(self._server, self._wire, write.data))


class SimServer(ScriptedServer):
    """A scripted server whose wire is journaled."""

    def __init__(self, name: str, journal: Journal) -> None:
        super().__init__(name)
        self._journal = journal
        self.wires = 0

    def transport(
        self, host: Host, *, limits: ClientLimits, observer: ClientObserver
    ) -> MemoryTransport:
        transport = super().transport(host, limits=limits, observer=observer)
        self.wires += 1
        self.held.clear()  # what the process before it was asked
        transport.writes = _JournaledWrites(self._journal, self.name, self.wires)
        return transport


class SimModel:
    """A model that asks for what its seed says: some turns, some calls side by side in each."""

    name = "sim"
    provider = "sim"

    def __init__(self, random: Random) -> None:
        self._random = random
        self.asked_after_end = 0

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[_SimConversation]:
        yield _SimConversation(self._random, str(task.agent), gate)


class _SimConversation:
    def __init__(self, random: Random, agent: str, gate: RequestGate) -> None:
        self._random = random
        self._agent = agent
        self._gate = gate
        self._turns = random.randint(1, 4)
        self._calls = 0

    async def next(self, results: Sequence[CallResult]) -> Turn:
        self._gate()
        await _wait(self._random, 2)
        if self._turns == 0:
            return Turn(answer="done", done=True)
        self._turns -= 1
        return Turn(calls=tuple(self._call() for _ in range(self._random.randint(1, 3))))

    def _call(self) -> Call:
        self._calls += 1
        if self._agent.count("/") < 2 and self._random.random() < 0.1:
            wish = {"name": f"c{self._calls}", "prompt": "work"}
            return Call("remit", "spawn_subagent", wish)
        arguments: dict[str, object] = {
            "agent": self._agent,
            "call": self._calls,
            "n": self._random.randint(0, 999),
            "pad": "x" * self._random.choice((0, 0, 10, 5_000)),
        }
        return Call(self._random.choice(SERVERS), self._random.choice(TOOLS), arguments)


@dataclass
class World:
    """One run: what there is, and what came of it."""

    seed: int
    journal: Journal = field(default_factory=Journal)
    servers: dict[str, SimServer] = field(default_factory=dict[str, SimServer])
    results: dict[str, AgentResult | RemitError] = field(
        default_factory=dict[str, AgentResult | RemitError]
    )
    receipts: int = 0
    steps: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        for name in SERVERS:
            server = self.servers[name] = SimServer(name, self.journal)
            for tool in TOOLS:
                server.add_tool(tool, None)

    @property
    def agents(self) -> int:
        """How many agents were made, by the session or by an agent."""
        return sum(
            isinstance(event, Recorded) and event.kind == "agent_started"
            for event in self.journal.events
        )

    def count(self, step: int) -> None:
        """Note that the loop has come to a step."""
        self.steps = step

    async def run(self) -> None:
        """Let everybody do what the seed says until all agents have ended."""
        session = ParentSession(
            servers=_entries(),
            policy=policies.load([policies.Source("open.policy", OPEN)]),
            ports=SessionPorts(
                clock=LoopClock(),
                ids=CountingIds(),
                approver=NobodyToAsk(),
                audit=self.journal,
                telemetry=NO_TELEMETRY,
                emit=lambda _: None,
                digest_arguments=bytes.decode,
            ),
            limits=OrchestratorLimits(),
            reach=lambda entry: self.servers[entry.name],
            own_tools=True,
        )
        with anyio.fail_after(3_600):
            async with session.running():
                for connection in session.servers.values():
                    if connection.listing is not None:
                        session.admit(connection.listing)
                await self._work(session)
        assert set(self.results) == {*AGENTS, *LATE}
        assert session.agents == {}
        assert all(server.over for server in self.servers.values())

    async def _work(self, session: ParentSession) -> None:
        async with anyio.create_task_group() as others:
            for server in self.servers.values():
                others.start_soon(self._serve, server)
            others.start_soon(self._change, session)
            async with anyio.create_task_group() as agents:
                for name in AGENTS:
                    agents.start_soon(self._agent, session, name, 3)
                for name in LATE:
                    agents.start_soon(self._agent, session, name, 24)
            others.cancel_scope.cancel()

    async def _agent(self, session: ParentSession, name: str, seconds_max: int) -> None:
        await _wait(self.random, seconds_max)
        try:
            agent = session.subagent(
                name,
                model=SimModel(Random(f"{self.seed} {name}")),
                budget=Budget(turns=50, calls=100, seconds=600),
            )
            self.results[name] = await agent.run("work")
        except RemitError as error:  # the session had ended
            self.results[name] = error

    async def _serve(self, server: SimServer) -> None:
        """Answer what is held, late, in any order, now and then wrongly."""
        while True:
            await _wait(self.random, 1)
            while server.held and self.random.random() < 0.7:
                request = server.held.pop(self.random.randrange(len(server.held)))
                self._answer(server, request)

    def _answer(self, server: SimServer, request: ScriptedRequest) -> None:
        match self.random.randrange(12):
            case 0:
                request.refuse(-32000, "no")
            case 1:
                request.answer("once")
                request.answer("twice")
            case 2:
                server.say(b"noise\n")
                request.answer("after noise")
            case _:
                request.answer("ok")

    async def _change(self, session: ParentSession) -> None:
        for _ in range(self.random.randint(2, 10)):
            await _wait(self.random, 3)
            change = self.random.choice((self._take_back, self._disturb, self._replace))
            with suppress(RemitError):  # it has not begun, has ended, or is not there any more
                await change(session)

    async def _take_back(self, session: ParentSession) -> None:
        """Somebody takes something back for good, and waits for the receipt."""
        match self.random.randrange(6):
            case 0:
                await session.remove_server(self.random.choice(SERVERS))
            case 1 | 2:
                await session.cancel_agent(self.random.choice(AGENTS + LATE))
            case 3:
                below = sorted(name for name in session.agents if "/" in name)
                await session.cancel_agent(self.random.choice(below or AGENTS))
            case 4:
                narrow = policies.Source("narrow.policy", NARROW)
                await session.replace_policy(policies.load([narrow]))
            case _:
                if self.random.random() < 0.7:
                    return
                await session.close()
        self.receipts += 1

    async def _replace(self, session: ParentSession) -> None:
        """A server is switched off and on, or has another configuration: another incarnation."""
        name = self.random.choice(SERVERS)
        if self.random.random() < 0.5:
            await session.disable_server(name)
            await _wait(self.random, 2)
            session.enable_server(name)
        else:
            change = session.reload(_entries(other=name, args=f"{self.random.random()}"))
            for revocation in change.revocations:
                await revocation
        self.receipts += 1
        await _wait(self.random, 2)
        connection = session.servers.get(ServerName(name))
        if connection is not None and connection.listing is not None:
            session.admit(connection.listing)
            self.journal.append("admitted", {"server": name})

    async def _disturb(self, session: ParentSession) -> None:
        """A server dies, changes, or its wire is slow."""
        server = self.servers[self.random.choice(SERVERS)]
        match self.random.randrange(4):
            case 0:
                server.die()
            case 1:
                server.remove_tool("t2")
                server.add_tool("t2", None, description=f"changed {self.random.random()}")
                server.notify("notifications/tools/list_changed")
            case 2:
                server.wire.block(after_bytes=self.random.choice((0, 1, 100, 3_000)))
                await _wait(self.random, 1)
                server.wire.unblock()
            case _:
                server.wire.take_at_most(self.random.choice((40, 300, 2_000, None)))


async def _wait(random: Random, seconds_max: int) -> None:
    """Let time pass, in quarters: many things then happen at the same time, in any order."""
    await elapse(random.randrange(4 * seconds_max) / 4)


def _entries(other: str = "", args: str = "") -> tuple[ServerEntry, ...]:
    """All servers; the configuration of one may be another than before."""
    found = {name: {"command": "none", "args": [args] * (name == other)} for name in SERVERS}
    text = json.dumps({"mcpServers": found})
    here = Path("/")
    source = ServersSource(origin=Origin.PROFILE, project=here, home=here, environ={})
    return read_servers(read_json(text, "sim.json"), source).entries
