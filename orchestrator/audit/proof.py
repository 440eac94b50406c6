"""Proofs that one record is in a log, for somebody who has no log: made, and checked. Shows no other record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.audit.chain import Head
from orchestrator.audit.merkle import HASH_BYTES, inclusion_path, root_from_path
from orchestrator.audit.record import BadRecordError, decode
from orchestrator.audit.signing import is_signed_by
from orchestrator.core.documents import Document, Table

__all__ = ["PROOF_FORMAT", "Proof", "prove"]

PROOF_FORMAT: Final = "remit-audit-proof/1"
"""Named in each proof."""
_PATH_MAX: Final = 64
"""Hashes of a path: one for each doubling of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One record of a run, the path from it to a root, and the checkpoint that signs the root.

    `record` is the line without its newline.
    """

    run: str
    record: str
    path: tuple[str, ...]
    head: Head

    def fault(self, key: str) -> str:
        """Return why it proves nothing to somebody who trusts `key` (hexadecimal); empty if it does."""
        try:
            record = decode(self.record.encode())
            path = [bytes.fromhex(each) for each in self.path]
            leaf = bytes.fromhex(record.hash)
        except (BadRecordError, ValueError):
            return "the record is not as it was written"
        if any(len(each) != HASH_BYTES for each in path) or len(path) > _PATH_MAX:
            return "the path holds what is no hash"
        root = root_from_path(leaf, record.seq, self.head.size, path)
        if root is None or root.hex() != self.head.root:
            return "the record is not among those of the checkpoint"
        if not is_signed_by(self.head, self.run, key):
            return "the checkpoint is not signed by that key"
        return ""

    def to_json(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "format": PROOF_FORMAT,
            "run": self.run,
            "record": self.record,
            "path": list(self.path),
            "seq": self.head.seq,
            "hash": self.head.hash,
            "root": self.head.root,
            "key": self.head.key,
            "signature": self.head.signature,
        }

    @classmethod
    def from_json(cls, document: Document) -> Proof:
        """Read what `to_json` made. Raises ConfigError, with the place, for anything else."""
        root = document.table()
        root.only(("format", "run", "record", "path", "seq", "hash", "root", "key", "signature"))
        if root.text("format") != PROOF_FORMAT:
            raise root.error("a proof of another format", "format")
        return cls(
            run=root.text("run"),
            record=root.text("record"),
            path=root.strings("path"),
            head=_head(root),
        )


def prove(lines: Iterable[bytes], seq: int, head: Head, run: str) -> Proof | None:
    """Return the proof that record `seq` is among those of a checkpoint; None if it is not there.

    `lines` are those of a log that was verified against `head`.
    """
    hashes: list[bytes] = []
    wanted = ""
    for number, line in enumerate(lines):
        if number == head.size:
            break
        text = line.decode("ascii").rstrip("\n")
        hashes.append(bytes.fromhex(text[-66:-2]))
        if number == seq:
            wanted = text
    if not wanted:
        return None
    path = tuple(each.hex() for each in inclusion_path(hashes, seq))
    return Proof(run=run, record=wanted, path=path, head=head)


def _head(root: Table) -> Head:
    return Head(
        root.integer("seq"),
        root.text("hash"),
        root=root.text("root"),
        key=root.text("key"),
        signature=root.text("signature"),
    )
