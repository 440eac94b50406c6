"""`remit mcp get|add|remove`: single entries of servers files. Starts none, and prints no value of one.

An entry may hold credentials in its arguments, variables, headers and address: of these only names are
shown.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import click

from orchestrator.cli.options import json_option, print_json, print_text, split_pairs
from orchestrator.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.sessions.entries import ServerEntry

__all__ = ["add_server", "get_server", "remove_server"]

_SERVERS = click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default that of the project we stand in.",
)
_PROJECT = click.option(
    "--project", is_flag=True, help="In the project's `.mcp.json`, not in your profile."
)
_NAMED: Final = ("env", "headers")


@click.command("get", short_help="Show one entry, without its secrets.")
@click.argument("name")
@_SERVERS
@json_option
def get_server(name: str, servers: Path | None, as_json: bool) -> None:
    """Show one entry: where it stands, what it is, and the names of what it sets."""
    from orchestrator.cli.mcp.configured import configured, configured_entry
    from orchestrator.sessions.entries import EntryState, server_item
    from orchestrator.sessions.sandbox import minimum_lines, sandbox_lines

    found = configured(servers)
    entry = configured_entry(found, name)
    ready = entry.state is EntryState.READY
    state = found.book.state(server_item(entry)) if ready else entry.state
    shown: dict[str, object] = {
        "name": str(entry.name),
        "origin": entry.origin.value,
        "state": state.value,
        "problem": entry.problem.code if entry.problem is not None else "",
        "why": entry.problem.message if entry.problem is not None else "",
        "fix": entry.problem.fix if entry.problem is not None else "",
        "transport": entry.transport.value,
        "digest": entry.digest,
        "where": str(entry.where),
        "keys": sorted(entry.raw),
        **{key: _names(entry, key) for key in _NAMED},
        "variables": sorted(entry.variables),
        "isolate": entry.isolate.value,
        "sandbox": sandbox_lines(entry.asked_sandbox),
        "minimum": minimum_lines(found.minimum),
    }
    if as_json:
        print_json(shown)
        return
    for key, value in shown.items():
        text = ", ".join(map(str, cast("list[str]", value))) if isinstance(value, list) else value
        if text:
            print_text(f"{key:<10} {text}")


def _names(entry: ServerEntry, key: str) -> list[str]:
    value = entry.raw.get(key)
    return sorted(cast("Mapping[str, object]", value)) if isinstance(value, dict) else []


@click.command(
    "add",
    short_help="Add a server: a command after --, or an address.",
    context_settings={"ignore_unknown_options": False},
)
@click.argument("name")
@click.argument("words", nargs=-1, required=True)
@_PROJECT
@click.option("--env", "env", multiple=True, metavar="NAME=VALUE", help="A variable for it.")
@click.option(
    "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header sent to it."
)
@click.option("--sse", is_flag=True, help="The address speaks HTTP+SSE, as servers of 2024 do.")
@json_option
@click.pass_context
def add_server(
    context: click.Context,
    name: str,
    words: tuple[str, ...],
    project: bool,
    env: tuple[str, ...],
    headers: tuple[str, ...],
    sse: bool,
    as_json: bool,
) -> None:
    """Add a server to your profile, or with --project to the project's file.

    For example `remit mcp add git -- python3 -m mcp_server_git --repository .`, or
    `remit mcp add issues https://issues.example/mcp --header 'Authorization=Bearer ${TOKEN}'`.
    A secret is better a variable, `${NAME}`: then it stands in no file. Nothing is ever replaced.
    """
    from orchestrator.sessions.importing.dialects import ImportedEntry
    from orchestrator.sessions.importing.merging import Fate, merge_entries, write_merged

    entry = _entry(words, split_pairs("--env", env), split_pairs("--header", headers), sse=sse)
    path = _file(project=project)
    made = ImportedEntry(name=name, source=name, entry=entry)
    merged = merge_entries(path, [made])
    fate = merged.fates[0][1]
    if fate is Fate.KEPT:
        raise ConfigError(
            f"there is a server {name!r} already",
            code="E-SERVER-EXISTS",
            fix=f"remit mcp remove {name}{' --project' if project else ''}, or another name",
        )
    _check(merged.text, path, project=project)
    if merged.changed:
        _prepare(path, project=project)
        write_merged(merged, shared=project)
    if as_json:
        print_json({"name": name, "state": fate.value, "file": str(path)})
    else:
        print_text(f"{name}: {fate.value}, {path}")
        if project:
            print_text("it is the project's: it wants your approval first", to_stderr=True)
    context.exit(ExitCode.OK.value)


def _entry(
    words: Sequence[str], env: dict[str, str], headers: dict[str, str], *, sse: bool
) -> dict[str, object]:
    """Return the entry that the words stand for. Raises UsageError for a mixture."""
    remote = words[0].startswith(("http://", "https://"))
    if remote and (len(words) > 1 or env):
        raise click.UsageError("an address takes neither arguments nor variables")
    if not remote and (headers or sse):
        raise click.UsageError("a command takes no headers; write an address that begins with http")
    if not remote:
        entry: dict[str, object] = {"command": words[0], "args": list(words[1:])}
        return {**entry, "env": env} if env else entry
    entry = {"type": "sse" if sse else "http", "url": words[0]}
    return {**entry, "headers": headers} if headers else entry


def _check(text: str, path: Path, *, project: bool) -> None:
    """Raise ConfigError for a file that could not be read again, before it is written."""
    import os

    from orchestrator.core.documents import read_json
    from orchestrator.sessions.approvals import Origin
    from orchestrator.sessions.configuration import ServersSource, read_servers

    read_servers(
        read_json(text, str(path)),
        ServersSource(
            origin=Origin.PROJECT if project else Origin.PROFILE,
            minimum=None,  # nothing of it is started here
            project=path.parent,
            home=Path.home(),
            environ=os.environ,
        ),
    )


def _prepare(path: Path, *, project: bool) -> None:
    import os

    from orchestrator.sessions.state import StatePaths

    if not project:
        StatePaths.from_environment(os.environ).prepare()


def _file(*, project: bool) -> Path:
    import os

    from orchestrator.sessions.layers import SERVERS_FILE
    from orchestrator.sessions.projects import project_of
    from orchestrator.sessions.state import StatePaths

    if project:
        return project_of(Path.cwd() / SERVERS_FILE) / SERVERS_FILE
    return StatePaths.from_environment(os.environ).config / "mcp.json"


@click.command("remove", short_help="Remove a server from your profile or the project.")
@click.argument("name")
@_PROJECT
@json_option
@click.pass_context
def remove_server(context: click.Context, name: str, project: bool, as_json: bool) -> None:
    """Remove a server. A session that runs keeps it until it reloads; its login stays (`logout`)."""
    from orchestrator.sessions.importing.merging import without_entry, write_merged

    path = _file(project=project)
    left = without_entry(path, name)
    write_merged(left, shared=project)
    if as_json:
        print_json({"name": name, "state": "removed", "file": str(path)})
    else:
        print_text(f"{name}: removed, {path}")
    context.exit(ExitCode.OK.value)
