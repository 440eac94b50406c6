"""`remit shell`: a conversation with the parent's own agent on a terminal. Its work stands in the surface."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import print_text
from orchestrator.cli.standing import Given, model_of, standing_options
from orchestrator.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.agents.events import AgentEvent
    from orchestrator.sessions.standing import StandingRequest

__all__ = ["shell"]


@click.command(short_help="Talk with your own agent, over the servers there are.")
@standing_options(span="this session")
@click.option("--name", default=None, metavar="NAME", help="Keep the conversation under this name.")
@click.pass_context
def shell(
    context: click.Context,
    given: Given,
    name: str | None,
) -> None:
    """Talk with your own agent. `/help` shows the commands; Ctrl-C stops a turn, twice ends the shell.

    What is not approved is left out, and said.
    """
    import anyio

    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.exporting import exported_telemetry

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "the shell needs a terminal",
            code="E-SHELL-TERMINAL",
            fix='use remit ask "…" in a script',
        )
    harden_process()
    request = replace(given.request(), leave_out=True, record=name)
    with exported_telemetry() as telemetry:
        anyio.run(_talk, replace(request, telemetry=telemetry))
    context.exit(ExitCode.OK.value)


async def _talk(request: StandingRequest) -> None:
    import os
    from functools import partial

    from orchestrator.cli.terminal import browser_here, person_here
    from orchestrator.sessions.standing import open_standing
    from orchestrator.sessions.state import StatePaths
    from orchestrator.surfaces.progress import event_line
    from orchestrator.surfaces.shell import ShellParts, run_shell

    paths = StatePaths.from_environment(os.environ)
    person = person_here(paths, questions=sys.stdout)
    heard: list[Callable[[AgentEvent], None]] = []

    def hear(event: AgentEvent) -> None:
        for listener in heard:
            listener(event)

    opening = open_standing(
        request,
        environ=os.environ,
        home=Path.home(),
        approver=person,
        person=person,
        confirm=person.confirm_items,
        login=partial(browser_here, tell=print_text),
        on_event=hear,
    )
    async with opening as standing:
        agent = standing.session.assistant(
            model=model_of(standing), budget=standing.settings.budget
        )
        parts = ShellParts(
            standing=standing,
            agent=agent,
            person=person,
            history=paths.history,
            environ=os.environ,
            line_of=event_line,
        )
        async with run_shell(parts) as running:
            heard.append(running.hear)
            await running.run()
