"""The session behind a person's surface: both layers of configuration, and what of it may be used.

Asks nobody unless it is handed somebody. A server that cannot be had is a notice, and the others go on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from mcp_client.auth.settings import AuthorizationStep
from orchestrator.agents.budget import Budget
from orchestrator.agents.events import AgentEvent
from orchestrator.agents.model import Model
from orchestrator.audit.key import argument_digests, load_or_create_key
from orchestrator.core.errors import ConfigError
from orchestrator.core.groups import ungrouped
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Approver, AuditSink
from orchestrator.sessions.admitting import admit_servers
from orchestrator.sessions.always import AlwaysFile
from orchestrator.sessions.approvals import (
    ApprovalStore,
    Item,
    Origin,
    PendingApprovalError,
)
from orchestrator.sessions.assembling import (
    Asking,
    check_offers,
    control_of,
    labels_of,
    new_log,
    new_run,
    records_of,
    session_ports,
)
from orchestrator.sessions.chosen_model import ChosenModel, ModelLoading, choose_model
from orchestrator.sessions.consent import Confirm
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.credentials import login_ports
from orchestrator.sessions.defined import NO_DEFINITIONS, Definitions, find_files, take_up
from orchestrator.sessions.elicitations import ALL_MODES, NOBODY, ElicitationMode, Person
from orchestrator.sessions.entries import (
    EntryState,
    ServerEntry,
    ServersFile,
    server_item,
)
from orchestrator.sessions.layers import configured_servers
from orchestrator.sessions.opening import ParentSession
from orchestrator.sessions.pinning import PinKeeper, tools_name
from orchestrator.sessions.policing import PolicyFiles, read_policies, refuse_keeping
from orchestrator.sessions.ports import SystemClock
from orchestrator.sessions.projects import output_folder
from orchestrator.sessions.records import AgentRecords
from orchestrator.sessions.settings import (
    PROFILE_FILE,
    PROJECT_FILE,
    Settings,
    load_settings,
    merge_settings,
)
from orchestrator.sessions.state import StatePaths
from orchestrator.sessions.upkeep import Notice, Upkeep, failed_servers
from orchestrator.telemetry.setup import TelemetryMaker, installed_telemetry
from policies import ASK_ALL

__all__ = [
    "Notice",
    "Show",
    "Standing",
    "StandingRequest",
    "Upkeep",
    "open_standing",
    "standing_settings",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRequest:
    """What a person asked for on the command line.

    Attributes:
        servers: the project's servers file; None takes that of the project we stand in.
        policies: policy files in place of those that are set.
        model: in place of the model that is set.
        budget: in place of what of the budget is set; what it leaves open is as set.
        with_project: whether what comes with the project is looked at.
        leave_out: what is not approved is left out and told, in place of an error.
        approve: `NAME@DIGEST`, for this session.
        allow_variables: variables that the project's servers file may use.
        record: the name under which the conversation is kept and found again; None keeps none.
        folder: where we stand; None takes the process's own folder.
        handed: servers that an editor hands over, in place of all of the profile's.
        modes: how servers may ask a person; they are told of no other way.
        telemetry: makes what traces go to.
    """

    servers: Path | None = None
    policies: tuple[Path, ...] = ()
    model: str = ""
    budget: Budget = field(default_factory=Budget)
    with_project: bool = True
    leave_out: bool = False
    approve: Collection[str] = ()
    allow_variables: Collection[str] = ()
    record: str | None = None
    folder: Path | None = None
    handed: ServersFile | None = None
    modes: frozenset[ElicitationMode] = ALL_MODES
    telemetry: TelemetryMaker = installed_telemetry


class Show(Protocol):
    """Shows what is not admitted yet; `again` is a server that offers something else by now."""

    def __call__(self, confirm: Confirm, again: str = "") -> Awaitable[Sequence[Notice]]:
        """Return what still is not admitted. See `Standing.show`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A session that stands.

    Attributes:
        session: it.
        settings: what is set, both layers together.
        model: who answers; None if nobody is set.
        run: the name of its record.
        audit: the record's file.
        notices: what was left out, and why.
        records: where its agents' tasks are kept.
        show: has what servers say of their tools shown to a person now, where it was left out
            before; makes it grantable to agents that are made after it, and returns what still is
            left out.
        upkeep: reads the files anew, and has what a server offers shown.
    """

    session: ParentSession
    settings: Settings
    model: Model | None
    run: RunId
    audit: Path
    notices: tuple[Notice, ...]
    records: AgentRecords
    show: Show
    upkeep: Upkeep


def standing_settings(
    paths: StatePaths, project: Path, *, with_project: bool = True
) -> tuple[Settings, Settings]:
    """Return what the person has set, and what the project sets. Raises ConfigError."""
    mine = load_settings(paths.config / PROFILE_FILE, Origin.PROFILE)
    theirs = load_settings(project / PROJECT_FILE, Origin.PROJECT) if with_project else Settings()
    return mine, theirs


@asynccontextmanager
async def open_standing(
    request: StandingRequest,
    *,
    environ: Mapping[str, str],
    home: Path,
    approver: Approver | None = None,
    person: Person = NOBODY,
    confirm: Confirm | None = None,
    login: Callable[[ServerEntry], AuthorizationStep | None] | None = None,
    on_event: Callable[[AgentEvent], None] | None = None,
) -> AsyncGenerator[Standing]:
    """Open the session, connect its servers, and close it with the block.

    `person` is asked what servers want. A server that wants a login is a notice. `login` returns who
    has a person consent to one.

    Raises:
        PendingApprovalError: something is not approved, and nobody said yes to it.
        ConfigError, PolicyError: a file cannot be used as it is.
    """
    paths = StatePaths.from_environment(environ)
    paths.prepare()
    clock = SystemClock()
    run = new_run(clock)
    prepare = partial(_Preparing, request, paths, run, environ=environ, home=home, confirm=confirm)
    preparing = prepare()
    await preparing.settle()
    limits, own = OrchestratorLimits(), paths.new_run(run)
    digest = argument_digests(load_or_create_key(paths.audit_key))
    records = records_of(paths, preparing.project, request.record)
    with new_log(own.audit, paths, run, clock) as log:
        watch = Watch(clock.now, on_event)
        ports = session_ports(
            clock, run, log, digest, approver, watch.hear, person, request.modes, request.telemetry
        )
        session = ParentSession(
            records=records,
            own_tools=True,
            skills=preparing.definitions.skills,
            servers=preparing.entries,
            policy=preparing.rules.policy,
            limits=limits,
            prices=preparing.settings.prices,
            logins=login_ports(paths, preparing.entries, login),
            ports=replace(ports, always=AlwaysFile(paths, preparing.project)),
        )
        session.definitions = preparing.definitions
        keeper = PinKeeper(paths.pins, limits=limits)
        admit = partial(admit_servers, session, pins=keeper, audit=log)
        control = control_of(session, own.folder, watch, ports, limits)
        loading = ModelLoading(preparing.approved_model())
        async with _running(session, preparing, log, admit, loading), control:
            yield Standing(
                session=session,
                settings=preparing.settings,
                model=await loading.model(),
                run=run,
                audit=own.audit,
                notices=tuple(preparing.notices),
                records=records,
                show=partial(preparing.show, admit),
                upkeep=Upkeep(session, prepare, partial(admit, settle=preparing.asking.settle)),
            )


@asynccontextmanager
async def _running(
    session: ParentSession,
    preparing: _Preparing,
    log: AuditSink,
    admit: _Admit,
    loading: ModelLoading,
) -> AsyncGenerator[None]:
    """Connect the servers, have what they offer shown, and record how it all ended."""
    labels = labels_of(preparing.entries)
    log.append("run_started", {"policy": session.policy.digest, "servers": labels})
    status = "failed"
    try:
        with ungrouped():
            async with loading.meanwhile(), session.running():
                preparing.notices += failed_servers(session)
                preparing.check(session)
                await preparing.admit(partial(admit, settle=preparing.asking.settle))
                yield
        status = "ok"
    finally:
        log.append("run_ended", {"status": status})


class _Admit(Protocol):
    """`admit_servers` with all but who settles the questions."""

    def __call__(
        self,
        entries: Sequence[ServerEntry],
        *,
        settle: Callable[[Sequence[Item]], Awaitable[None]],
    ) -> Awaitable[None]: ...


class _Preparing:
    """From the request to what a session is made of: read first, then asked about, then left out."""

    def __init__(
        self,
        request: StandingRequest,
        paths: StatePaths,
        run: RunId,
        *,
        environ: Mapping[str, str],
        home: Path,
        confirm: Confirm | None,
    ) -> None:
        self._request = request
        self._paths = paths
        self.notices: list[Notice] = []
        self.definitions: Definitions = NO_DEFINITIONS
        out = output_folder(paths.run(run).out, projects=())
        found = configured_servers(
            paths,
            request.servers,
            environ=environ,
            home=home,
            approve=request.approve,
            allow_variables=request.allow_variables,
            out=str(out),
            with_project=request.with_project,
            folder=request.folder,
            handed=request.handed,
        )
        self._waiting: Sequence[ServerEntry] = ()
        self.project = found.project
        self._mine, self._theirs = standing_settings(
            paths, found.project, with_project=request.with_project
        )
        self.settings = self._merged(self._theirs)
        self.entries = tuple(self._usable(found.file.entries))
        self.notices += [
            Notice("configuration", "warning", warning.message, warning.fix)
            for warning in found.file.warnings
        ]
        self.rules = self._read(self.settings.policies)
        self._model = self._choose()
        self.asking = Asking(
            ApprovalStore(paths.approvals), found.project, request.approve, confirm, logs_in=True
        )

    def _merged(self, theirs: Settings) -> Settings:
        merged = merge_settings(self._mine, theirs)
        request = self._request
        return replace(
            merged,
            model=request.model or merged.model,
            budget=request.budget.or_else(merged.budget),
            policies=tuple(path.absolute() for path in request.policies) or merged.policies,
        )

    def _choose(self) -> ChosenModel | None:
        name = self.settings.model
        if not name:
            return None
        return choose_model(name, folder=self._request.folder or Path.cwd(), project=self.project)

    def approved_model(self) -> ChosenModel | None:
        """Return who answers; once all is settled a recipe is approved, or left out."""
        chosen = self._model
        if chosen is None or (chosen.item is not None and not self.asking.approves(chosen.item)):
            return None
        return chosen

    def _usable(self, entries: Sequence[ServerEntry]) -> Sequence[ServerEntry]:
        """Return what can be started; tell of the others."""
        usable: list[ServerEntry] = []
        for entry in entries:
            if entry.problem is not None and entry.state is not EntryState.DISABLED:
                problem = entry.problem
                self.notices.append(
                    Notice(entry.name, entry.state.value, problem.message, problem.fix)
                )
            elif entry.state is EntryState.READY:
                usable.append(entry)
        return usable

    def _read(self, paths: Sequence[Path]) -> PolicyFiles:
        """Read policy files; a profile's are the person's own word and need no approval.

        Where there are both, those of the project are held within the profile's: they only narrow.
        """
        config = self._paths.config.resolve()
        # each is resolved once, and read there: a link that changes meanwhile makes nothing the person's
        real = [path.resolve() for path in paths]
        own = [path for path in real if path.is_relative_to(config)]
        others = [
            path
            for path, there in zip(paths, real, strict=True)
            if not there.is_relative_to(config)
        ]
        profile = read_policies(own, project=self.project, parameters={}).policy if own else None
        if not others:
            return PolicyFiles(policy=ASK_ALL if profile is None else profile, items=())
        project = read_policies(others, project=self.project, parameters={})
        refuse_keeping(project.policy)
        return PolicyFiles(policy=project.policy.bounded_by(profile), items=project.items)

    async def settle(self) -> None:
        """Have all of the project approved. What is not is left out, or raises."""
        settings = self._theirs.item
        items = [
            *([settings] if settings is not None else []),
            *self.rules.items,
            *([self._model.item] if self._model is not None and self._model.item else []),
            *map(server_item, self.entries),
        ]
        files = find_files(self.project, self._paths.config) if self._request.with_project else ()
        named = (*items, *(file.item for file in files))
        self.asking.refuse_unused({*(item.name for item in named), *map(tools_name, self.entries)})
        try:
            await self.asking.settle(items)
        except PendingApprovalError:
            if not self._request.leave_out:
                raise
            self._leave_out(items)
        self.definitions = take_up(files, self.asking.approves)

    def _leave_out(self, items: Sequence[Item]) -> None:
        pending = [item for item in items if not self.asking.approves(item)]
        self.notices += [
            Notice(
                item.name, "pending", f"not approved: this {item.kind.value} is left out", item.flag
            )
            for item in pending
        ]
        if self._theirs.item in pending:
            self.settings = self._merged(Settings())
            self._model = self._choose()
            self.rules = self._read(self.settings.policies)
            pending += [item for item in self.rules.items if not self.asking.approves(item)]
        names = {item.name for item in pending}
        if any(item.name in names for item in self.rules.items):
            kept = [
                path
                for path in self.settings.policies
                if path.resolve().is_relative_to(self._paths.config.resolve())
            ]
            self.rules = self._read(kept)
        self.entries = tuple(
            entry for entry in self.entries if self.asking.approves(server_item(entry))
        )

    def check(self, session: ParentSession) -> None:
        """Hold the rules against what the servers offer.

        A rule of a project that fits nothing is an error, since it may be a misspelt guard. A
        profile's rules are for all projects: what fits nothing here is told.
        """
        try:
            check_offers(session)
        except ConfigError as error:
            where = error.where
            own = str(self._paths.config.resolve())
            lost = "UNKNOWN-SERVER" in error.code
            if not lost and (where is None or not where.path.startswith(own)):
                raise
            if lost and self._request.handed is not None:
                return  # the person's rules are for their own servers too, which are not here
            self.notices.append(Notice("policy", "warning", error.message, error.fix))

    async def admit(self, admit: Callable[[Sequence[ServerEntry]], Awaitable[None]]) -> None:
        """Have what the servers say of their tools shown, and let it be granted."""
        if not self._request.leave_out:
            await admit(self.entries)
            return
        self._waiting = self.entries
        self.notices += await self.admit_rest(admit)

    async def show(self, admit: _Admit, confirm: Confirm, again: str = "") -> Sequence[Notice]:
        """Have what is not admitted yet shown to a person, and return what still is not."""
        known = {entry.name for entry in self._waiting}
        found = [entry for entry in self.entries if entry.name == again and again not in known]
        self._waiting = (*self._waiting, *found)
        asking = self.asking.asked_by(confirm, "editor")
        return await self.admit_rest(partial(admit, settle=asking.settle))

    async def admit_rest(
        self, admit: Callable[[Sequence[ServerEntry]], Awaitable[None]]
    ) -> Sequence[Notice]:
        """Admit each server that is not admitted yet; tell of those that still are not."""
        pending: list[Notice] = []
        waiting: list[ServerEntry] = []
        for entry in self._waiting:
            try:
                await admit([entry])
            except PendingApprovalError as error:
                waiting.append(entry)
                pending.append(Notice(entry.name, "pending", error.message, error.fix))
        self._waiting = tuple(waiting)
        return pending
