"""A small world that a seed decides: servers, agents, somebody who takes things back, and a journal.

The code under test is the product's own: session, broker, ledger, client session, outbox. Only the
servers are scripted, the wire is in memory, and loop and time are the seeded loop's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from random import Random

import anyio

from mcp_client.testing import ScriptedRequest
from orchestrator import Budget, ParentSession
from orchestrator.agents.results import AgentResult
from orchestrator.core.errors import RemitError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds, LoopClock
from tests.sim.changer import Changer
from tests.sim.parts import (
    AGENTS_MIN,
    OPEN,
    SERVERS,
    STEPS_MIN,
    Journal,
    SimModel,
    SimServer,
    Size,
    SomebodyHere,
    admit,
    entries,
    result_of,
    wait,
)


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
        self.size = Size.drawn(self.random)
        self.early = tuple(f"a{number}" for number in range(self.size.early))
        self.late = tuple(f"b{number}" for number in range(self.size.late))
        for name in SERVERS:
            self.servers[name] = SimServer(name, self.journal)

    @property
    def agents(self) -> int:
        """How many agents began, of the session or of an agent."""
        return self.journal.started

    @property
    def small(self) -> str:
        """Return what there was too little of; empty if nothing."""
        if self.agents < AGENTS_MIN:
            return f"{self.agents} agents"
        return f"{self.steps} steps" if self.steps < STEPS_MIN else ""

    def count(self, step: int) -> None:
        """Note that the loop has come to a step."""
        self.steps = step

    async def run(self) -> None:
        """Let everybody do what the seed says until all agents have ended."""
        session = ParentSession(
            servers=entries(),
            policy=OPEN,
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
            logins=LoginPorts(step=lambda _: SomebodyHere()),
        )
        with anyio.fail_after(3_600):
            async with session.running():
                for name in SERVERS:
                    admit(session, name)
                await self._work(session)
        assert set(self.results) == {*self.early, *self.late}
        assert session.agents == {}
        assert all(server.over for server in self.servers.values())

    async def _work(self, session: ParentSession) -> None:
        changer = Changer(
            session=session,
            servers=self.servers,
            journal=self.journal,
            random=self.random,
            agents=(*self.early, *self.late),
        )
        async with anyio.create_task_group() as others:
            for server in self.servers.values():
                others.start_soon(self._serve, server)
            for _ in range(2):  # one may take back what the other holds up
                others.start_soon(changer.run, self.size.changes)
            async with anyio.create_task_group() as agents:
                for name in self.early:
                    agents.start_soon(self._agent, session, name, 3)
                for name in self.late:
                    agents.start_soon(self._agent, session, name, 24)
            others.cancel_scope.cancel()
        self.receipts = changer.receipts

    async def _agent(self, session: ParentSession, name: str, seconds_max: int) -> None:
        await wait(self.random, seconds_max)
        # agents of one role share what they may reach; some have one of their own
        role = "" if self.random.random() < 0.1 else "worker"
        lease = self.random.randint(2, 12) / 4 if self.random.random() < 0.1 else inf
        self.journal.append("leased", {"agent": name, "until": anyio.current_time() + lease})
        try:
            agent = session.subagent(
                name,
                role=role,
                model=SimModel(Random(f"{self.seed} {name}"), self.size),
                budget=Budget(turns=50, calls=100, seconds=600),
                lease_seconds=lease,
            )
            self.results[name] = await agent.run("work")
        except RemitError as error:  # the session had ended
            self.results[name] = error

    async def _serve(self, server: SimServer) -> None:
        """Answer what is held, late, in any order, now and then wrongly."""
        while True:
            await server.until(lambda: server.held)
            await wait(self.random, 3)
            while server.held and self.random.random() < 0.7:
                request = server.held.pop(self.random.randrange(len(server.held)))
                self._answer(server, request)

    def _answer(self, server: SimServer, request: ScriptedRequest) -> None:
        match self.random.randrange(12):
            case 0:
                request.refuse(-32000, "no")
            case 1:
                request.answer(result_of(request, "once"))
                request.answer(result_of(request, "twice"))
            case 2:
                server.say(b"noise\n")
                request.answer(result_of(request, "after noise"))
            case _:
                request.answer(result_of(request, "ok"))
