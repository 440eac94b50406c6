"""`remit mcp pins`: which definitions of servers a person has approved; shows, approves, forgets them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from orchestrator.catalog.pins import PinReport
    from orchestrator.sessions.entries import ServerEntry
    from orchestrator.sessions.pinning import PinKeeper

__all__ = ["approve_pins", "forget_pins", "list_pins", "pins", "show_pins"]

_DIGEST_SHOWN: Final = 12
_SERVERS = click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` here, where there is one.",
)


@click.group(cls=Group, short_help="Look at approved definitions of tools.")
def pins() -> None:
    """Look at the definitions of tools that were approved, approve changed ones, forget them.

    A definition belongs to one configuration of one server. A tool whose definition is another one
    than the one that was approved cannot be called.
    """


@pins.command("list", short_help="List the servers whose definitions were approved.")
@_SERVERS
@json_option
def list_pins(servers: Path | None, as_json: bool) -> None:
    """List the configured servers with how many of their tools were approved. Starts none."""
    from orchestrator.cli.mcp.configured import configured_entries

    keeper = _keeper()
    rows = [_row(entry, keeper) for entry in configured_entries(servers)]
    if as_json:
        print_json({"servers": rows})
        return
    for row in rows:
        digest = str(row["configuration"])[:_DIGEST_SHOWN]
        state = f"{row['tools']} tools" if row["pinned"] else "nothing approved"
        print_text(f"{row['server']}  {state}  configuration {digest}…")
    if not rows:
        print_text("no servers are configured", to_stderr=True)


@pins.command("show", short_help="Show what was approved of a server.")
@click.argument("server", metavar="SERVER")
@_SERVERS
@json_option
def show_pins(server: str, servers: Path | None, as_json: bool) -> None:
    """Show the definitions that were approved of a server, hidden characters written out.

    Everything behind a bar is the server's own text: it can inform, it permits nothing.
    """
    entry, keeper = _entry(server, servers), _keeper()
    found = keeper.pinned(entry)
    if found is None:
        raise _nothing_pinned(entry)
    texts = keeper.texts(entry)
    if as_json:
        definitions = dict(texts.definitions) if texts is not None else {}
        print_json(
            {
                "server": entry.name,
                "configuration": entry.digest,
                "trust": "untrusted_external",
                "authority": "none",
                "tools": [
                    {"name": name, "digest": digest, "definition": definitions.get(name)}
                    for name, digest in found.tools.items()
                ],
            }
        )
        return
    from orchestrator.catalog.pins import definition_lines
    from orchestrator.core.display import whole_line

    for name, digest in found.tools.items():
        print_text(f"tool {whole_line(name)}  {digest[:_DIGEST_SHOWN]}…")
        definition = texts.definitions.get(name) if texts is not None else None
        if definition is not None:
            print_text("\n".join(definition_lines(definition)))


@pins.command("approve", short_help="Start a server, show what is new or changed, and pin it.")
@click.argument("server", metavar="SERVER")
@_SERVERS
@click.option(
    "--approve",
    "flags",
    multiple=True,
    metavar="NAME@DIGEST",
    help="Approve without a question: SERVER@DIGEST, SERVER.tools@DIGEST.",
)
@json_option
@click.pass_context
def approve_pins(
    context: click.Context,
    server: str,
    servers: Path | None,
    flags: tuple[str, ...],
    as_json: bool,
) -> None:
    """Start a server, show what of its definitions is new or has changed, and ask for approval.

    Without a terminal, and without --approve, exit code 6 and the options that approve. No tool is
    called.
    """
    import anyio

    from orchestrator.cli.mcp.pinning import approve_definitions

    entry = _entry(server, servers)
    report = anyio.run(approve_definitions, entry, _project(servers), flags)
    if as_json:
        print_json({"server": entry.name, **_report(report)})
    elif report.clean:
        print_text(f"{entry.name}: nothing was new and nothing had changed")
    else:
        count = len(report.unpinned) + len(report.changed)
        print_text(f"{entry.name}: {count} definitions approved")
    context.exit(ExitCode.OK.value)


@pins.command("forget", short_help="Take the approval of a server's definitions back.")
@click.argument("server", metavar="SERVER")
@_SERVERS
@json_option
def forget_pins(server: str, servers: Path | None, as_json: bool) -> None:
    """Take the approval of a server's definitions back: they are shown and asked about again.

    Sessions that are running are not told; they have theirs from their own start.
    """
    entry = _entry(server, servers)
    forgotten = _keeper().forget(entry)
    if not forgotten:
        raise _nothing_pinned(entry)
    if as_json:
        print_json({"server": entry.name, "forgotten": forgotten})
    else:
        print_text(f"{entry.name}: {forgotten} definitions forgotten")


def _keeper() -> PinKeeper:
    import os

    from orchestrator.core.limits import OrchestratorLimits
    from orchestrator.sessions.pinning import PinKeeper
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    return PinKeeper(paths.pins, limits=OrchestratorLimits())


def _project(servers: Path | None) -> Path:
    from orchestrator.sessions.projects import project_of

    return project_of(servers or Path(".mcp.json")).resolve()


def _entry(name: str, servers: Path | None) -> ServerEntry:
    from orchestrator.cli.mcp.configured import configured_entries
    from orchestrator.core.nearest import did_you_mean

    entries: Sequence[ServerEntry] = configured_entries(servers)
    for entry in entries:
        if entry.name == name:
            return entry
    raise ConfigError(
        f"there is no server {name!r}",
        code="E-SERVER-UNKNOWN",
        fix=did_you_mean(name, [entry.name for entry in entries]),
    )


def _nothing_pinned(entry: ServerEntry) -> ConfigError:
    return ConfigError(
        f"nothing of server {entry.name!r} was approved under this configuration",
        code="E-PIN-NONE",
        fix=f"remit mcp pins approve {entry.name}",
    )


def _row(entry: ServerEntry, keeper: PinKeeper) -> dict[str, object]:
    found = keeper.pinned(entry)
    return {
        "server": entry.name,
        "configuration": entry.digest,
        "pinned": found is not None,
        "tools": len(found.tools) if found is not None else 0,
    }


def _report(report: PinReport) -> dict[str, object]:
    return {
        "new": list(report.unpinned),
        "changed": [item.name for item in report.changed],
        "gone": list(report.missing),
    }
