"""What is configured, and whether each approved server answers. Calls no tool of any.

Of a server only its label, what it speaks, how long it took and how its process ended is told: its
name for itself, its address and what it writes to stderr are not.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import anyio

from mcp_client.auth.store import TokenStore
from orchestrator.core.ports import Clock
from orchestrator.sessions.approvals import ApprovalBook, ApprovalState
from orchestrator.sessions.confining import bubblewrap
from orchestrator.sessions.entries import (
    EntryState,
    ServerEntry,
    ServersFile,
    ServerTransport,
    server_item,
)
from orchestrator.sessions.logging_in import standings
from orchestrator.sessions.sandbox import SandboxMinimum, minimum_lines
from orchestrator.sessions.servers import ServerState
from orchestrator.surfaces.doctor.findings import Finding, Level

__all__ = ["LISTING_SECONDS", "configuration_findings", "handshake_findings", "minimum_findings"]

LISTING_SECONDS: Final = 20.0
"""For listing what a server offers, once it is there."""
TOLD_AFTER_SECONDS: Final = 3.0
"""A wait that is longer is told of."""
_AT_ONCE: Final = 8
"""Handshakes side by side."""


def minimum_findings(minimum: SandboxMinimum | None) -> list[Finding]:
    """Say what the person's settings confine servers to, and whether that can be done here."""
    if minimum is None:
        return []
    detail = "; ".join(minimum_lines(minimum))
    if bubblewrap(os.environ.get("PATH", "")):
        return [Finding(name="sandbox minimum", level=Level.OK, detail=detail)]
    what = "none of them is started" if minimum.sandbox.required else "they are not confined"
    return [
        Finding(
            name="sandbox minimum",
            level=Level.FAIL if minimum.sandbox.required else Level.WARN,
            detail=f"without a bubblewrap that works {what}: {detail}",
            fix="apt install bubblewrap",
        )
    ]


def configuration_findings(file: ServersFile, book: ApprovalBook) -> list[Finding]:
    """Say what is wrong with the servers files, and which servers wait for an approval."""
    found = [
        Finding(
            name="configuration",
            level=Level.WARN,
            detail=f"{warning.message} ({warning.where})",
            fix=warning.fix,
        )
        for warning in file.warnings
    ]
    for entry in file.entries:
        found += _of_entry(entry, book)
    if not file.entries:
        found.append(
            Finding(
                name="configuration",
                level=Level.WARN,
                detail="no servers are configured",
                fix="remit init, or remit mcp import --from CLIENT",
            )
        )
    return found


def _of_entry(entry: ServerEntry, book: ApprovalBook) -> Iterable[Finding]:
    name = f"server {entry.name}"
    if entry.state is EntryState.DISABLED:
        yield Finding(name=name, level=Level.OK, detail="disabled")
        return
    if entry.problem is not None:
        problem = entry.problem
        detail = f"{problem.code}: {problem.message}"
        yield Finding(name=name, level=Level.FAIL, detail=detail, fix=problem.fix)
        return
    state = book.state(server_item(entry))
    if state is not ApprovalState.APPROVED:
        yield Finding(
            name=name,
            level=Level.WARN,
            detail=f"{state.value}: it is not started",
            fix=f"look at it and say yes: remit mcp approve {entry.name}",
        )
    if entry.transport is ServerTransport.STDIO:
        yield from _of_command(name, entry)


def _of_command(name: str, entry: ServerEntry) -> Iterable[Finding]:
    program = entry.command.rpartition("/")[2]
    if entry.command_line is None and shutil.which(entry.command) is None:
        yield Finding(
            name=name,
            level=Level.FAIL,
            detail=f"its program {program!r} is not found",
            fix=f"install {program}, or write the whole path",
        )
    if entry.is_unpinned:
        yield Finding(
            name=name,
            level=Level.WARN,
            detail=f"{program} takes the newest version of its package at each start",
            fix="write the version: PACKAGE@1.2.3 for npx, PACKAGE==1.2.3 for uvx",
        )


async def handshake_findings(
    entries: Sequence[ServerEntry],
    *,
    store: TokenStore,
    clock: Clock,
    seconds: float = LISTING_SECONDS,
    told_after: float = TOLD_AFTER_SECONDS,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Start or reach each server, shake hands, list its tools, and end it again.

    A server with a login is reached with the one that is kept in `store`. Each has the time that a
    session gives it to start, and `seconds` more; `tell` is called with a line about one that is
    waited for longer than `told_after` seconds.
    """
    found: dict[str, Finding] = {}
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def look(entry: ServerEntry) -> None:
        async with limiter, anyio.create_task_group() as group:
            group.start_soon(tell_of, entry)
            found[entry.name] = await _handshake(entry, store, clock, seconds)
            group.cancel_scope.cancel()

    async def tell_of(entry: ServerEntry) -> None:
        await anyio.sleep(told_after)
        tell(f"waiting for {entry.name}, for at most {entry.start_seconds + seconds:g} s")

    async with anyio.create_task_group() as group:
        for entry in entries:
            group.start_soon(look, entry)
    return [found[entry.name] for entry in entries]


async def _handshake(
    entry: ServerEntry, store: TokenStore, clock: Clock, listing_seconds: float
) -> Finding:
    name = f"server {entry.name}"
    began = clock.now()
    seconds = entry.start_seconds + listing_seconds
    try:
        with anyio.fail_after(seconds):
            (standing,) = await standings([entry], store)
    except TimeoutError:
        return Finding(
            name=name,
            level=Level.FAIL,
            detail=f"no answer within {seconds:g} s",
            fix="start its command by hand to see what it waits for",
        )
    if standing.state is ServerState.CONNECTED:
        spoken = f"MCP {standing.protocol_version}, {standing.tools} tools"
        detail = f"{spoken}, {clock.now() - began:.1f} s"
        return Finding(name=name, level=Level.OK, detail=detail)
    wants_login = standing.state is ServerState.NEEDS_AUTH
    return Finding(
        name=name,
        level=Level.WARN if wants_login else Level.FAIL,
        detail=f"{standing.state.value}: {standing.problem}"
        + (f": {standing.reason}" if standing.reason else ""),
        fix=standing.fix,
    )
