"""`remit gateway`: the snapshot of one agent as an MCP server, for a host that brings the model."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.cli.standing import Given, standing_options, tell
from orchestrator.core.errors import ConfigError

if TYPE_CHECKING:
    from orchestrator.agents.budget import Budget
    from orchestrator.sessions.standing import StandingRequest
    from orchestrator.surfaces.consent import TerminalApprover
    from orchestrator.surfaces.guests.http import Listening
    from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["gateway"]


@click.command(short_help="Serve an agent's snapshot to any MCP host.")
@click.argument("agent")
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve Streamable HTTP on this loopback port (0: any) in place of stdio.",
)
@standing_options(span="this call", model=False)
@click.option("--max-calls", type=click.IntRange(min=0), help="Answer at most so many calls.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), help="Answer nothing after so many seconds."
)
@json_option
def gateway(
    agent: str,
    port: int | None,
    given: Given,
    max_calls: int | None,
    timeout: float | None,
    as_json: bool,
) -> None:
    """Serve what AGENT may use, a definition or a role of the policy, to an MCP host.

    The host brings the model; each of its calls is decided, recorded and checked like any agent's.
    On stdio it ends when the host closes its end. With --http it prints the address and the header
    that a guest has to send, and ends on Ctrl-C. The host is never asked in a person's place: where a
    rule asks, a person at this terminal is (with --http), or the call is refused.
    """
    _require_extra()
    import logging

    import anyio

    from mcp_client.transports.stdio import harden_process
    from orchestrator.agents.budget import Budget
    from orchestrator.cli.exporting import exported_telemetry

    harden_process()
    # what libraries log may quote servers and addresses; what matters is in the audit log
    logging.disable(logging.CRITICAL)
    budget = Budget(calls=max_calls, seconds=timeout)
    try:
        with exported_telemetry() as telemetry:
            request = replace(given.request(), telemetry=telemetry)
            anyio.run(_open, agent, request, budget, port, as_json)
    finally:
        logging.disable(logging.NOTSET)


def _require_extra() -> None:
    if find_spec("mcp") is None or find_spec("uvicorn") is None:
        raise ConfigError(
            "the gateway needs the official SDK's server",
            code="E-GATEWAY-EXTRA",
            fix='pip install "remit[gateway]"',
        )


async def _open(
    agent: str, request: StandingRequest, budget: Budget, port: int | None, as_json: bool
) -> None:
    import os

    from orchestrator.cli.terminal import person_here
    from orchestrator.sessions.standing import open_standing
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.guests.inviting import invite

    person: TerminalApprover | None = None
    if port is not None:  # on stdio nobody is asked: both ends belong to the host
        paths = StatePaths.from_environment(os.environ)
        person = person_here(paths)
    async with (
        open_standing(
            request,
            environ=os.environ,
            home=Path.home(),
            approver=person,
            confirm=person.confirm_items if person is not None and person.interactive else None,
        ) as standing,
        invite(standing.session, agent, budget=budget) as view,
    ):
        tell(standing.notices)
        await _serve_until_told(view, port, as_json)


async def _serve_until_told(view: SnapshotView, port: int | None, as_json: bool) -> None:
    """Serve until the host has gone or a signal comes; what is open is then closed as at any end."""
    import signal

    import anyio

    from orchestrator.core.groups import ungrouped

    with ungrouped():
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                    async for _ in signals:
                        group.cancel_scope.cancel()

            group.start_soon(stop)
            await _serve(view, port, as_json)
            group.cancel_scope.cancel()


async def _serve(view: SnapshotView, port: int | None, as_json: bool) -> None:
    from orchestrator.surfaces.guests.gateway import gateway_server
    from orchestrator.surfaces.guests.http import open_listening, serve_http
    from orchestrator.surfaces.guests.stdio import serve_lines

    server = gateway_server(view)
    if port is None:
        await serve_lines(server, sys.stdin.fileno(), sys.stdout.fileno())
        return
    try:
        listening = open_listening(port)
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be listened on: {error.strerror}",
            code="E-GATEWAY-PORT",
            fix="name another one, or --http 0 for any that is free",
        ) from error
    with listening.socket:
        _show(listening, as_json)
        await serve_http(server, listening)


def _show(listening: Listening, as_json: bool) -> None:
    """Print what a host is told; the handle stands nowhere else."""
    headers = {"Authorization": listening.authorization}
    if as_json:
        print_json({"type": "http", "url": listening.url, "headers": headers})
    else:
        print_text(listening.url)
        print_text(f"Authorization: {listening.authorization}")
    sys.stdout.flush()
