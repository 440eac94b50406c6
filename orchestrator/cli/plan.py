"""`remit plan PIPELINE`: what a pipeline would do, as text, as data or as a picture. Starts no agent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import json_option, split_pairs
from orchestrator.cli.standing import allow_variable_option, approve_option

if TYPE_CHECKING:
    from orchestrator.pipelines.pictures import Picture

__all__ = ["PICTURES", "draw", "plan"]

PICTURES: Final = ("mermaid", "dot", "svg")
"""The forms of a picture."""


@click.command(short_help="Show what a pipeline would do.")
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", *PICTURES]),
    default="text",
    show_default=True,
    help="Text and JSON start the servers, to see their tools; a picture starts nothing.",
)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="Give an input.")
@click.option("--model", default="", metavar="PROVIDER:NAME", help="Use this model for all agents.")
@approve_option("this time")
@allow_variable_option
@json_option
@click.pass_context
def plan(
    context: click.Context,
    pipeline: Path,
    form: str,
    inputs: tuple[str, ...],
    model: str,
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what a pipeline would do: its steps, and what each agent may call and by which rule.

    A picture shows who waits for whom. It reads the pipeline's file alone: nothing has to be
    approved for it, and nothing is started.
    """
    from orchestrator.sessions.projects import project_of

    if form in PICTURES and not as_json:
        from orchestrator.pipelines.loading import load_pipeline
        from orchestrator.pipelines.pictures import picture_of

        spec = load_pipeline(pipeline, root=project_of(pipeline))
        click.echo(draw(picture_of(spec), form), nl=False)
        return
    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.running import Job, Output, carry_out
    from orchestrator.sessions.approvals import Origin

    harden_process()
    code = carry_out(
        Job(
            path=pipeline,
            origin=Origin.PROJECT,
            project=project_of(pipeline),
            inputs=split_pairs("--input", inputs),
            environ={},
            approve=approve,
            allow_variables=allow_variables,
            model=model,
            output=Output.JSON if as_json or form == "json" else Output.TEXT,
            dry_run=True,
        )
    )
    context.exit(code.value)


def draw(picture: Picture, form: str) -> str:
    """Return a picture in one of the forms."""
    from orchestrator.pipelines.pictures import as_dot, as_mermaid, as_svg

    return {"mermaid": as_mermaid, "dot": as_dot, "svg": as_svg}[form](picture)
