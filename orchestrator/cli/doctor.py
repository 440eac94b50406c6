"""`remit doctor`: whether remit can work here, one line for each thing, each with what mends it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.doctor.findings import Finding

__all__ = ["doctor"]


@click.command(short_help="Look whether remit can work here, and what mends it.")
@click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` here, where there is one.",
)
@click.option("--no-handshake", is_flag=True, help="Start no server.")
@json_option
@click.pass_context
def doctor(context: click.Context, servers: Path | None, no_handshake: bool, as_json: bool) -> None:
    """Look whether remit can work here. Each line says how something stands, and what mends it.

    Approved servers are started or reached, asked what they offer, and ended; no tool is called.
    """
    import os

    from orchestrator.sessions.ports import SystemClock
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.doctor.findings import Level, worst
    from orchestrator.surfaces.doctor.machine import machine_findings

    paths = StatePaths.from_environment(os.environ)
    findings = machine_findings(paths, now=SystemClock.wall())
    findings += _configured(paths, servers, handshake=not no_handshake)
    if as_json:
        print_json({"level": worst(findings).value, "findings": [f.to_json() for f in findings]})
    else:
        _tell(findings)
    failed = worst(findings) is Level.FAIL
    context.exit((ExitCode.FAILED if failed else ExitCode.OK).value)


def _configured(paths: StatePaths, servers: Path | None, *, handshake: bool) -> list[Finding]:
    """Look at the servers files, and at the servers that may be started."""
    import os

    import anyio

    from orchestrator.core.errors import RemitError
    from orchestrator.sessions.approvals import ApprovalState
    from orchestrator.sessions.credentials import credential_store
    from orchestrator.sessions.entries import EntryState, server_item
    from orchestrator.sessions.layers import configured_servers
    from orchestrator.sessions.ports import SystemClock
    from orchestrator.surfaces.doctor.findings import Finding, Level
    from orchestrator.surfaces.doctor.servers import (
        configuration_findings,
        handshake_findings,
        minimum_findings,
    )

    try:
        found = configured_servers(paths, servers, environ=os.environ, home=Path.home())
        book = found.book
        findings = [
            *minimum_findings(found.minimum),
            *configuration_findings(found.file, book),
        ]
    except RemitError as error:
        detail = f"{error.code}: {error.message}"
        return [Finding(name="configuration", level=Level.FAIL, detail=detail, fix=error.fix)]
    ready = [
        entry
        for entry in found.file.entries
        if entry.state is EntryState.READY
        and book.state(server_item(entry)) is ApprovalState.APPROVED
    ]
    if handshake and ready:
        store = credential_store(paths).store

        async def greet() -> list[Finding]:
            return await handshake_findings(
                ready, store=store, clock=SystemClock(), tell=partial(print_text, to_stderr=True)
            )

        findings += anyio.run(greet)
    return findings


def _tell(findings: list[Finding]) -> None:
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        print_text(f"{finding.level.value:<5} {finding.name:<{width}}  {finding.detail}")
        if finding.fix:
            print_text(f"{'':<5} {'':<{width}}  fix: {finding.fix}")
