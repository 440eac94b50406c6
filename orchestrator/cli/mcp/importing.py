"""`remit mcp import`: servers that another client knows, as entries of ours. Starts none of them.

Prints labels and names of keys, never a value: a client's file is full of tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.importing.clients import Client, Places
    from orchestrator.sessions.importing.merging import Merged

__all__ = ["import_servers"]

_CLIENTS = "claude-desktop, claude-code, vscode, cursor, gemini, codex, zed"


@click.command("import", short_help="Take over the servers of another MCP client.")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--from", "client", required=True, metavar="CLIENT", help=f"Whose file it is: {_CLIENTS}."
)
@click.option(
    "--into",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The servers file to add to; by default your profile's, or the project's `.mcp.json` "
    "for a file of the project.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@json_option
@click.pass_context
def import_servers(
    context: click.Context,
    file: Path | None,
    client: str,
    into: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take over the servers of another MCP client. What you have already is never replaced.

    Without FILE the client's own file is read. What comes with a project goes into the project's
    servers file, where it still wants your approval.
    """
    import os
    import sys

    from orchestrator.sessions.importing.clients import Places, client_of, read_client
    from orchestrator.sessions.importing.dialects import rewrite_servers
    from orchestrator.sessions.importing.merging import merge_entries, write_merged
    from orchestrator.sessions.projects import project_of
    from orchestrator.sessions.state import StatePaths

    chosen = client_of(client)
    here = Path.cwd()
    project = project_of(here / "here").resolve()
    places = Places.from_environment(
        os.environ, home=Path.home(), project=project, platform=sys.platform
    )
    path = file if file is not None else _own_file(places, chosen)
    paths = StatePaths.from_environment(os.environ)
    profile = paths.config / "mcp.json"
    of_project = file is not None and _stands_in(path, project, home=places.home)
    target = into or (project / ".mcp.json" if of_project else profile)
    entries = rewrite_servers(read_client(path, chosen, project=project), chosen)
    merged = merge_entries(target, entries)
    if merged.changed and not dry_run:
        if target == profile:
            paths.prepare()
        write_merged(merged, shared=target != profile)
    if as_json:
        print_json(_object(merged, source=path, written=merged.changed and not dry_run))
    else:
        _tell(merged, written=merged.changed and not dry_run, of_project=target != profile)
    context.exit(ExitCode.OK.value)


def _own_file(places: Places, client: Client) -> Path:
    """Return the person's own file of a client. Raises ConfigError if there is none."""
    from orchestrator.core.errors import ConfigError

    candidates = places.own(client)
    for path in candidates:
        if path.exists():
            return path
    of_project = [path for path in places.of_project(client) if path.exists()]
    fix = (
        f"this project has one: remit mcp import --from {client.value} {of_project[0]}"
        if of_project
        else f"name it: remit mcp import --from {client.value} FILE"
    )
    raise ConfigError(
        f"{client.value} has no file of its own here: "
        + ", ".join(str(path) for path in candidates),
        code="E-IMPORT-FILE",
        fix=fix,
    )


def _stands_in(path: Path, project: Path, *, home: Path) -> bool:
    """Return whether a file comes with the project; a home folder is no project of others."""
    return project != home.resolve() and path.resolve().is_relative_to(project)


def _object(merged: Merged, *, source: Path, written: bool) -> dict[str, object]:
    return {
        "from": str(source),
        "into": str(merged.path),
        "written": written,
        "servers": [
            {
                "name": entry.name,
                "source": entry.source,
                "state": fate.value,
                "notes": entry.notes,
                "variables": sorted(set(entry.variables)),
            }
            for entry, fate in merged.fates
        ],
    }


def _tell(merged: Merged, *, written: bool, of_project: bool) -> None:
    if not merged.fates:
        print_text("the file has no servers", to_stderr=True)
    for entry, fate in merged.fates:
        print_text(f"{entry.source}: {fate.value}")
        for note in entry.notes:
            print_text(f"  {note}")
    if written:
        print_text(f"written: {merged.path}", to_stderr=True)
        if of_project:
            print_text("they are the project's: each wants your approval first", to_stderr=True)
    elif merged.changed:
        print_text(f"nothing was written; it would be {merged.path}", to_stderr=True)
