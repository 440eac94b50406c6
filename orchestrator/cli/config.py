"""`remit config show`: what is set, and which file set it. Approves nothing, and shows no server."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.cli.standing import no_project_option
from orchestrator.core.errors import ExitCode

__all__ = ["config", "show"]


@click.group(cls=Group, short_help="Look at what is set.")
def config() -> None:
    """Look at what is set."""


@config.command(short_help="Show what is set, and which file set it.")
@click.option("--origin", is_flag=True, help="With the file and the line of each value.")
@no_project_option
@json_option
@click.pass_context
def show(context: click.Context, origin: bool, no_project: bool, as_json: bool) -> None:
    """Show what is set by your `config.toml` and the project's `remit.toml`.

    The project's counts once it is approved; until then it is shown as pending.
    """
    import os

    from orchestrator.sessions.approvals import ApprovalState, ApprovalStore
    from orchestrator.sessions.projects import project_of
    from orchestrator.sessions.settings import PROFILE_FILE, PROJECT_FILE, Settings, merge_settings
    from orchestrator.sessions.standing import standing_settings
    from orchestrator.sessions.state import StatePaths

    paths = StatePaths.from_environment(os.environ)
    project = project_of(Path.cwd() / PROJECT_FILE).resolve()
    mine, theirs = standing_settings(paths, project, with_project=not no_project)
    state = ApprovalState.APPROVED
    if theirs.item is not None:
        state = ApprovalStore(paths.approvals).book(project).state(theirs.item)
    counted = theirs if state is ApprovalState.APPROVED else Settings()
    merged = merge_settings(mine, counted)
    rows = [
        {"name": item.name, "value": item.value, "where": str(item.where)}
        for item in merged.origins
    ]
    if as_json:
        print_json({"settings": rows, "project": state.value if theirs.item else "none"})
    else:
        for row in rows:
            place = f"  ({row['where']})" if origin else ""
            print_text(f"{row['name']} = {row['value']}{place}")
        if not rows:
            print_text(
                f"nothing is set; yours stands in {paths.config / PROFILE_FILE}", to_stderr=True
            )
        if state is not ApprovalState.APPROVED and theirs.item is not None:
            print_text(
                f"{project / PROJECT_FILE} is {state.value} and sets nothing", to_stderr=True
            )
    context.exit(ExitCode.OK.value)
