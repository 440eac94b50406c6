"""A pipeline on a parent session: approved, servers started, definitions pinned, then its agents.

In this order, and each step before the next begins: what a person has to see comes before what
it would do.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import anyio

from orchestrator.agents.model import Model
from orchestrator.authority.snapshot import Row
from orchestrator.broker import BuiltinTool
from orchestrator.broker.builtins import list_capabilities
from orchestrator.core.ids import AgentId, RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.pipelines.checkpoint import Checkpoint
from orchestrator.pipelines.gates import AskGate, GateQuestion
from orchestrator.pipelines.pipeline import Pipeline
from orchestrator.pipelines.plan import Plan, make_plan
from orchestrator.pipelines.running import PipelineResult, run_pipeline
from orchestrator.pipelines.spec import AgentSpec
from orchestrator.pipelines.steps import Steps
from orchestrator.sessions.admitting import Pinned, admit_servers
from orchestrator.sessions.approvals import ApprovalBook, ApprovalState, ApprovalStore, Item
from orchestrator.sessions.consent import Confirm, settle
from orchestrator.sessions.defined import FoundFile, take_up
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper, tools_name
from orchestrator.sessions.ports import SessionPorts

__all__ = ["NOTHING_KEPT", "Attach", "Pinned", "PipelineRun", "Resume"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """What a person says of the steps of an earlier run, and what the record says of that run.

    `fresh` are the steps that begin from the start, `passes` the gates that were answered.
    """

    fresh: frozenset[str] = frozenset()
    passes: frozenset[str] = frozenset()
    record: Mapping[str, object] = field(default_factory=dict[str, object])


Attach = Callable[[ParentSession], AbstractAsyncContextManager[None]]
"""Returns what stands beside a session while its agents work: a way in for other terminals."""

NOTHING_KEPT: Final = Resume()
"""A run from its start."""


@dataclass(kw_only=True)
class PipelineRun:
    """One run of one pipeline. `confirm` shows things to a person; None where nobody can be asked.

    `keep_pins` is False for a plan: what was only looked at is not pinned. With a `checkpoint` what
    has ended and what was answered is kept, and is not done again by a later run with `resume`.
    `ask_gate` asks a person at a gate whose asks wait in no inbox; None where nobody can be asked.
    `logins` are what servers that want a login are reached with. `attach` opens what stands beside
    the session while agents work. `files` are the definitions of agents and skills that there are:
    what of them is approved, agents may make children of and find. The others stop nobody.
    """

    run: RunId
    pipeline: Pipeline
    ports: SessionPorts
    store: ApprovalStore
    book: ApprovalBook
    pins: PinKeeper
    confirm: Confirm | None
    limits: OrchestratorLimits
    on_pinned: Callable[[Pinned], None]
    keep_pins: bool = True
    builtins: Sequence[BuiltinTool] = (list_capabilities,)
    checkpoint: Checkpoint | None = None
    resume: Resume = NOTHING_KEPT
    ask_gate: AskGate | None = None
    logins: LoginPorts | None = None
    attach: Attach = lambda _: nullcontext()
    files: Sequence[FoundFile] = ()
    models: Mapping[str, Model] = field(default_factory=dict[str, Model])

    async def to_the_end(self, on_session: Callable[[ParentSession], None]) -> PipelineResult:
        """Do all of it, and return what became of the agents. Everything has ended then.

        `on_session` is handed the session before the first agent starts. Raises as `session` does.
        """
        status = RunStatus.FAILED
        try:
            async with self.session() as session, self.attach(session):
                on_session(session)
                result = await self._agents(session)
                status = result.status
        finally:
            self.ports.audit.append("run_ended", {"status": status.value})
            if self.checkpoint is not None:
                self.checkpoint.note("status", status.value)
        return result

    async def plan(self) -> Plan:
        """Return what the agents would be and might call. Starts the servers, and no agent.

        Raises as `session` does.
        """
        async with self.session() as session:

            def rows(agent: AgentSpec) -> Sequence[Row]:
                return session.rows(agent.name, role=agent.role, grant=agent.authority)

            return make_plan(self.pipeline.spec, rows, model=self.pipeline.model or None)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[ParentSession]:
        """Approve, start the servers, check names against what they offer, pin, and yield.

        Raises:
            PendingApprovalError: something of the project, or what a server says of its tools,
                was not approved. No agent has started.
            ConfigError: a tool, an argument or a model that there is not. No agent has started.
            RemitError: a server that an agent needs could not be connected.
        """
        items = self.pipeline.items()
        tools = map(tools_name, self.pipeline.servers)
        named = (*items, *(file.item for file in self.files))
        self.book.refuse_unused({*(item.name for item in named), *tools})
        await self._settle(items)
        definitions = take_up(self.files, self._approves)
        self.models = self.pipeline.models(self.ports.ids)
        parent = ParentSession(
            servers=self.pipeline.servers,
            policy=self.pipeline.policy,
            ports=self.ports,
            limits=self.limits,
            builtins=self.builtins,
            own_tools=True,
            skills=definitions.skills,
            logins=self.logins,
        )
        parent.definitions = definitions
        async with parent.running():
            for connection in parent.servers.values():
                if connection.error is not None:
                    raise connection.error
            self.pipeline.check_catalog(parent.catalog, parent.builtin_names)
            await admit_servers(
                parent,
                self.pipeline.servers,
                pins=self.pins,
                settle=self._settle,
                audit=self.ports.audit,
                on_pinned=self.on_pinned,
                keep_pins=self.keep_pins,
            )
            yield parent

    async def _agents(self, session: ParentSession) -> PipelineResult:
        spec, values = self.pipeline.spec, self.pipeline.values
        self.ports.audit.append(
            "run_started",
            {
                **self.resume.record,
                "pipeline": spec.name,
                "file": spec.file.digest,
                "policy": self.pipeline.policy.digest,
                "servers": [entry.name for entry in self.pipeline.servers],
            },
        )

        steps = Steps(
            spec=spec,
            values=values,
            models=self.models,
            session=session,
            audit=self.ports.audit,
            digest_arguments=self.ports.digest_arguments,
            limits=self.limits,
            planned={
                agent.name: session.rows(agent.name, role=agent.role, grant=agent.authority)
                for agent in spec.agents
            },
            checkpoint=self.checkpoint,
            fresh=self.resume.fresh,
            passes=self.resume.passes,
            ask_gate=partial(self._ask_gate, session),
        )
        with self.ports.telemetry.workflow(spec.name, self.run) as span:
            result = await run_pipeline(spec, steps.start, values)
            if result.status is not RunStatus.OK:
                span.fail(result.status.value)
        return result

    async def _ask_gate(self, session: ParentSession, gate: GateQuestion) -> bool | None:
        """Ask where the asks of the step wait, else here; None where nobody has said anything."""
        # whoever looks at the run meanwhile sees what led here
        with suppress(OSError):
            self.ports.audit.flush()
        step = AgentId(gate.step)
        if session.inbox.attends(step):
            with anyio.move_on_after(self.limits.approval_seconds_max):
                return await session.inbox.gate(step, "\n".join(gate.lines()), gate.digest)
            return None
        return None if self.ask_gate is None else await self.ask_gate(gate)

    def _approves(self, item: Item) -> bool:
        return self.book.state(item) is ApprovalState.APPROVED

    async def _settle(self, items: Sequence[Item]) -> None:
        self.book = await settle(
            items,
            book=self.book,
            store=self.store,
            confirm=self.confirm,
            at=self.ports.clock.wall(),
        )
