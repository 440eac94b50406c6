"""`remit run PIPELINE`: run a pipeline, or show what it would do."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import json_option, split_pairs

__all__ = ["run"]


@click.command(short_help="Run a pipeline of agents.")
@click.argument("pipeline", type=click.Path(path_type=Path))
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="Give an input.")
@click.option("--dry-run", is_flag=True, help="Show every agent's tools and rules; start no agent.")
@click.option("--model", default="", metavar="PROVIDER:NAME", help="Use this model for all agents.")
@click.option("--approve", multiple=True, metavar="NAME@DIGEST", help="Approve this, for this run.")
@click.option(
    "--allow-variable",
    "allow_variables",
    multiple=True,
    metavar="NAME",
    help="Let the project's servers file use this environment variable.",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Put the agents' output there."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json-lines", is_flag=True, help="Print every event as a JSON object on a line.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    pipeline: Path,
    inputs: tuple[str, ...],
    dry_run: bool,
    model: str,
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
    out: Path | None,
    quiet: bool,
    json_lines: bool,
    as_json: bool,
) -> None:
    """Run a pipeline of agents over MCP servers.

    What comes with a project (the pipeline, its servers, policies and recipes) takes effect only
    once it is approved: on a terminal by answering, elsewhere with --approve. So does what a
    server says of its tools, when it is seen for the first time or has changed.
    """
    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.running import Job, Output, carry_out
    from orchestrator.sessions.approvals import Origin
    from orchestrator.sessions.projects import project_of

    harden_process()
    output = Output.JSON if as_json else Output.TEXT
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
            out=out,
            output=Output.JSON_LINES if json_lines else output,
            quiet=quiet,
            dry_run=dry_run,
        )
    )
    context.exit(code.value)
