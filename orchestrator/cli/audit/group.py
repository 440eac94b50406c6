"""`remit audit`: its commands by name; verifies the record of a run, and follows it. Never writes to one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.groups import LazyCommand, LazyGroup
from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.audit.chain import Verification
    from orchestrator.audit.record import Record

__all__ = ["audit", "tail", "verify"]

_LOG = click.argument("log", metavar="[RUN|PATH]", default="")
_LINES_MAX: Final = 100_000
_SECONDS_BETWEEN_LOOKS: Final = 0.2
_HASH_SHOWN: Final = 12


@click.command(short_help="Find the first record that is not as it was written.")
@_LOG
@click.option(
    "--key",
    default="",
    metavar="HEX",
    help="The public key that the log's checkpoint has to be signed by.",
)
@json_option
@click.pass_context
def verify(context: click.Context, log: str, key: str, as_json: bool) -> None:
    """Find the first record that is not as it was written.

    Exit code 1 if there is one. A last line that was not finished is told, and no error: the
    writer was ended in the middle of it. The checkpoint of a log in the state folder has to be
    signed by the key there, that of any other log by `--key`, where it is given.
    """
    from orchestrator.audit.read import verify_file
    from orchestrator.cli.logs import find_log, own_key, reading

    path = find_log(log)
    with reading(path):
        found = verify_file(path, key or own_key(path), demanded=bool(key))
    if as_json:
        print_json({**_verification_object(found), "path": str(path)})
    else:
        print_text(_verification_text(found, path))
    context.exit((ExitCode.OK if found.ok else ExitCode.FAILED).value)


@click.command(short_help="Print the last records, one line each.")
@_LOG
@click.option(
    "-n",
    "--lines",
    "count",
    default=20,
    show_default=True,
    type=click.IntRange(min=0, max=_LINES_MAX),
    help="How many.",
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the run has ended.")
@click.option("--json", "as_json", is_flag=True, help="Print each record as one JSON object.")
def tail(log: str, count: int, follow: bool, as_json: bool) -> None:
    """Print the last records, one line each. `verify` tells whether they can be trusted."""
    import time

    from orchestrator.audit.read import (
        as_json as record_json,
        read_records,
        render,
        tail as last_of,
    )
    from orchestrator.cli.logs import find_log, follow_records, reading

    path = find_log(log)
    records: Iterator[Record]
    with reading(path):
        if follow:
            records = follow_records(path, count, wait=lambda: time.sleep(_SECONDS_BETWEEN_LOOKS))
        else:
            records = iter(last_of(read_records(path), count))
        for record in records:
            click.echo(record_json(record) if as_json else render(record))


audit: Final = LazyGroup(
    "audit",
    {
        "verify": LazyCommand(
            "orchestrator.cli.audit.group:verify",
            "Find the first record that is not as it was written.",
        ),
        "tail": LazyCommand("orchestrator.cli.audit.group:tail", "Print the last records."),
        "show": LazyCommand("orchestrator.cli.audit.reading:show", "Print one record in full."),
        "query": LazyCommand("orchestrator.cli.audit.reading:query", "Print records of a kind."),
        "export": LazyCommand(
            "orchestrator.cli.audit.proving:export", "Copy a log for somebody else to verify."
        ),
        "prove": LazyCommand(
            "orchestrator.cli.audit.proving:prove", "Prove that one record is in a log."
        ),
        "replay": LazyCommand(
            "orchestrator.cli.audit.replay:replay", "Decide a run's calls again, and compare."
        ),
    },
    short_help="Verify and read the record of a run.",
    help="Verify and read the record of a run: by default that of the newest one.",
)
"""The group of commands."""


def _verification_text(found: Verification, path: Path) -> str:
    lines = [
        f"ok: {found.records} records of run {found.run}, up to {found.head.hash[:_HASH_SHOWN]}"
    ]
    if not found.ok:
        reason = found.reason.value if found.reason is not None else "bad"
        lines = [
            f"bad: line {found.first_bad}: {reason}: {found.detail}",
            f"the {found.records} records before it stand",
        ]
    elif found.torn_tail:
        lines.append("the last line is not finished: the writer was ended in the middle of it")
    elif not found.complete:
        lines.append("the run has not ended, or its end was not recorded")
    if found.ok and found.checkpoint is None:
        lines.append("no checkpoint was kept: what is cut from its end is not found")
    elif found.ok and found.checkpoint is not None:
        by = found.checkpoint.key
        signed = f"signed by {by[:_HASH_SHOWN]}" if by else "not signed"
        lines.append(f"checkpoint at record {found.checkpoint.seq}, {signed}")
    return "\n".join([*lines, str(path)])


def _verification_object(found: Verification) -> dict[str, object]:
    return {
        "ok": found.ok,
        "run": found.run,
        "records": found.records,
        "first_bad": found.first_bad,
        "reason": found.reason.value if found.reason is not None else "",
        "detail": found.detail,
        "torn_tail": found.torn_tail,
        "complete": found.complete,
        "head": {"seq": found.head.seq, "hash": found.head.hash, "root": found.head.root},
        "checkpoint": found.checkpoint.seq if found.checkpoint is not None else None,
        "signed_by": found.checkpoint.key if found.checkpoint is not None else "",
    }
