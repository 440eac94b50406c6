"""`remit shell`: a conversation with the parent's own agent on a terminal. Its work stands in the surface."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import print_text
from orchestrator.core.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.agents.events import AgentEvent
    from orchestrator.sessions.entries import ServerEntry
    from orchestrator.sessions.standing import StandingRequest
    from orchestrator.surfaces.login import LoopbackStep

__all__ = ["shell"]


@click.command(short_help="Talk with your own agent, over the servers there are.")
@click.option("--model", default="", metavar="PROVIDER:NAME", help="Who answers.")
@click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The project's servers file; by default `.mcp.json` of the project we stand in.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Policy files in place of those that are set. May be given several times.",
)
@click.option(
    "--approve", multiple=True, metavar="NAME@DIGEST", help="Approve this, for this session."
)
@click.option(
    "--allow-variable",
    "allow_variables",
    multiple=True,
    metavar="NAME",
    help="Let the project's servers file use this environment variable.",
)
@click.option("--no-project", is_flag=True, help="Look at nothing that comes with the project.")
@click.option("--name", default=None, metavar="NAME", help="Keep the conversation under this name.")
@click.pass_context
def shell(
    context: click.Context,
    model: str,
    servers: Path | None,
    policies: tuple[Path, ...],
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
    no_project: bool,
    name: str | None,
) -> None:
    """Talk with your own agent. `/help` shows the commands; Ctrl-C stops a turn, twice ends the shell.

    What is not approved is left out, and said.
    """
    import anyio

    from mcp_client.transports.stdio import harden_process
    from orchestrator.sessions.standing import StandingRequest

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "the shell needs a terminal",
            code="E-SHELL-TERMINAL",
            fix='use remit ask "…" in a script',
        )
    harden_process()
    request = StandingRequest(
        servers=servers,
        policies=policies,
        model=model,
        with_project=not no_project,
        leave_out=True,
        approve=approve,
        allow_variables=allow_variables,
        record=name,
    )
    anyio.run(_talk, request)
    context.exit(ExitCode.OK.value)


async def _talk(request: StandingRequest) -> None:
    import os

    from orchestrator.sessions.ports import SystemClock
    from orchestrator.sessions.standing import open_standing
    from orchestrator.sessions.state import StatePaths, keep_shown
    from orchestrator.surfaces.consent import TerminalApprover
    from orchestrator.surfaces.login import browser_opener
    from orchestrator.surfaces.progress import event_line
    from orchestrator.surfaces.shell import ShellParts, run_shell

    paths = StatePaths.from_environment(os.environ)
    person = TerminalApprover(
        answers=sys.stdin,
        questions=sys.stdout,
        now=SystemClock.now,
        keep=lambda shown: keep_shown(paths.shown, shown),
        open_url=browser_opener(),
    )
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
        login=_at_browser,
        on_event=hear,
    )
    async with opening as standing:
        if standing.model is None:
            raise ConfigError(
                "nobody is there to answer: no model is set",
                code="E-ASK-MODEL",
                fix='name one with --model openai:gpt-5-mini, or write model = "…" into config.toml',
            )
        agent = standing.session.assistant(model=standing.model, budget=standing.settings.budget)
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


def _at_browser(entry: ServerEntry) -> LoopbackStep:
    """Return who has the person at this terminal consent to a login."""
    from orchestrator.surfaces.login import LoopbackStep, browser_opener

    return LoopbackStep(
        tell=print_text,
        open_url=browser_opener(),
        registered=entry.login.redirect_uri,
        port=entry.login.port,
    )
