"""A parent session over scripted servers, with a person, a clock and a record that a test holds.

Everything between an agent and the wire is the product's own; nothing of it is looked at inside.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import anyio
import anyio.lowlevel
import pytest

import policies
from mcp_client.testing import ScriptedServer
from orchestrator import (
    AuthorityError,
    Call,
    CallFailedError,
    Grant,
    Model,
    OneOffSubagent,
    ParentSession,
    RemitError,
    UntrustedContent,
)
from orchestrator.agents.events import AgentEvent
from orchestrator.audit.memory import MemoryAudit
from orchestrator.broker import AgentView, BuiltinTool, Revocation
from orchestrator.broker.builtins import list_capabilities
from orchestrator.core.documents import read_json
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import ApprovalRequest, Approver, AuditSink, Telemetry
from orchestrator.sessions import elicitations
from orchestrator.sessions.always import NEVER_ALWAYS, StandingYes
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.lanes import ServerCap
from orchestrator.sessions.ports import NobodyToAsk, SessionPorts
from orchestrator.sessions.records import AgentRecords
from orchestrator.sessions.skills import SkillShelf
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.testing import CountingIds
from tests.orchestrator.agents.stage import HandClock, recipe

FILES: Final = "files"

OPEN: Final = """
policy open v1 {
  permit "all" call on any server/*
}
"""
EVERYTHING_ASKED: Final = """
policy asked v1 {
  permit "ok" call on any server/ok
  ask "look" call on any server/{read,wait,fail}
}
"""


@dataclass
class Person:
    """Somebody who can be asked: `think` decides, and may wait; the questions are kept."""

    think: Callable[[ApprovalRequest], bool | None] = lambda _: True
    asked: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])
    interactive: bool = True
    _changed: anyio.Event = field(default_factory=anyio.Event)

    async def approve(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        self._changed.set()
        answer = self.think(request)
        if answer is None:
            await anyio.sleep_forever()
        return bool(answer)

    async def until_asked(self) -> None:
        await self._changed.wait()


class Shelf(MemoryAudit):
    """A record whose disk can be full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    def flush(self) -> None:
        if self.full:
            raise OSError(28, "no space left")
        super().flush()

    def fields(self, kind: str) -> list[Mapping[str, object]]:
        return [record.fields for record in self.of_kind(kind)]


def scripted(name: str = FILES) -> ScriptedServer:
    """A server with a tool that answers (`ok`, `read`), one that fails, and one that is held."""
    server = ScriptedServer(name)
    server.add_tool("ok", lambda _: "ok")
    server.add_tool("read", lambda arguments: f"content of {arguments.get('path')}")
    server.add_tool("fail", lambda _: {"content": [], "isError": True})
    server.add_tool("wait", None)
    return server


def entry(name: str, **more: object) -> ServerEntry:
    """An entry of a servers file; what it would start is never started."""
    text = json.dumps({"mcpServers": {name: {"command": "none", **more}}})
    here = Path("/")
    source = ServersSource(minimum=None, origin=Origin.PROFILE, project=here, home=here, environ={})
    return read_servers(read_json(text, "test.json"), source).entries[0]


def policy_of(text: str) -> policies.PolicySet:
    return policies.load([policies.Source("test.policy", text)])


@dataclass(frozen=True, slots=True)
class Way:
    """One way in which authority is taken back, and the cause that everybody is told."""

    of: Callable[[ParentSession], Revocation]
    reason: DenyReason


AGENT: Final = Way(lambda session: session.cancel_agent("worker"), DenyReason.AGENT_CANCELLED)
SERVER: Final = Way(lambda session: session.remove_server(FILES), DenyReason.SERVER_REMOVED)
POLICY: Final = Way(
    lambda session: session.replace_policy(policy_of(OPEN)), DenyReason.POLICY_CHANGED
)
SESSION: Final = Way(lambda session: session.close(), DenyReason.SESSION_CLOSED)
REPLACED: Final = Way(
    lambda session: session.close(DenyReason.SESSION_REPLACED), DenyReason.SESSION_REPLACED
)
DISABLED: Final = Way(lambda session: session.disable_server(FILES), DenyReason.SERVER_DISABLED)
RELOADED: Final = Way(
    # to an entry that cannot be used: nothing is started in its place
    lambda session: session.reload([entry(FILES, args=["${MISSING}"])]).revocations[0],
    DenyReason.CONFIGURATION_RELOADED,
)
HARD: Final = Way(
    lambda session: session.cancel_agent("worker", hard=True), DenyReason.AGENT_CANCELLED
)


def ways(*some: Way) -> pytest.MarkDecorator:
    """Run a test once for each way; for all of them where none is named."""
    wanted = some or (AGENT, SERVER, POLICY, SESSION, REPLACED, DISABLED, RELOADED)
    return pytest.mark.parametrize("way", wanted, ids=[way.reason.value for way in wanted])


IDLE: Final[Model] = recipe("def main(task):\n    yield []\n")
"""For agents whose view is used by the test itself."""


@dataclass(kw_only=True)
class Stage:
    """One session at work, and what a test may do with it."""

    session: ParentSession
    servers: Mapping[str, ScriptedServer]
    audit: Shelf
    clock: HandClock
    events: list[AgentEvent]
    watch: Watch

    @property
    def files(self) -> ScriptedServer:
        return self.servers[FILES]

    def agent(
        self,
        name: str = "worker",
        *,
        tools: tuple[str, ...] | None = None,
        parent: OneOffSubagent | None = None,
        model: Model = IDLE,
    ) -> OneOffSubagent:
        return self.session.subagent(name, model=model, grant=Grant(tools), parent=parent)

    async def queued(self, count: int = 1) -> None:
        """Wait until so many calls were admitted and stand in their connections' queues."""
        await until(lambda: len(self.audit.of_kind("decision")) >= count)

    async def settled(self, server: str = FILES) -> Sequence[Mapping[str, object]]:
        """Return the calls that reached a server, once all that was queued has left.

        Frames leave in the order in which they were queued: one more call, of the parent's own,
        says that nothing is behind.
        """
        await self.session.view.call(Call(server, "ok", {"last": True}))
        return [call for call in calls_at(self.servers[server]) if call != _LAST]


_LAST: Mapping[str, object] = {"name": "ok", "arguments": {"last": True}}


@asynccontextmanager
async def staged(
    policy: str = OPEN,
    *,
    servers: Iterable[ScriptedServer] | None = None,
    entries: Iterable[ServerEntry] | None = None,
    person: Approver | None = None,
    limits: OrchestratorLimits | None = None,
    builtins: Sequence[BuiltinTool] = (list_capabilities,),
    audit: AuditSink | None = None,
    admit: bool = True,
    records: AgentRecords | None = None,
    own_tools: bool = False,
    skills: SkillShelf | None = None,
    caps: Mapping[str, ServerCap] | None = None,
    host: elicitations.Person = elicitations.NOBODY,
    modes: frozenset[elicitations.ElicitationMode] = elicitations.ALL_MODES,
    always: StandingYes = NEVER_ALWAYS,
    telemetry: Telemetry = NO_TELEMETRY,
) -> AsyncGenerator[Stage]:
    """Run a session over scripted servers; their tools count as shown, unless `admit` is False."""
    stage = prepared(
        policy,
        servers=servers,
        entries=entries,
        person=person,
        limits=limits,
        builtins=builtins,
        audit=audit,
        records=records,
        own_tools=own_tools,
        skills=skills,
        caps=caps,
        host=host,
        modes=modes,
        always=always,
        telemetry=telemetry,
    )
    with anyio.fail_after(30):
        async with stage.session.running():
            if admit:
                admit_all(stage.session)
            yield stage


def prepared(
    policy: str = OPEN,
    *,
    servers: Iterable[ScriptedServer] | None = None,
    entries: Iterable[ServerEntry] | None = None,
    person: Approver | None = None,
    limits: OrchestratorLimits | None = None,
    builtins: Sequence[BuiltinTool] = (list_capabilities,),
    audit: AuditSink | None = None,
    records: AgentRecords | None = None,
    own_tools: bool = False,
    skills: SkillShelf | None = None,
    caps: Mapping[str, ServerCap] | None = None,
    host: elicitations.Person = elicitations.NOBODY,
    modes: frozenset[elicitations.ElicitationMode] = elicitations.ALL_MODES,
    always: StandingYes = NEVER_ALWAYS,
    telemetry: Telemetry = NO_TELEMETRY,
) -> Stage:
    """Return a session over scripted servers that has not been started."""
    by_name = {server.name: server for server in servers or (scripted(),)}
    shelf, clock, events = Shelf(), HandClock(), list[AgentEvent]()
    watch = Watch(clock.now, events.append)
    session = ParentSession(
        servers=tuple(entries) if entries is not None else tuple(entry(name) for name in by_name),
        policy=policy_of(policy),
        ports=SessionPorts(
            clock=clock,
            ids=CountingIds(),
            approver=person or NobodyToAsk(),
            audit=audit or shelf,
            telemetry=telemetry,
            emit=watch.hear,
            digest_arguments=lambda data: f"digest of {len(data)} bytes",
            person=host,
            modes=modes,
            always=always,
        ),
        limits=limits or OrchestratorLimits(),
        builtins=builtins,
        records=records,
        own_tools=own_tools,
        skills=skills,
        caps=caps,
        reach=lambda found: by_name[found.name],
    )
    return Stage(
        session=session, servers=by_name, audit=shelf, clock=clock, events=events, watch=watch
    )


def admit_all(session: ParentSession) -> None:
    """Count everything that the servers list now as shown to a person."""
    for connection in session.servers.values():
        if connection.listing is not None:
            session.admit(connection.listing)


def calls_at(server: ScriptedServer) -> list[Mapping[str, object]]:
    """Return the `params` of every tools/call whose frame left whole."""
    messages = [json.loads(frame.frame) for frame in server.frames]
    return [item["params"] for item in messages if item.get("method") == "tools/call"]


async def refusal(view: AgentView, tool: str, arguments: object = None) -> AuthorityError:
    """Make a call (`server/tool`) that must be refused, and return the refusal."""
    with pytest.raises(AuthorityError) as caught:
        await view.call(wish(tool, arguments))
    return caught.value


async def failure(view: AgentView, tool: str, arguments: object = None) -> CallFailedError:
    """Make a call that must fail, and return why."""
    with pytest.raises(CallFailedError) as caught:
        await view.call(wish(tool, arguments))
    return caught.value


def wish(tool: str, arguments: object = None) -> Call:
    server, _, name = tool.partition("/")
    return Call(server, name, cast("Mapping[str, object]", {} if arguments is None else arguments))


@dataclass
class Calling:
    """A call that a task of its own makes; awaiting `done` gives the test what became of it."""

    view: AgentView
    call: Call
    content: UntrustedContent | None = None
    error: RemitError | None = None
    done: anyio.Event = field(default_factory=anyio.Event)

    async def run(self) -> None:
        try:
            self.content = await self.view.call(self.call)
        except RemitError as error:
            self.error = error
        finally:
            self.done.set()

    async def refused(self) -> AuthorityError:
        await self.done.wait()
        assert isinstance(self.error, AuthorityError), self.error or self.content
        return self.error

    async def failed(self) -> CallFailedError:
        await self.done.wait()
        assert isinstance(self.error, CallFailedError), self.error or self.content
        return self.error

    async def answered(self) -> UntrustedContent:
        await self.done.wait()
        assert self.content is not None, self.error
        return self.content


@asynccontextmanager
async def calling(view: AgentView, tool: str, arguments: object = None) -> AsyncGenerator[Calling]:
    """Make a call in a task of its own while the block runs."""
    async with anyio.create_task_group() as group:
        call = Calling(view, wish(tool, arguments))
        group.start_soon(call.run)
        yield call
        group.cancel_scope.cancel()


async def until(true: Callable[[], object]) -> None:
    """Let the others go on until something is true."""
    while not true():
        await anyio.lowlevel.checkpoint()


def nothing_sent(error: AuthorityError) -> bool:
    """True if the refusal says that no byte left."""
    return (error.delivery, error.bytes_sent) == (Delivery.NOT_SENT, 0)
