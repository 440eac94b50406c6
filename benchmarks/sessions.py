"""A parent session over the echo server, as a benchmark needs it: real policy, gate and audit log."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import policies
from orchestrator.agents.model import AgentTask, Conversation, RequestGate, ToolSpec
from orchestrator.audit.key import argument_digests
from orchestrator.audit.log import AuditLog
from orchestrator.broker import AgentView
from orchestrator.core.documents import read_json
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.ports import NobodyToAsk, RandomIds, SessionPorts, SystemClock
from orchestrator.telemetry.null import NO_TELEMETRY

__all__ = ["echo_view"]

POLICY = """
policy bench v1 {
  default deny
  role caller, reader, writer
  permit "say"   call on echo/{echo,repeat} for role caller
  permit "read"  call on files/read_*       for role reader
  permit "write" call on files/write_file   for role writer when arg(/path) under "out/"
  ask    "mail"  call on mail/send
  forbid "rm"    call on any server/{delete_*,remove_*}
}
"""
CONDITIONAL = POLICY.replace("for role caller", 'for role caller when arg(/text) == "hello"', 1)
ARGUMENTS_KEY = b"k" * 32


class Nothing:
    """A model that is never asked: the benchmark makes the calls itself."""

    name = "nothing"
    provider = "benchmark"

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Conversation]:
        """Raise: nobody converses here."""
        raise NotImplementedError
        yield


class Unrecorded:
    """An audit sink that keeps nothing: what is left is the price of the guard."""

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Forget one record."""

    def flush(self) -> None:
        """Have nothing to hand on."""


@asynccontextmanager
async def echo_view(
    command: Sequence[str], *, audit: Path | None, conditional: bool = False
) -> AsyncGenerator[AgentView]:
    """Yield the view of one agent that may call `echo/echo`. Nothing is recorded without `audit`."""
    clock = SystemClock()
    log = None if audit is None else AuditLog.create(audit, RunId("bench"), clock)
    servers = {"echo": {"command": command[0], "args": list(command[1:])}}
    document = read_json(json.dumps({"mcpServers": servers}), "bench.json")
    here = Path.cwd()
    source = ServersSource(origin=Origin.PROFILE, project=here, home=here, environ={}, minimum=None)
    session = ParentSession(
        servers=read_servers(document, source).entries,
        policy=policies.load(
            [policies.Source("bench.policy", CONDITIONAL if conditional else POLICY)]
        ),
        ports=SessionPorts(
            clock=clock,
            ids=RandomIds(),
            approver=NobodyToAsk(),
            audit=log or Unrecorded(),
            telemetry=NO_TELEMETRY,
            emit=lambda _: None,
            digest_arguments=argument_digests(ARGUMENTS_KEY),
        ),
        limits=OrchestratorLimits(),
    )
    async with session.running():
        for connection in session.servers.values():
            if connection.listing is not None:
                session.admit(connection.listing)
        yield session.subagent("caller", model=Nothing()).view
    if log is not None:
        log.close()
