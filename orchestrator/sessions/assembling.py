"""The parts that a session is put together from, however it is opened. Opens none itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from orchestrator.agents.events import EventListener
from orchestrator.audit.log import AuditLog
from orchestrator.audit.memory import MemoryAudit
from orchestrator.audit.signing import Signer
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.ids import RunId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import Approver
from orchestrator.sessions import consent, parent
from orchestrator.sessions.approvals import ApprovalState, ApprovalStore, Item
from orchestrator.sessions.control.listening import listening
from orchestrator.sessions.control.operations import ControlDesk
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.elicitations import ALL_MODES, NOBODY, ElicitationMode, Person
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.policing import check_policy
from orchestrator.sessions.ports import NobodyToAsk, RandomIds, SessionPorts, SystemClock
from orchestrator.sessions.records import AgentRecords, MemoryRecords, SqliteRecords
from orchestrator.sessions.state import StatePaths
from orchestrator.telemetry.null import NO_TELEMETRY
from orchestrator.telemetry.setup import TelemetryMaker, installed_telemetry

__all__ = [
    "Asking",
    "check_offers",
    "control_of",
    "forget_records",
    "labels_of",
    "looking_ports",
    "new_log",
    "new_run",
    "records_of",
    "session_ports",
]


class Asking:
    """Settles items one lot after the other; a yes to one lot holds for the next."""

    def __init__(
        self,
        store: ApprovalStore,
        project: Path,
        approve: Collection[str],
        confirm: consent.Confirm | None,
        *,
        logs_in: bool,
        by: str = "terminal",
    ) -> None:
        self.logs_in = logs_in
        self._store = store
        self._project = project
        self._approve = approve
        self._book = store.book(project, approve)
        self._confirm = confirm
        self._by = by

    def asked_by(self, confirm: consent.Confirm, by: str) -> Asking:
        """Return one that asks somebody elsewhere, for the same project and with the same options."""
        return Asking(
            self._store, self._project, self._approve, confirm, logs_in=self.logs_in, by=by
        )

    def refuse_unused(self, names: Collection[str]) -> None:
        """Raise ConfigError for an approval that names none of these."""
        self._book.refuse_unused(names)

    def approves(self, item: Item) -> bool:
        """True if an item may take effect."""
        return self._book.state(item) is ApprovalState.APPROVED

    async def settle(self, items: Sequence[Item]) -> None:
        """Return once all are approved. Raises PendingApprovalError."""
        self._book = await consent.settle(
            items,
            book=self._book,
            store=self._store,
            confirm=self._confirm,
            at=SystemClock().wall(),
            by=self._by,
        )


def records_of(paths: StatePaths, project: Path, name: str | None) -> AgentRecords:
    """Return where records are kept: of one name in one project, so that projects share none."""
    if name is None:
        return MemoryRecords()
    return SqliteRecords(paths.records, session=f"{project.resolve()}\0{name}")


def forget_records(paths: StatePaths, project: Path, name: str) -> None:
    """Remove what is kept of a name in a project. Raises ConfigError if the file cannot be used."""
    records = SqliteRecords(paths.records, session=f"{project.resolve()}\0{name}")
    try:
        records.forget()
    finally:
        records.close()


def session_ports(
    clock: SystemClock,
    run: RunId,
    log: AuditLog,
    digest: Callable[[bytes], str],
    approver: Approver | None,
    on_event: EventListener | None,
    person: Person = NOBODY,
    modes: frozenset[ElicitationMode] = ALL_MODES,
    telemetry: TelemetryMaker = installed_telemetry,
) -> SessionPorts:
    """Return what a session works with; without an approver nobody is asked."""
    return SessionPorts(
        clock=clock,
        ids=RandomIds(),
        approver=approver or NobodyToAsk(),
        person=person,
        modes=modes,
        audit=log,
        telemetry=telemetry(clock, run),
        emit=on_event,
        digest_arguments=digest,
    )


def looking_ports() -> SessionPorts:
    """Return what a session works with that only looks at servers, and calls nothing.

    Nobody is asked, nobody hears of it, and nothing is kept on record.
    """
    return SessionPorts(
        clock=SystemClock(),
        ids=RandomIds(),
        approver=NobodyToAsk(),
        audit=MemoryAudit(),
        telemetry=NO_TELEMETRY,
        emit=None,
        digest_arguments=lambda _: "",  # there are no arguments
    )


def control_of(
    session: parent.ParentSession,
    folder: Path,
    watch: Watch,
    ports: SessionPorts,
    limits: OrchestratorLimits,
) -> AbstractAsyncContextManager[None]:
    """Return the control socket of a session, in the folder of its run; open while it is entered."""
    desk = ControlDesk(
        session=session,
        run=RunId(folder.name),
        watch=watch,
        audit=ports.audit,
        clock=ports.clock,
        answer_seconds=limits.approval_seconds_max,
    )
    return listening(desk, folder)


def new_log(path: Path, paths: StatePaths, run: RunId, clock: SystemClock) -> AuditLog:
    """Make the record of a run, signed at its checkpoints."""
    return AuditLog.create(path, run, clock, signer=Signer(paths.signing_key))


def new_run(clock: SystemClock) -> RunId:
    """Return the name of a new run: its start, and six digits."""
    started = time.strftime("%Y%m%d-%H%M%S-", time.gmtime(clock.wall()))
    return RunId(started + RandomIds().new()[:6])


def labels_of(entries: Sequence[ServerEntry]) -> list[str]:
    """Return the labels of servers, in their order."""
    return [entry.name for entry in entries]


def check_offers(session: parent.ParentSession) -> None:
    """Raise ConfigError for a rule that does not fit what the servers offer."""
    catalog = session.catalog
    known: dict[str, Mapping[str, Mapping[str, object]] | None] = {BUILTIN_SERVER: None}
    for name in session.servers:
        listing = catalog.listing(name)
        # of one that does not answer nobody knows what it offers
        known[name] = (
            {tool.name: tool.input_schema for tool in listing.tools}
            if listing is not None
            else None
        )
    check_policy(session.policy, known, None)
