"""The hash chain: links records as they are made, and finds what was done to them since. No file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.merkle import MerkleTree
from orchestrator.audit.record import (
    CHAIN_START,
    FORMAT,
    BadRecordError,
    Record,
    begin,
    chained,
    reread,
)

__all__ = ["BadReason", "Chain", "Head", "Verification", "verify"]


@dataclass(frozen=True, slots=True)
class Head:
    """A point of a chain, kept apart from the log: the log cannot be cut behind it unnoticed.

    `root` is the Merkle root (RFC 6962) over the hashes of all records up to it, in hexadecimal;
    `key` the public key of `signature`. Both of these are empty where nobody signed.
    """

    seq: int
    hash: str
    root: str = ""
    key: str = ""
    signature: str = ""

    @property
    def size(self) -> int:
        """How many records there are up to it."""
        return self.seq + 1


class Chain:
    """Where the next record of one log is linked to."""

    def __init__(self) -> None:
        self._begun = 0
        self._linked = 0
        self._last = CHAIN_START
        self.time = 0.0
        """The time of the last record that was begun."""

    @property
    def head(self) -> Head:
        """The last record that was linked; `seq` is -1 before the first."""
        return Head(self._linked - 1, self._last)

    @staticmethod
    def opening(run: str) -> Mapping[str, object]:
        """Return the fields of the first record, of kind `log_opened`."""
        return {"format": FORMAT, "run": run}

    def begin(self, kind: str, time: float, fields: Mapping[str, object]) -> str:
        """Return the next record, for `link`. Raises ValueError as `record.begin`; none is begun then."""
        text = begin(self._begun, time, kind, fields)
        self.time = time
        self._begun += 1
        return text

    def link(self, begun: Sequence[str]) -> tuple[bytes, Sequence[str]]:
        """Return the lines of records, in the order in which they were begun, and the hash of each.

        One after the other in one go: a hash in between other work costs half as much again.
        """
        lines, hashes = chained(begun, self._last)
        if hashes:
            self._last = hashes[-1]
        self._linked += len(hashes)
        return lines, hashes


class BadReason(Enum):
    """What is wrong with a log."""

    NOT_A_RECORD = "not_a_record"
    """A line is not a record as one was ever written: edited, or something else."""
    BROKEN_LINK = "broken_link"
    """A record does not follow the one before it: something was dropped, put in or moved."""
    BAD_START = "bad_start"
    """The first record is not the first record of a log of this format."""
    CUT_SHORT = "cut_short"
    """The log ends before a checkpoint that was kept apart from it."""
    OTHER_CHAIN = "other_chain"
    """At the checkpoint stands another record than the one that was kept: it was written anew."""
    BAD_SIGNATURE = "bad_signature"
    """The checkpoint is not signed by the key that it has to be signed by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What was found.

    Attributes:
        ok: nothing contradicts the log, up to its last whole record.
        records: whole records that stand, from the start.
        first_bad: the line of the first that does not, from 1; 0 if all do.
        reason: what is wrong with it.
        detail: the same in words, without anything out of the log.
        torn_tail: the last line was not finished: the writer ended in the middle of a write.
        complete: the last record says that the run ended.
        run: the run that the first record names.
        head: the last record that stands, with the root over all that do.
        checkpoint: what was kept apart from the log, if anything was.
    """

    ok: bool
    records: int
    first_bad: int = 0
    reason: BadReason | None = None
    detail: str = ""
    torn_tail: bool = False
    complete: bool = False
    run: str = ""
    head: Head = Head(-1, CHAIN_START)
    checkpoint: Head | None = None


def verify(lines: Iterable[bytes], checkpoint: Head | None = None) -> Verification:
    """Go through a log, line by line, newlines included, up to the first thing that is wrong.

    Any edit, drop, insertion or change of order is found. Records taken from the end are found
    only behind `checkpoint`; whoever can write the log and the checkpoint can write both anew.
    """
    records = 0
    tree = MerkleTree()
    last: Record | None = None
    run = ""
    torn = False

    def found(reason: BadReason, detail: str, line: int) -> Verification:
        return Verification(
            ok=False,
            records=records,
            first_bad=line,
            reason=reason,
            detail=detail,
            run=run,
            head=_head(last, tree),
            checkpoint=checkpoint,
        )

    for number, line in enumerate(lines, start=1):
        if torn:
            return found(BadReason.NOT_A_RECORD, "a line in the middle is unfinished", number - 1)
        if not line.endswith(b"\n"):
            torn = True
            continue
        try:
            record = reread(line, records, last.hash if last is not None else CHAIN_START)
        except BadRecordError as error:
            return found(BadReason.NOT_A_RECORD, str(error), number)
        tree.add(bytes.fromhex(record.hash))
        wrong = _wrong_link(last, record) or _other_than(checkpoint, record, tree)
        if wrong is not None:
            return found(*wrong, number)
        if last is None:
            run = str(record.fields.get("run", ""))
        last = record
        records += 1
    if checkpoint is not None and checkpoint.seq >= records:
        detail = f"record {checkpoint.seq} was kept at a checkpoint and is not there any more"
        return found(BadReason.CUT_SHORT, detail, records + 1)
    return Verification(
        ok=True,
        records=records,
        torn_tail=torn or not records,
        complete=not torn and last is not None and last.kind == AuditKind.RUN_ENDED,
        run=run,
        head=_head(last, tree),
        checkpoint=checkpoint,
    )


def _head(last: Record | None, tree: MerkleTree) -> Head:
    if last is None:
        return Head(-1, CHAIN_START)
    return Head(last.seq, last.hash, root=tree.root().hex())


def _wrong_link(last: Record | None, record: Record) -> tuple[BadReason, str] | None:
    if last is None:
        is_start = record.seq == 0 and record.prev == CHAIN_START
        if record.kind != AuditKind.LOG_OPENED or record.fields.get("format") != FORMAT:
            is_start = False
        if not is_start:
            return BadReason.BAD_START, f"not the first record of a log of format {FORMAT}"
    elif record.seq != last.seq + 1 or record.prev != last.hash:
        return BadReason.BROKEN_LINK, f"it does not follow record {last.seq}"
    return None


def _other_than(
    checkpoint: Head | None, record: Record, tree: MerkleTree
) -> tuple[BadReason, str] | None:
    if checkpoint is None or checkpoint.seq != record.seq:
        return None
    if checkpoint.hash != record.hash:
        return BadReason.OTHER_CHAIN, "it is not the record that was kept at the checkpoint"
    if checkpoint.root and checkpoint.root != tree.root().hex():
        return BadReason.OTHER_CHAIN, "the records up to it have another root than the checkpoint"
    return None
