"""`remit audit export` and `prove`: what somebody else needs to check a log. Never writes to one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import json_option, print_json, print_text
from orchestrator.core.errors import ExitCode, RemitError, Where

if TYPE_CHECKING:
    from orchestrator.audit.chain import Verification

__all__ = ["export", "prove"]

_PROOF_BYTES_MAX: Final = 256 * 1024
"""One record, and a hash for each doubling of a log."""


@click.command(short_help="Copy a log for somebody else to verify.")
@click.argument("log", metavar="[RUN|PATH]", default="")
@click.option(
    "--out",
    required=True,
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="A folder that does not exist yet.",
)
@json_option
def export(log: str, out: Path, as_json: bool) -> None:
    """Copy a log, in one file, with its signed checkpoint, once it has been verified.

    Whoever gets it runs `remit audit verify FOLDER --key KEY`; tell them the key by another way.
    """
    from orchestrator.audit.log import head_path
    from orchestrator.audit.read import log_lines
    from orchestrator.cli.logs import find_log, reading

    path = find_log(log)
    found = _verified(path)
    try:
        out.mkdir(parents=True)
        with reading(path), (out / "audit.jsonl").open("xb") as copy:
            copy.writelines(log_lines(path))
        if head_path(path).exists():
            (out / "audit.jsonl.head").write_bytes(head_path(path).read_bytes())
    except OSError as error:
        raise RemitError(
            f"cannot write {out}: {error.strerror}",
            code="E-AUDIT-EXPORT",
            fix="name a folder that does not exist yet",
        ) from error
    key = found.checkpoint.key if found.checkpoint is not None else ""
    if as_json:
        print_json({"out": str(out), "run": found.run, "records": found.records, "key": key})
    else:
        signed = f"signed by the key {key}" if key else "without a signature"
        print_text(f"{found.records} records of run {found.run}, {signed}\n{out}")


@click.command(short_help="Prove that one record is in a log, or check such a proof.")
@click.argument("seq", metavar="[NUMBER]", type=click.IntRange(min=0), required=False)
@click.argument("log", metavar="[RUN|PATH]", default="")
@click.option(
    "--check",
    "proof",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A proof to check instead; needs --key.",
)
@click.option("--key", default="", metavar="HEX", help="The public key that is trusted.")
@click.pass_context
def prove(context: click.Context, seq: int | None, log: str, proof: Path | None, key: str) -> None:
    """Print a proof that record NUMBER is in a log, as one JSON object.

    It holds that record, a path of hashes to the log's root, and the signature of the root, and
    nothing of any other record. With --check and --key a proof is checked: exit code 0 or 1.
    """
    if proof is not None:
        if seq is not None or not key:
            raise click.UsageError("--check takes a file and --key, and no number")
        context.exit(_check(proof, key))
    if seq is None:
        raise click.UsageError("which record? give its number, see `remit audit tail`")
    from orchestrator.audit.proof import prove as make
    from orchestrator.audit.read import log_lines
    from orchestrator.cli.logs import find_log, reading

    path = find_log(log)
    head = _verified(path).checkpoint
    if head is None or not head.signature or seq >= head.size:
        raise RemitError(
            f"no signed checkpoint covers record {seq}",
            code="E-AUDIT-NO-PROOF",
            why="the log was ended before one was made",
            where=Where(str(path)),
        )
    with reading(path):
        made = make(log_lines(path), seq, head, _verified(path).run)
    if made is not None:
        print_json(made.to_json())


def _check(path: Path, key: str) -> int:
    from orchestrator.audit.proof import Proof
    from orchestrator.cli.logs import reading
    from orchestrator.core.documents import read_json

    with reading(path), path.open("rb") as file:
        text = file.read(_PROOF_BYTES_MAX + 1)
    proof = Proof.from_json(read_json(text, str(path), bytes_max=_PROOF_BYTES_MAX))
    fault = proof.fault(key)
    print_text(f"bad: {fault}" if fault else f"ok: of run {proof.run}\n{proof.record}")
    return (ExitCode.FAILED if fault else ExitCode.OK).value


def _verified(path: Path) -> Verification:
    from orchestrator.audit.read import verify_file
    from orchestrator.cli.logs import own_key, reading

    with reading(path):
        found = verify_file(path, own_key(path))
    if not found.ok:
        raise RemitError(
            f"the log does not verify: line {found.first_bad}: {found.detail}",
            code="E-AUDIT-BAD",
            fix="see `remit audit verify`",
            where=Where(str(path)),
        )
    return found
