"""A parent session whose one server wants a login, for the tests of logins. Asserts nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_client.auth.settings import AuthorizationStep
from mcp_client.auth.store import MemoryTokenStore, TokenStore
from orchestrator import Grant, OneOffSubagent, ParentSession
from orchestrator.core.documents import read_json
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Telemetry
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.sessions.servers import ServerConnection, ServerState
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock
from tests.orchestrator.broker.stage import IDLE, OPEN, Shelf, admit_all, policy_of

FAR = ServerName("far")


def entry(url: str, **more: object) -> ServerEntry:
    text = json.dumps({"mcpServers": {FAR: {"url": url, "type": "http", **more}}})
    here = Path("/")
    source = ServersSource(minimum=None, origin=Origin.PROFILE, project=here, home=here, environ={})
    return read_servers(read_json(text, "test.json"), source).entries[0]


@dataclass(kw_only=True)
class LoginStage:
    """One session with a server that wants a login, and what a test may do with it."""

    session: ParentSession
    store: TokenStore
    audit: Shelf
    events: list[object] = field(default_factory=list[object])

    @property
    def far(self) -> ServerConnection:
        return self.session.servers[FAR]

    @property
    def state(self) -> ServerState:
        return self.far.state

    def agent(self, name: str = "worker") -> OneOffSubagent:
        return self.session.subagent(name, model=IDLE, grant=Grant(None))

    @property
    def changes(self) -> Sequence[object]:
        return [fields["change"] for fields in self.audit.fields("login_changed")]


@asynccontextmanager
async def login_stage(
    url: str,
    *,
    store: TokenStore | None = None,
    step: AuthorizationStep | None = None,
    limits: OrchestratorLimits | None = None,
    seconds: float = 10,
    telemetry: Telemetry = NO_TELEMETRY,
    events: list[object] | None = None,
    **more: object,
) -> AsyncGenerator[LoginStage]:
    """Run a session over the server at `url`; what it offers counts as shown."""
    audit = Shelf()
    told: list[object] = [] if events is None else events
    store = store or MemoryTokenStore()
    session = ParentSession(
        servers=(entry(url, **more),),
        policy=policy_of(OPEN),
        ports=SessionPorts(
            clock=HandClock(),
            ids=CountingIds(),
            approver=NobodyToAsk(),
            audit=audit,
            telemetry=telemetry,
            emit=told.append,
            digest_arguments=lambda data: "digest",
        ),
        limits=limits or OrchestratorLimits(),
        builtins=(),
        logins=LoginPorts(store=store, step=lambda entry: step),
    )
    with anyio.fail_after(seconds):
        async with session.running():
            admit_all(session)
            yield LoginStage(session=session, store=store, audit=audit, events=told)
