"""`remit policy always`: shows what a person lets through always, and takes it back. Permits nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.groups import LazyCommand, LazyGroup
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from orchestrator.sessions.always import AlwaysFile

__all__ = ["always", "list_kept", "revoke"]

_ROOM = "orchestrator.cli.policy.always"

always = LazyGroup(
    "always",
    {
        "list": LazyCommand(f"{_ROOM}:list_kept", "Show what you let through always."),
        "revoke": LazyCommand(f"{_ROOM}:revoke", "Take one of these permits back."),
    },
    short_help="Show, and take back, what you let through always.",
    help="Show, and take back, what you let through always.",
)
"""`remit policy always`: its commands."""


@click.command("list", short_help="Show what you let through always.")
@json_option
@click.pass_context
def list_kept(context: click.Context, as_json: bool) -> None:
    """Show what you let through always, in every project, as it stands in your file."""
    kept = _file().all()
    if as_json:
        print_json({"permits": [{"id": each.id, "text": each.text} for each in kept]})
    else:
        for each in kept:
            print_text(each.text.rstrip())
        if not kept:
            print_text("nothing is let through always", to_stderr=True)
    context.exit(ExitCode.OK.value)


@click.command(short_help="Take one of these permits back.")
@click.argument("name", metavar="ID")
@json_option
@click.pass_context
def revoke(context: click.Context, name: str, as_json: bool) -> None:
    """Take one permit back, by its id. Sessions that run ask again from the next call on."""
    gone = _file().revoke(name)
    if as_json:
        print_json({"revoked": gone.id})
    else:
        print_text(f"revoked: {gone.id}")
    context.exit(ExitCode.OK.value)


def _file() -> AlwaysFile:
    from orchestrator.sessions.always import AlwaysFile
    from orchestrator.sessions.state import StatePaths

    return AlwaysFile(StatePaths.from_environment(os.environ), Path.cwd())
