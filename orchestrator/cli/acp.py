"""`remit acp`: an editor on stdin and stdout has agents at work. Prints nothing but frames."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from orchestrator.cli.standing import Given, standing_options
from orchestrator.core.errors import ConfigError

__all__ = ["acp"]


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
                request, paths, kept, environ=os.environ, home=Path.home(), version=_version()
            )

            async def run() -> None:
                await serve(place, reads=0, writes=writes, limits=limits)

            anyio.run(run)
    finally:
        kept.close()


def _version() -> str:
    try:
        return version("remit")
    except PackageNotFoundError:
        return "0"
