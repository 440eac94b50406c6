"""`remit report RUN`: one HTML file about a run, for people to keep and hand on. Starts nothing."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import json_option, print_json, print_text

__all__ = ["report"]


@click.command(short_help="Write the report of a run.")
@click.argument("run", metavar="[RUN]", default="")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file; by default report.html in the run's folder.",
)
@json_option
def report(run: str, out: Path | None, as_json: bool) -> None:
    """Write the report of a run, by default of the newest: one HTML file that loads nothing.

    It has the timeline, the plan, what was turned down with the bytes that were sent, what people
    were asked, and what it cost. No argument, result, address or secret is in it.
    """
    from orchestrator.cli.logs import reading
    from orchestrator.cli.past import find_run
    from orchestrator.cli.reporting import page_of
    from orchestrator.core.errors import RemitError, Where

    paths = find_run(run)
    file = out or paths.folder / "report.html"
    with reading(paths.audit):
        page = page_of(paths)
    try:
        file.write_text(page, "utf-8")
    except OSError as error:
        raise RemitError(
            f"cannot write the report: {error.strerror}",
            code="E-REPORT-IO",
            fix="name another file with --out",
            where=Where(str(file)),
        ) from error
    if as_json:
        print_json({"run": paths.folder.name, "report": str(file)})
    else:
        print_text(str(file))
