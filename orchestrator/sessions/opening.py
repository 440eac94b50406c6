"""A parent session for a program: files read, approvals applied, servers connected and pinned.

The same steps as `remit run`, in the same order. It asks nobody unless it is handed somebody.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import Self

from mcp_client.auth.settings import AuthorizationStep
from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.events import AgentEvent
from orchestrator.agents.model import Model
from orchestrator.audit.key import argument_digests, load_or_create_key
from orchestrator.audit.log import AuditLog
from orchestrator.authority.admission import Grant
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.groups import ungrouped
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.ports import Approver
from orchestrator.sessions import consent, parent
from orchestrator.sessions.admitting import admit_servers
from orchestrator.sessions.agents import OneOffSubagent
from orchestrator.sessions.approvals import ApprovalStore, Origin
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
from orchestrator.sessions.configuration import ServersSource, load_servers, read_servers
from orchestrator.sessions.control.watching import Watch
from orchestrator.sessions.credentials import login_ports
from orchestrator.sessions.defined import (
    Definitions,
    FoundFile,
    find_files,
    take_up,
)
from orchestrator.sessions.entries import (
    EntryState,
    ServerEntry,
    ServersFile,
    server_item,
)
from orchestrator.sessions.lanes import ServerCap
from orchestrator.sessions.layers import SERVERS_FILE
from orchestrator.sessions.pinning import PinKeeper, tools_name
from orchestrator.sessions.policing import PolicyFiles, check_policy, read_policies, refuse_keeping
from orchestrator.sessions.ports import SystemClock
from orchestrator.sessions.projects import output_folder, project_of
from orchestrator.sessions.servers import ServerState
from orchestrator.sessions.settings import sandbox_minimum
from orchestrator.sessions.state import StatePaths
from policies import ASK_ALL, PolicySet

__all__ = ["ParentSession"]

_UNUSABLE = frozenset({EntryState.DISABLED, EntryState.UNSUPPORTED})
"""What other clients' files hold by design; only who asks for such an entry is told of it."""


class ParentSession(parent.ParentSession):
    """One session, opened for a program: `async with ParentSession.open(…) as session`.

    Attributes:
        definitions: agents and skills of the profile and of the project. A project's are there only
            if they are approved; the others are in `definitions.pending`.
    """

    def defined(
        self, name: str, *, model: Model | str | None = None, budget: Budget | None = None
    ) -> OneOffSubagent:
        """Make a subagent as its definition says; it works once. It grants no more than the policy.

        `model` and `budget` stand in for the definition's own. Raises ConfigError if there is no
        such definition, it is not approved, or it names no model and none is given; and as `subagent`.
        """
        found = self.definitions.agent(name)
        chosen = model or found.model
        if not chosen:
            raise ConfigError(
                f"the definition of {name!r} names no model that can be used here",
                code="E-AGENT-DEFINITION",
                fix="hand one in: model=…",
            )
        grant = Grant(tools=found.tools, delegate=found.delegate, resources=found.resources)
        return self.subagent(
            found.name,
            model=chosen,
            role=found.role,
            grant=grant,
            budget=budget or found.budget,
            preamble=found.prompt,
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        servers: Path | str | Mapping[str, Mapping[str, object]],
        name: str | None = None,
        only: Collection[str] | None = None,
        policy: PolicySet | Path | str | Sequence[Path | str] = ASK_ALL,
        parameters: Mapping[str, str] | None = None,
        project: Path | str | None = None,
        approve: Collection[str] = (),
        allow_variables: Collection[str] = (),
        approver: Approver | None = None,
        confirm: consent.Confirm | None = None,
        login: Callable[[ServerEntry], AuthorizationStep | None] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
        audit: Path | str | None = None,
        out: Path | str | None = None,
        environ: Mapping[str, str] | None = None,
        prices: Mapping[str, Price] | None = None,
        budget: Budget | None = None,
        limits: OrchestratorLimits | None = None,
        caps: Mapping[str, ServerCap] | None = None,
        control: bool = False,
    ) -> AsyncGenerator[Self]:
        """Open a session whose servers are approved, connected and pinned; close it with the block.

        Args:
            servers: the servers file of a project; or entries by their labels, as they stand under
                `mcpServers`, which are a program's own word and need no approval.
            name: the session's name. The records of its persistent agents are kept under it, and
                another session of this name can reopen them; without one they end with it.
            only: the labels of the servers to start. By default all that can be used: disabled ones,
                and those with a transport that is not supported, are left out.
            policy: policy files, together, or a set that the program has made. By default every call
                asks a person. Files must be approved; a program's own set is its own word.
            parameters: what `${NAME}` stands for in policy files.
            project: the folder that approvals belong to; by default what `remit run` would take.
            approve: `NAME@DIGEST`, as with `--approve`, for this session only.
            allow_variables: variables of the environment that the servers file may use.
            approver: asks about calls that a rule asks about; without one such a call is refused.
            confirm: asks about what is not approved yet; a yes is kept.
            login: returns who has a person consent to the login of a server, or None. With it a
                server that wants a login is no error: it is `needs_auth` until `log_in`.
            on_event: is told what agents do; must not block and must not raise.
            audit: the audit log's file, which must not exist; by default that of a new run in the
                state folder, where `remit audit` finds it.
            out: the folder that `${REMIT_OUT}` stands for in the servers file; by default the run's own.
            environ: the environment; by default the process's own.
            prices: what models cost, by `PROVIDER:NAME`, before the prices that are known.
            budget: what all agents together may spend; by default each has its own alone.
            caps: how many calls a server gets at a time and a minute, by its label.
            control: let other terminals of the same user look at the session, answer what its agents
                ask and stop them: `remit agents`, `remit approvals`, `remit top`, `remit serve`.
            limits: other caps on agents, calls and times than the default ones.

        Raises:
            PendingApprovalError: something is not approved; its `approvals` are values for `approve`.
            ConfigError: a file or a name that cannot be used. PolicyError: what a policy file holds.
            RemitError: a server could not be connected.
        """
        variables = os.environ if environ is None else environ
        paths = _prepared(variables)
        place = Path.cwd() / SERVERS_FILE if isinstance(servers, Mapping) else Path(servers)
        root = project_of(place) if project is None else Path(project)
        clock = SystemClock()
        run = new_run(clock)
        folder = output_folder(paths.run(run).out if out is None else Path(out), projects=(root,))
        entries = _entries(_read(servers, root, paths, variables, allow_variables, folder), only)
        rules = _policy(policy, root, parameters or {})
        check_policy(rules.policy, dict.fromkeys((*labels_of(entries), BUILTIN_SERVER)), None)
        asking = Asking(ApprovalStore(paths.approvals), root, approve, confirm, logs_in=bool(login))
        definitions = await _settled(entries, rules, asking, find_files(root, paths.config))
        digest = argument_digests(load_or_create_key(paths.audit_key))
        limits, own = limits or OrchestratorLimits(), paths.new_run(run)
        folder.mkdir(parents=True, exist_ok=True)
        with new_log(Path(audit or own.audit), paths, run, clock) as log:
            watch = Watch(clock.now, on_event) if control else None
            heard = on_event if watch is None else watch.hear
            ports = session_ports(clock, run, log, digest, approver, heard)
            session = cls(
                records=records_of(paths, root, name),
                own_tools=True,
                caps=caps,
                skills=definitions.skills,
                servers=entries,
                policy=rules.policy,
                limits=limits,
                prices=prices,
                budget=budget,
                logins=login_ports(paths, entries, login),
                ports=ports,
            )
            session.definitions, pins = definitions, PinKeeper(paths.pins, limits=limits)
            door = control_of(session, own.folder, watch, ports, limits) if watch else nullcontext()
            async with _connected(session, entries, pins=pins, asking=asking, log=log), door:
                yield session


async def _settled(
    entries: Sequence[ServerEntry],
    rules: PolicyFiles,
    asking: Asking,
    files: Sequence[FoundFile],
) -> Definitions:
    """Return what may be used of the definitions, once all that is needed is approved."""
    items = (*rules.items, *map(server_item, entries))
    named = {item.name for item in (*items, *(file.item for file in files))}
    asking.refuse_unused(named.union(map(tools_name, entries)))
    await asking.settle(items)
    return take_up(files, asking.approves)


@asynccontextmanager
async def _connected(
    session: parent.ParentSession,
    entries: Sequence[ServerEntry],
    *,
    pins: PinKeeper,
    asking: Asking,
    log: AuditLog,
) -> AsyncGenerator[None]:
    """Start the servers, check and admit what they offer, and record how it all ended."""
    log.append("run_started", {"policy": session.policy.digest, "servers": labels_of(entries)})
    status = "failed"
    try:
        with ungrouped():
            async with session.running():
                _refuse_failed(session, may_log_in=asking.logs_in)
                check_offers(session)
                await admit_servers(session, entries, pins=pins, settle=asking.settle, audit=log)
                yield
        status = "ok"
    finally:
        log.append("run_ended", {"status": status})


def _entries(file: ServersFile, only: Collection[str] | None) -> tuple[ServerEntry, ...]:
    """Return the servers to start. Raises the problem of one that is wanted and cannot be used."""
    known = {entry.name: entry for entry in file.entries}
    for name in only or ():
        if name not in known:
            raise ConfigError(
                f"there is no server {name!r}",
                code="E-SERVER-UNKNOWN",
                fix=did_you_mean(name, known),
            )
    wanted: list[ServerEntry] = []
    for entry in known.values():
        left_out = entry.state in _UNUSABLE if only is None else entry.name not in only
        if left_out:
            continue
        if entry.problem is not None:
            raise entry.problem
        wanted.append(entry)
    return tuple(wanted)


def _read(
    servers: Path | str | Mapping[str, Mapping[str, object]],
    project: Path,
    paths: StatePaths,
    variables: Mapping[str, str],
    allowed: Collection[str],
    out: Path,
) -> ServersFile:
    """Read a servers file, or entries of a program by the same rules."""
    source = ServersSource(
        origin=Origin.PROFILE if isinstance(servers, Mapping) else Origin.PROJECT,
        minimum=sandbox_minimum(paths),
        project=project.resolve(),
        home=Path.home(),
        environ=variables,
        allow_variables=frozenset(allowed),
        out=str(out),
    )
    if not isinstance(servers, Mapping):
        return load_servers(Path(servers), source)
    try:
        text = json.dumps({"mcpServers": servers}, allow_nan=False, default=os.fspath)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            "an entry of `servers` holds what no servers file can",
            code="E-CONFIG-VALUE",
            why=str(error),
            fix="write texts, numbers, lists and dictionaries, as under mcpServers",
        ) from None
    return read_servers(read_json(text, "servers"), source)


def _prepared(variables: Mapping[str, str]) -> StatePaths:
    paths = StatePaths.from_environment(variables)
    paths.prepare()
    return paths


def _policy(
    policy: PolicySet | Path | str | Sequence[Path | str],
    project: Path,
    parameters: Mapping[str, str],
) -> PolicyFiles:
    if isinstance(policy, PolicySet):
        return PolicyFiles(policy=policy, items=())
    paths = [policy] if isinstance(policy, Path | str) else policy
    found = read_policies([Path(path) for path in paths], project=project, parameters=parameters)
    # files are a project's; a program that means it hands over a set of its own
    refuse_keeping(found.policy)
    return found


def _refuse_failed(session: parent.ParentSession, *, may_log_in: bool) -> None:
    for connection in session.servers.values():
        waits = may_log_in and connection.state is ServerState.NEEDS_AUTH
        if connection.error is not None and not waits:
            raise connection.error
