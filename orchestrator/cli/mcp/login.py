"""`remit mcp login` and `remit mcp logout`: shows no address of a server and no secret.

The address of the consent page is shown, since a person has to be able to visit it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.entries import ServerEntry
    from orchestrator.sessions.layers import ConfiguredServers
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.login import LoopbackStep, PastedStep

__all__ = ["login", "logout"]

_SERVERS = click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` here, where there is one.",
)
_ALLOW = click.option(
    "--allow-variable",
    "allow_variables",
    multiple=True,
    metavar="NAME",
    help="Let the project's servers file use this environment variable.",
)


@click.command(short_help="Log in to a server.")
@click.argument("server")
@_SERVERS
@click.option("--no-browser", is_flag=True, help="Show the address, and take the one pasted.")
@click.option("--approve", multiple=True, metavar="NAME@DIGEST", help="Approve this server, once.")
@_ALLOW
@json_option
@click.pass_context
def login(
    context: click.Context,
    server: str,
    servers: Path | None,
    no_browser: bool,
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
    as_json: bool,
) -> None:
    """Log in to a server that is reached by a URL: consent in a browser, which comes back here.

    A server of a project has to be approved first: its address decides whom you are asked to trust.
    """
    import os

    import anyio

    from mcp_client.auth.errors import AuthorizationFailedError
    from orchestrator.core.errors import ConfigError
    from orchestrator.sessions.credentials import credential_store
    from orchestrator.sessions.logging_in import log_in_to, refuse_without_login
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    found = _configured(paths, servers, approve, allow_variables)
    entry = _entry(found, server)
    refuse_without_login(entry)
    anyio.run(_approved, found, entry, paths)
    step = _step(entry, no_browser=no_browser)
    try:
        _ = step.redirect_uri
    except AuthorizationFailedError as error:
        raise ConfigError(
            "the port that the browser is to come back to is taken",
            code="E-LOGIN-PORT",
            fix="end the program that listens there, or name another callbackPort",
            where=entry.where,
        ) from error
    kept = credential_store(paths)
    try:
        standing = anyio.run(log_in_to, entry, kept.store, step)
    finally:
        step.close()
    if as_json:
        told = {"server": server, "state": standing.state.value, "tools": standing.tools}
        print_json({**told, "store": kept.kind.value})
    else:
        print_text(f"{server}: {standing.state.value}, {standing.tools} tools")
        print_text(f"the login is kept in: {kept.kind.value}", to_stderr=True)
    context.exit(ExitCode.OK.value)


@click.command(short_help="Forget the login to a server.")
@click.argument("server")
@_SERVERS
@_ALLOW
@json_option
@click.pass_context
def logout(
    context: click.Context,
    server: str,
    servers: Path | None,
    allow_variables: tuple[str, ...],
    as_json: bool,
) -> None:
    """Forget the login to a server. Nothing is sent; a program that runs ends by itself."""
    import os

    import anyio

    from orchestrator.sessions.credentials import credential_store
    from orchestrator.sessions.logging_in import log_out_of
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    entry = _entry(_configured(paths, servers, (), allow_variables), server)
    anyio.run(log_out_of, entry, credential_store(paths).store)
    if as_json:
        print_json({"server": server, "state": "needs_auth"})
    else:
        print_text(f"{server}: logged out on this machine")
    context.exit(ExitCode.OK.value)


def _configured(
    paths: StatePaths,
    servers: Path | None,
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
) -> ConfiguredServers:
    import os

    from orchestrator.sessions.layers import configured_servers

    return configured_servers(
        paths,
        servers,
        environ=os.environ,
        home=Path.home(),
        approve=approve,
        allow_variables=allow_variables,
    )


def _entry(found: ConfiguredServers, server: str) -> ServerEntry:
    from orchestrator.core.errors import ConfigError
    from orchestrator.core.nearest import did_you_mean

    entries = {str(entry.name): entry for entry in found.file.entries}
    if server not in entries:
        raise ConfigError(
            f"there is no server {server!r}",
            code="E-SERVER-UNKNOWN",
            fix=did_you_mean(server, entries) or "remit mcp list",
        )
    return entries[server]


async def _approved(found: ConfiguredServers, entry: ServerEntry, paths: StatePaths) -> None:
    """Return once a person has approved the server. Raises PendingApprovalError."""
    from orchestrator.cli.terminal import person_here
    from orchestrator.sessions import consent
    from orchestrator.sessions.approvals import ApprovalStore
    from orchestrator.sessions.entries import server_item
    from orchestrator.sessions.ports import SystemClock

    person = person_here(paths)
    await consent.settle(
        (server_item(entry),),
        book=found.book,
        store=ApprovalStore(paths.approvals),
        confirm=person.confirm_items if person.interactive else None,
        at=SystemClock.wall(),
    )


def _step(entry: ServerEntry, *, no_browser: bool) -> LoopbackStep | PastedStep:
    import sys

    from orchestrator.cli.terminal import browser_here
    from orchestrator.surfaces.login import PASTED_CHARS_MAX, PastedStep

    def tell(line: str) -> None:
        print_text(line, to_stderr=True)

    if no_browser:
        return PastedStep(
            tell=tell,
            read_line=lambda: sys.stdin.readline(PASTED_CHARS_MAX),
            registered=entry.login.redirect_uri,
            port=entry.login.port,
        )
    return browser_here(entry, tell)
