"""`remit acp`: an editor on stdin and stdout has agents at work. Prints nothing but frames."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.standing import Given, standing_options
from orchestrator.core.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.sessions.entries import ServerEntry
    from orchestrator.surfaces.login import LoopbackStep

__all__ = ["acp", "loopback_for"]


@click.command(short_help="Serve an editor: the Agent Client Protocol on stdio.")
@standing_options(span="these sessions", servers=False)
def acp(given: Given) -> None:
    """Serve an editor with the Agent Client Protocol, until it closes stdin.

    An editor starts this; see docs/how-to/use-from-an-editor.md.
    """
    import os

    import anyio

    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.exporting import exported_telemetry
    from orchestrator.sessions.conversations import Conversations
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.acp.limits import AcpLimits
    from orchestrator.surfaces.acp.place import place_for
    from orchestrator.surfaces.acp.serving import serve
    from orchestrator.surfaces.acp.stdio import private_stdout

    if os.isatty(0):
        raise ConfigError(
            "this is for an editor to start: it speaks a protocol on stdin and stdout",
            code="E-ACP-TERMINAL",
            fix="see docs/how-to/use-from-an-editor.md, or use remit ask",
        )
    harden_process()
    policies = tuple(path.absolute() for path in given.policies)
    request = replace(given.request(), policies=policies, leave_out=True)
    paths = StatePaths.from_environment(os.environ)
    paths.prepare()
    limits = AcpLimits()
    kept = Conversations(paths.conversations, kept_max=limits.sessions_kept_max)
    try:
        with exported_telemetry() as telemetry, private_stdout() as writes:
            request = replace(request, telemetry=telemetry)
            place = place_for(
                request,
                paths,
                kept,
                environ=os.environ,
                home=Path.home(),
                version=_version(),
                loopback=loopback_for,
            )

            async def run() -> None:
                await serve(place, reads=0, writes=writes, limits=limits)

            anyio.run(run)
    finally:
        kept.close()


def loopback_for(entry: ServerEntry) -> LoopbackStep:
    """Return what hears a browser come back from a login; it is the editor that opens the address."""
    from orchestrator.surfaces.login import LoopbackStep

    return LoopbackStep(
        tell=_untold, open_url=None, registered=entry.login.redirect_uri, port=entry.login.port
    )


def _untold(_: str) -> None:
    """The editor is told of the address, and nobody else is here."""


def _version() -> str:
    try:
        return version("remit")
    except PackageNotFoundError:
        return "0"
