"""`remit mcp approve|reject|ping`: a person's word on a project's server, and one handshake."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.approvals import Item
    from orchestrator.sessions.layers import ConfiguredServers

__all__ = ["approve_server", "ping_server", "reject_server"]

_SERVERS = click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default that of the project we stand in.",
)


@click.command("approve", short_help="Approve a server of the project, as it stands now.")
@click.argument("name", metavar="NAME[@DIGEST]")
@_SERVERS
@json_option
@click.pass_context
def approve_server(context: click.Context, name: str, servers: Path | None, as_json: bool) -> None:
    """Approve a server of the project. On a terminal all of it is shown, and you are asked.

    Elsewhere the whole digest has to be given: a name alone would approve whatever stands behind it.
    """
    import anyio

    found, item = _item(name.partition("@")[0], servers)
    digest = name.partition("@")[2]
    if digest and digest != item.digest:
        raise ConfigError(
            f"server {item.name!r} is another one than that digest is of",
            code="E-APPROVE-FLAG",
            fix=f"look at it again: remit mcp get {item.name}",
        )
    if not digest and not anyio.run(_confirmed, item):
        context.exit(ExitCode.PENDING_APPROVAL.value)
    _decide(found, item, approved=True)
    _tell(item, "approved", as_json=as_json)
    context.exit(ExitCode.OK.value)


@click.command("reject", short_help="Reject a server of the project, as it stands now.")
@click.argument("name")
@_SERVERS
@json_option
@click.pass_context
def reject_server(context: click.Context, name: str, servers: Path | None, as_json: bool) -> None:
    """Reject a server of the project: it is not asked about again until something of it changes."""
    found, item = _item(name, servers)
    _decide(found, item, approved=False)
    _tell(item, "rejected", as_json=as_json)
    context.exit(ExitCode.OK.value)


@click.command("ping", short_help="Shake hands with one server, and end it again.")
@click.argument("name")
@_SERVERS
@json_option
@click.pass_context
def ping_server(context: click.Context, name: str, servers: Path | None, as_json: bool) -> None:
    """Start or reach an approved server, ask what it offers, and end it. Calls no tool."""
    import os

    import anyio

    from orchestrator.cli.mcp.configured import configured, configured_entry
    from orchestrator.sessions.credentials import credential_store
    from orchestrator.sessions.entries import server_item
    from orchestrator.sessions.ports import SystemClock
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.doctor.findings import Finding, Level
    from orchestrator.surfaces.doctor.servers import handshake_findings

    found = configured(servers)
    entry = configured_entry(found, name)
    if entry.problem is not None:
        raise entry.problem
    found.book.require([server_item(entry)])

    store = credential_store(StatePaths.from_environment(os.environ)).store

    async def greet() -> Finding:
        tell = partial(print_text, to_stderr=True)
        found = await handshake_findings([entry], store=store, clock=SystemClock(), tell=tell)
        return found[0]

    finding = anyio.run(greet)
    if as_json:
        print_json({**finding.to_json(), "name": name})
    else:
        print_text(f"{finding.level.value:<5} {name}  {finding.detail}")
        if finding.fix:
            print_text(f"      fix: {finding.fix}", to_stderr=True)
    failed = finding.level is Level.FAIL
    context.exit((ExitCode.FAILED if failed else ExitCode.OK).value)


def _item(name: str, servers: Path | None) -> tuple[ConfiguredServers, Item]:
    """Return what there is to decide on. Raises ConfigError where there is nothing."""
    from orchestrator.cli.mcp.configured import configured, configured_entry
    from orchestrator.sessions.approvals import Origin
    from orchestrator.sessions.entries import server_item

    found = configured(servers)
    entry = configured_entry(found, name)
    if entry.origin is not Origin.PROJECT:
        raise ConfigError(
            f"server {name!r} is your own, and needs no approval",
            code="E-APPROVE-OWN",
            fix=f"remit mcp remove {name}, if you do not want it",
        )
    if entry.problem is not None:
        raise entry.problem
    return found, server_item(entry)


async def _confirmed(item: Item) -> bool:
    import os

    from orchestrator.cli.terminal import person_here
    from orchestrator.sessions.approvals import ApprovalState, PendingApprovalError
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    person = person_here(paths)
    if not person.interactive:
        raise PendingApprovalError([(item, ApprovalState.PENDING)])
    return await person.confirm_items([item])


def _decide(found: ConfiguredServers, item: Item, *, approved: bool) -> None:
    import os

    from orchestrator.sessions.approvals import ApprovalStore
    from orchestrator.sessions.ports import SystemClock
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    book = found.book.decide(item, approved=approved, at=SystemClock.wall(), by="command")
    ApprovalStore(paths.approvals).save(book)


def _tell(item: Item, state: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"name": item.name, "state": state, "digest": item.digest})
    else:
        print_text(f"{item.name}: {state}")
