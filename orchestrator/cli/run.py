"""`remit run PIPELINE`: run a pipeline, or show what it would do."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import inbox_option, json_option, split_pairs
from orchestrator.cli.standing import allow_variable_option, approve_option

__all__ = ["run"]


@click.command(short_help="Run a pipeline of agents.")
@click.argument("pipeline", type=click.Path(path_type=Path), required=False)
@click.option("--input", "inputs", multiple=True, metavar="NAME=VALUE", help="Give an input.")
@click.option("--dry-run", is_flag=True, help="Show every agent's tools and rules; start no agent.")
@click.option("--model", default="", metavar="PROVIDER:NAME", help="Use this model for all agents.")
@approve_option("this run")
@allow_variable_option
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), help="Put the agents' output there."
)
@click.option(
    "--resume", "run_id", default="", metavar="RUN", help="Go on with a run that ended early."
)
@click.option(
    "--settle",
    multiple=True,
    metavar="CALL=HOW",
    help="What became of a call in doubt: repeat, lost or answered:TEXT.",
)
@click.option("--restart", multiple=True, metavar="STEP", help="Do all of this step once more.")
@click.option(
    "--pass", "passes", multiple=True, metavar="STEP@DIGEST", help="Say yes at this gate."
)
@inbox_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.option("--json-lines", is_flag=True, help="Print every event as a JSON object on a line.")
@json_option
@click.pass_context
def run(
    context: click.Context,
    pipeline: Path | None,
    inputs: tuple[str, ...],
    dry_run: bool,
    model: str,
    approve: tuple[str, ...],
    allow_variables: tuple[str, ...],
    out: Path | None,
    run_id: str,
    settle: tuple[str, ...],
    restart: tuple[str, ...],
    passes: tuple[str, ...],
    inbox: bool,
    quiet: bool,
    json_lines: bool,
    as_json: bool,
) -> None:
    """Run a pipeline of agents over MCP servers.

    What comes with a project (the pipeline, its servers, policies and recipes) takes effect only
    once it is approved: on a terminal by answering, elsewhere with --approve. So does what a
    server says of its tools, when it is seen for the first time or has changed.

    A run that ended early goes on with --resume: nothing that was done is done again, and
    everything that is left is decided by today's policy and approvals.
    """
    from mcp_client.transports.stdio import harden_process
    from orchestrator.cli.resuming import TakenUp
    from orchestrator.cli.running import Job, Output, carry_out
    from orchestrator.core.ids import RunId
    from orchestrator.sessions.approvals import Origin
    from orchestrator.sessions.projects import project_of

    harden_process()
    _refuse_mixed(pipeline, run_id, (*inputs, model, out, dry_run), (*settle, *restart))
    taken_up = TakenUp(
        run=RunId(run_id),
        settle=split_pairs("--settle", settle),
        restart=frozenset(restart),
        passes=frozenset(passes),
    )
    path = pipeline or Path()
    output = Output.JSON if as_json else Output.TEXT
    code = carry_out(
        Job(
            path=path,
            origin=Origin.PROJECT,
            project=project_of(path),
            inputs=split_pairs("--input", inputs),
            environ={},
            approve=approve,
            allow_variables=allow_variables,
            model=model,
            out=out,
            output=Output.JSON_LINES if json_lines else output,
            quiet=quiet,
            dry_run=dry_run,
            passes=frozenset(passes),
            inbox=inbox,
            taken_up=taken_up if run_id else None,
        )
    )
    context.exit(code.value)


def _refuse_mixed(
    pipeline: Path | None, run_id: str, fixed: tuple[object, ...], later: tuple[str, ...]
) -> None:
    """Raise UsageError for options that mean nothing together."""
    if run_id and (pipeline is not None or any(fixed)):
        raise click.UsageError(
            "--resume takes pipeline, inputs, model and output folder from the run itself"
        )
    if not run_id and pipeline is None:
        raise click.UsageError("name a pipeline's file, or a run with --resume")
    if not run_id and later:
        raise click.UsageError("--settle and --restart are for a run with --resume")
