"""`remit mcp`: the configured servers and how they stand. Starts none unasked, and shows no secret.

Of an entry only its label, its state and its command's name are printed: arguments, variables and
addresses may hold credentials, and so may what is wrong with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.mcp.configured import configured
from orchestrator.cli.mcp.deciding import approve_server, ping_server, reject_server
from orchestrator.cli.mcp.entries import add_server, get_server, remove_server
from orchestrator.cli.mcp.importing import import_servers
from orchestrator.cli.mcp.login import login, logout
from orchestrator.cli.mcp.pins import pins
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.approvals import ApprovalBook
    from orchestrator.sessions.configuration import ServerEntry
    from orchestrator.sessions.state import StatePaths

__all__ = ["list_servers", "mcp"]

_DIGEST_SHOWN: Final = 12
_UNDECIDED: Final = frozenset({"pending", "changed"})
_COLUMNS: Final = ("name", "origin", "state", "digest", "command")


@click.group(cls=Group, short_help="Look at the configured servers, add, approve, log in.")
def mcp() -> None:
    """Look at the configured servers, add and remove them, approve a project's, log in to them."""


for _command in (get_server, add_server, remove_server, approve_server, reject_server, ping_server):
    mcp.add_command(_command)
mcp.add_command(import_servers)
mcp.add_command(pins)
mcp.add_command(login)
mcp.add_command(logout)


@mcp.command("list", short_help="List the configured servers and how they stand.")
@click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` here, where there is one.",
)
@click.option("--connect", is_flag=True, help="Start or reach those that are approved.")
@json_option
@click.pass_context
def list_servers(
    context: click.Context, servers: Path | None, connect: bool, as_json: bool
) -> None:
    """List the configured servers and how they stand. Starts none of them without --connect.

    States: approved, pending, changed, rejected; config_error, unsupported, disabled. Of those that
    are reached: connected, needs_auth, failed, lost.
    """
    import os

    import anyio

    from orchestrator.sessions.approvals import ApprovalStore
    from orchestrator.sessions.projects import project_of
    from orchestrator.sessions.sandbox import minimum_lines
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    file = servers or Path(".mcp.json")
    book = ApprovalStore(paths.approvals).book(project_of(file).resolve())
    found = configured(servers)
    entries, minimum = found.file.entries, minimum_lines(found.minimum)
    rows = [_row(entry, book) for entry in entries]
    if connect:
        approved = {row["name"] for row in rows if row["state"] == "approved"}
        reached = anyio.run(_reached, [each for each in entries if each.name in approved], paths)
        rows = [{**row, **reached.get(row["name"], {})} for row in rows]
    if as_json:
        print_json({"servers": rows, "sandbox_minimum": minimum})
    elif rows:
        print_text(_aligned([_COLUMNS, *map(_cells, rows)]))
        if any(row["state"] == "config_error" for row in rows):
            print_text("what is wrong with an entry: remit mcp get NAME", to_stderr=True)
        for line in minimum:
            print_text(f"your settings: {line}", to_stderr=True)
        if any(row["state"] in _UNDECIDED for row in rows):
            print_text("for --approve NAME@DIGEST the whole digests: add --json", to_stderr=True)
    else:
        missing = servers is None and not file.exists()
        here = f"; name a file with --servers, or make {file}" if missing else ""
        print_text(f"no servers are configured{here}", to_stderr=True)
    context.exit(ExitCode.OK.value)


def _row(entry: ServerEntry, book: ApprovalBook) -> dict[str, str]:
    return {
        "name": entry.name,
        "origin": entry.origin.value,
        "state": _state(entry, book),
        "problem": entry.problem.code if entry.problem is not None else "",
        "digest": entry.digest,
        "command": _program(entry),
        "isolate": entry.isolate.value,
    }


def _cells(row: dict[str, str]) -> tuple[str, ...]:
    # A part of a digest approves nothing, and must not look as if it could.
    shown = {**row, "digest": f"{row['digest'][:_DIGEST_SHOWN]}…"}
    if row["isolate"] == "agent":
        shown["command"] += " (one for each agent)"
    return tuple(shown[name] for name in _COLUMNS)


def _state(entry: ServerEntry, book: ApprovalBook) -> str:
    from orchestrator.sessions.configuration import EntryState, server_item

    if entry.state is not EntryState.READY:
        return entry.state.value
    return book.state(server_item(entry)).value


async def _reached(
    entries: Sequence[ServerEntry], paths: StatePaths
) -> Mapping[str, Mapping[str, str]]:
    """Reach these servers, and say of each how it stands."""
    from orchestrator.sessions.credentials import credential_store
    from orchestrator.sessions.logging_in import standings

    found = await standings(entries, credential_store(paths).store)
    return {item.name: {"state": item.state.value, "problem": item.problem} for item in found}


def _program(entry: ServerEntry) -> str:
    """Return the name of the program as the file has it, unexpanded, without a word after it."""
    words = str(entry.raw.get("command", "")).split()
    if not words or "=" in words[0] or "${" in words[0]:
        return "-"
    return words[0].replace("\\", "/").rpartition("/")[2] or "-"


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
