"""`remit runs`: the runs there are, and what ran of one. Reads the state folder; starts nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from orchestrator.cli.groups import Group
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.cli.plan import PICTURES, draw

if TYPE_CHECKING:
    from orchestrator.cli.past import PastRun

__all__ = ["list_runs", "runs", "show"]


@click.group(cls=Group, short_help="Look at the runs there were.")
def runs() -> None:
    """Look at the runs there were."""


@runs.command("list", short_help="List the runs and sessions, the newest first.")
@click.option(
    "-n", "--lines", "count", default=20, show_default=True, type=click.IntRange(0, 10_000),
    help="How many.",
)  # fmt: skip
@json_option
def list_runs(count: int, as_json: bool) -> None:
    """List the runs of pipelines and the sessions, the newest first.

    States: running; ended early (`remit run --resume` goes on with it); or how it ended, which of a
    session, of a shell or an editor say, its log tells: ended.
    """
    from orchestrator.cli.past import past_runs

    found = past_runs(count)
    if as_json:
        print_json({"runs": [_object(run) for run in found]})
    elif not found:
        print_text("there is no run yet", to_stderr=True)
    else:
        rows = [("run", "state", "steps", "pipeline"), *map(_row, found)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            print_text("  ".join(cells).rstrip())


@runs.command(short_help="Show what ran, step by step.")
@click.argument("run", metavar="RUN")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", *PICTURES]),
    default="text",
    show_default=True,
    help="A picture needs the pipeline's file as it was.",
)
@json_option
def show(run: str, form: str, as_json: bool) -> None:
    """Show what ran of a run, step by step."""
    from orchestrator.cli.past import past_run
    from orchestrator.pipelines.pictures import picture_of

    found = past_run(run)
    if as_json or form == "json":
        print_json({**_object(found), "states": dict(found.states)})
    elif form == "text":
        what = (
            found.pipeline or "a session: `remit report` and `remit audit` show what was done in it"
        )
        print_text(f"{found.name}: {found.state}, {what}")
        width = max(map(len, found.states), default=0)
        for step, state in found.states.items():
            print_text(f"  {step:<{width}}  {state}")
    else:
        spec = found.spec()
        click.echo(draw(picture_of(spec, found.states_of(spec)), form), nl=False)


def _object(run: PastRun) -> dict[str, object]:
    return {
        "run": run.name,
        "state": run.state,
        "pipeline": run.pipeline,
        "steps": len(run.states),
        "ended": run.ended,
    }


def _row(run: PastRun) -> tuple[str, ...]:
    steps = f"{run.ended}/{len(run.states)}" if run.pipeline else "-"
    return run.name, run.state, steps, run.pipeline or "(a session)"
