"""`remit audit show` and `query`: records of a run, for people and for programs. Never writes to one."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import print_text
from orchestrator.core.errors import RemitError, Where

if TYPE_CHECKING:
    from orchestrator.audit.record import Record

__all__ = ["query", "show"]

_RECORDS_MAX: Final = 1_000_000
_ONE_EACH: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON objects.")


@click.command(short_help="Print one record in full.")
@click.argument("seq", metavar="NUMBER", type=click.IntRange(min=0))
@click.argument("log", metavar="[RUN|PATH]", default="")
@_ONE_EACH
def show(seq: int, log: str, as_json: bool) -> None:
    """Print one record in full, by its number: all that it says, with what it is chained to."""
    from orchestrator.audit.read import as_json as record_json, read_records
    from orchestrator.cli.logs import find_log, reading

    path = find_log(log)
    with reading(path):
        found = next((record for record in read_records(path) if record.seq == seq), None)
    if found is None:
        raise RemitError(
            f"the log has no record {seq}", code="E-AUDIT-NO-RECORD", where=Where(str(path))
        )
    print_text(record_json(found) if as_json else _whole(found))


@click.command(short_help="Print records of a kind, of an agent, of a server.")
@click.argument("log", metavar="[RUN|PATH]", default="")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="May be given several times.")
@click.option("--agent", default="", metavar="AGENT")
@click.option("--server", default="", metavar="SERVER")
@click.option("--call", default="", metavar="CALL", help="All that became of one call.")
@click.option(
    "--limit",
    "-n",
    "count",
    default=1_000,
    show_default=True,
    type=click.IntRange(min=1, max=_RECORDS_MAX),
    help="The most that are printed.",
)
@_ONE_EACH
def query(
    log: str,
    kinds: tuple[str, ...],
    agent: str,
    server: str,
    call: str,
    count: int,
    as_json: bool,
) -> None:
    """Print the records that have everything that is asked for, oldest first.

    `verify` tells whether they can be trusted.
    """
    from orchestrator.audit.kinds import AuditKind
    from orchestrator.audit.read import as_json as record_json, read_records, render, select
    from orchestrator.cli.logs import find_log, reading
    from orchestrator.core.nearest import did_you_mean

    known = [kind.value for kind in AuditKind]
    for kind in kinds:
        if kind not in known:
            raise click.UsageError(f"there is no kind {kind!r}{did_you_mean(kind, known)}")
    path = find_log(log)
    with reading(path):
        wanted = select(read_records(path), kinds=kinds, agent=agent, server=server, call=call)
        for record in islice(wanted, count):
            click.echo(record_json(record) if as_json else render(record))


def _whole(record: Record) -> str:
    import json

    values = {"seq": record.seq, "time": record.time, "kind": record.kind, **record.fields}
    values |= {"prev": record.prev, "hash": record.hash}
    width = max(map(len, values))
    return "\n".join(f"{name:<{width}}  {json.dumps(value)}" for name, value in values.items())
