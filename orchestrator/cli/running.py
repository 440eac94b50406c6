"""What `run` and `demo` share: folders, the record, progress, the session, and how it ended."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path

import anyio
import click

from orchestrator.agents.event_objects import event_object
from orchestrator.agents.events import AgentEvent, AgentSaid
from orchestrator.agents.results import AgentResult
from orchestrator.audit.key import argument_digests, load_or_create_key
from orchestrator.audit.log import AuditLog
from orchestrator.audit.memory import MemoryAudit
from orchestrator.audit.signing import Signer
from orchestrator.cli.exporting import exported_telemetry
from orchestrator.cli.failures import EXIT_CODES
from orchestrator.cli.options import inbox_hint, print_json, print_text
from orchestrator.cli.resuming import TakenUp, about, gate_asker
from orchestrator.cli.terminal import browser_here, person_here
from orchestrator.core.errors import ExitCode, RemitError
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import AgentId, RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.core.ports import AuditSink
from orchestrator.pipelines.checkpoint import Checkpoint
from orchestrator.pipelines.execution import NOTHING_KEPT, Pinned, PipelineRun, Resume
from orchestrator.pipelines.pipeline import Pipeline, PipelineRequest
from orchestrator.pipelines.plan import Plan
from orchestrator.pipelines.running import PipelineResult, SkippedAgent
from orchestrator.sessions.always import AlwaysFile
from orchestrator.sessions.approvals import ApprovalStore, Origin
from orchestrator.sessions.assembling import control_of
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.credentials import login_ports
from orchestrator.sessions.defined import FoundFile, find_files
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.pinning import PinKeeper
from orchestrator.sessions.ports import RandomIds, SessionPorts, SystemClock
from orchestrator.sessions.projects import output_folder
from orchestrator.sessions.settings import sandbox_minimum
from orchestrator.sessions.state import StatePaths
from orchestrator.surfaces.login import LoopbackStep
from orchestrator.surfaces.progress import Progress, ProgressStyle, open_progress, style_for
from orchestrator.surfaces.summary import RunSummary, summary_object, summary_text

__all__ = ["Job", "Output", "carry_out"]


class Output(Enum):
    """What goes to stdout."""

    TEXT = "text"
    JSON = "json"
    JSON_LINES = "json-lines"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call of the command.

    Attributes:
        path: the pipeline's file.
        origin: whose word it is.
        project: the folder that approvals belong to and that its files may not leave.
        inputs: values by name.
        environ: variables for the servers file, beside the process's own.
        approve: the values of `--approve`.
        allow_variables: the values of `--allow-variable`.
        model: takes the place of every agent's model.
        out: the output folder; the run's own if None. No link of a project may decide it.
        output: what goes to stdout.
        quiet: no progress.
        dry_run: plan only.
        watch: told of each event, with the session; how the demo takes something away.
        passes: the gates that are answered in advance, as `STEP@DIGEST`.
        inbox: what a rule asks about waits for another terminal, in place of this one.
        taken_up: the earlier run that it goes on with; None for a run from its start.
    """

    path: Path
    origin: Origin
    project: Path
    inputs: Mapping[str, str]
    environ: Mapping[str, str]
    approve: Collection[str] = ()
    allow_variables: Collection[str] = ()
    model: str = ""
    out: Path | None = None
    output: Output = Output.TEXT
    quiet: bool = False
    dry_run: bool = False
    watch: Callable[[ParentSession, AgentEvent], None] | None = None
    passes: frozenset[str] = frozenset()
    inbox: bool = False
    taken_up: TakenUp | None = None


def carry_out(job: Job) -> ExitCode:
    """Do it, print what came of it, and return how the command ends.

    Raises RemitError or PolicyError for what keeps it from starting.
    """
    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    if job.taken_up is not None:
        return _go_on(job, job.taken_up, paths)
    run = RunId(time.strftime("%Y%m%d-%H%M%S-", time.gmtime()) + secrets.token_hex(3))
    out = output_folder(job.out or paths.run(run).out, projects=(job.project,))
    # Before anything is made: what is misspelt leaves no trace.
    pipeline = _load(job, out, paths)
    if job.dry_run:
        return _show(job, anyio.run(_plan, job, pipeline, paths, run))
    own = paths.new_run(run)
    with own.held(), closing(Checkpoint.create(own.checkpoint, about(pipeline, out))) as kept:
        return _to_the_end(
            job, pipeline, paths, _Place(run, own.audit, out, kept, Resume(passes=job.passes))
        )


def _go_on(job: Job, earlier: TakenUp, paths: StatePaths) -> ExitCode:
    """Take a run up where it ended, under today's policy, approvals and pins."""
    own = paths.run(earlier.run)
    with earlier.opened(own) as kept:
        job = replace(
            job,
            path=kept.path,
            project=kept.project,
            inputs=kept.inputs,
            model=kept.model,
        )
        out = output_folder(kept.out, projects=(job.project,))
        pipeline = _load(job, out, paths)
        resume = kept.resume(pipeline, earlier)
        place = _Place(earlier.run, own.next_log, out, kept.checkpoint, resume)
        return _to_the_end(job, pipeline, paths, place)


def _load(job: Job, out: Path, paths: StatePaths) -> Pipeline:
    pipeline = Pipeline.load(
        PipelineRequest(
            path=job.path,
            origin=job.origin,
            project=job.project,
            inputs=job.inputs,
            folder=Path.cwd(),
            out=out,
            environ={**os.environ, **job.environ},
            home=Path.home(),
            minimum=sandbox_minimum(paths),
            allow_variables=frozenset(job.allow_variables),
            model=job.model,
            profile=paths.config / "mcp.json",
        )
    )
    for warning in pipeline.warnings:
        print_text(f"warning: {warning}", to_stderr=True)
    return pipeline


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run is recorded, what is kept of it, and with what it goes on."""

    run: RunId
    audit: Path
    out: Path
    checkpoint: Checkpoint
    resume: Resume = NOTHING_KEPT


def _to_the_end(job: Job, pipeline: Pipeline, paths: StatePaths, place: _Place) -> ExitCode:
    place.out.mkdir(parents=True, exist_ok=True)
    signer = Signer(paths.signing_key)
    log = AuditLog.create(place.audit, place.run, SystemClock(), signer=signer)
    try:
        result = anyio.run(_run, job, pipeline, paths, place, log)
    finally:
        log.close()
    return _show_result(job, pipeline, result, place)


async def _plan(job: Job, pipeline: Pipeline, paths: StatePaths, run: RunId) -> Plan:
    with _pipeline_run(job, pipeline, paths, run, MemoryAudit()) as (running, _), ungrouped():
        running.keep_pins = False
        return await running.plan()


async def _run(
    job: Job, pipeline: Pipeline, paths: StatePaths, place: _Place, log: AuditLog
) -> PipelineResult:
    with _pipeline_run(job, pipeline, paths, place.run, log) as (running, watched), ungrouped():
        running.checkpoint, running.resume = place.checkpoint, place.resume
        return await running.to_the_end(watched.begin)


class _Watched:
    """Where events go: to the progress, to stdout, and to whoever watches."""

    def __init__(self, job: Job, progress: Progress) -> None:
        self._job = job
        self._progress = progress
        self._session: ParentSession | None = None

    def begin(self, session: ParentSession) -> None:
        self._session = session

    def emit(self, event: AgentEvent) -> None:
        self._progress.emit(event)
        if self._job.output is Output.JSON_LINES and not isinstance(event, AgentSaid):
            print_json(event_object(event))
        if self._job.watch is not None and self._session is not None:
            self._job.watch(self._session, event)


@contextmanager
def _pipeline_run(
    job: Job, pipeline: Pipeline, paths: StatePaths, run: RunId, audit: AuditSink
) -> Generator[tuple[PipelineRun, _Watched]]:
    clock, limits = SystemClock(), OrchestratorLimits()
    quiet = job.quiet or job.dry_run or job.output is Output.JSON_LINES
    steps = [agent.name for agent in pipeline.spec.agents]
    style = style_for(sys.stderr, quiet=quiet, environ=os.environ)
    with (
        exported_telemetry() as telemetry,
        open_progress(sys.stderr, style, now=clock.now, steps=steps) as progress,
    ):
        watched = _Watched(job, progress)
        watch = Watch(clock.now, watched.emit)
        person = person_here(paths, pause=progress.paused)
        ports = SessionPorts(
            clock=clock,
            ids=RandomIds(),
            approver=person,
            person=person,
            audit=audit,
            telemetry=telemetry(clock, run),
            emit=watch.hear,
            always=AlwaysFile(paths, job.project),
            digest_arguments=argument_digests(load_or_create_key(paths.audit_key)),
        )
        browser = _person_at_browser(progress) if person.interactive else None
        store = ApprovalStore(paths.approvals)

        yield (
            PipelineRun(
                run=run,
                pipeline=pipeline,
                ports=ports,
                store=store,
                book=store.book(job.project, job.approve),
                pins=PinKeeper(paths.pins, limits=limits),
                confirm=person.confirm_items if person.interactive else None,
                ask_gate=gate_asker(person) if person.interactive else None,
                limits=limits,
                attach=_Doorway(job, paths.run(run).folder, watch, ports).open,
                on_pinned=partial(_tell_pinned, progress, style),
                logins=login_ports(paths, pipeline.servers, browser),
                files=_definitions(job, paths),
            ),
            watched,
        )


def _definitions(job: Job, paths: StatePaths) -> Sequence[FoundFile]:
    """Return the files of agents and skills here; what `remit` itself brings along runs by itself."""
    return () if job.origin is Origin.BUILTIN else find_files(job.project, paths.config)


def _tell_pinned(progress: Progress, style: ProgressStyle, pinned: Pinned) -> None:
    if style is not ProgressStyle.QUIET:
        with progress.paused():
            names = ", ".join(pinned.tools)
            print_text(f"pinned {pinned.server}: {names}", to_stderr=True)


@dataclass(frozen=True, slots=True)
class _Doorway:
    """How other terminals reach the session of a run."""

    job: Job
    folder: Path
    watch: Watch
    ports: SessionPorts

    @asynccontextmanager
    async def open(self, session: ParentSession) -> AsyncGenerator[None]:
        """Let them in until the agents are done."""
        async with control_of(session, self.folder, self.watch, self.ports, OrchestratorLimits()):
            if self.job.inbox:
                session.inbox.attend_all()
                print_text(inbox_hint(self.folder.name), to_stderr=True)
            yield


def _person_at_browser(progress: Progress) -> Callable[[ServerEntry], LoopbackStep]:
    """Return who has the person at this terminal consent to what reaches further, while it runs."""

    def tell(line: str) -> None:
        with progress.paused():
            print_text(line, to_stderr=True)

    return partial(browser_here, tell=tell)


def _show(job: Job, plan: Plan) -> ExitCode:
    if job.output is Output.TEXT:
        for line in plan.lines():
            click.echo(line)
    else:
        print_json(plan.to_json())
    return ExitCode.OK


def _show_result(job: Job, pipeline: Pipeline, result: PipelineResult, place: _Place) -> ExitCode:
    summary = RunSummary(
        run=place.run,
        status=result.status,
        agents=tuple(_as_result(name, item) for name, item in result.agents.items()),
        audit=str(place.audit),
        out=str(place.out),
        result=result.answers(),
        last=pipeline.spec.last,
    )
    if job.output is Output.TEXT:
        click.echo(summary_text(summary, encoding=sys.stdout.encoding))
    else:
        print_json(summary_object(summary))
    return EXIT_CODES[result.status]


def _as_result(name: str, item: AgentResult | SkippedAgent) -> AgentResult:
    if isinstance(item, AgentResult):
        return item
    why = f"{', '.join(item.because)} did not end well"
    if item.when:
        why = f"when = {item.when} does not hold"
    error = RemitError(f"not started: {why}", code="E-PIPELINE-SKIPPED")
    return AgentResult(agent=AgentId(name), status=RunStatus.CANCELLED, error=error)
