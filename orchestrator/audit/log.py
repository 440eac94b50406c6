"""The audit log of one run as a file: appends, and says what is kept. Does not read it back.

What is kept, and when: `append` takes a record into memory, without a system call. `flush` chains
everything appended and hands it to the kernel in one write, before the bytes that the records are
about: it survives the death of this process, `kill -9` included. Every CHECKPOINT_RECORDS records, and every
CHECKPOINT_SECONDS, `flush` also replaces the head of the chain, signed, in a file of its own: the log
cannot be cut behind it unnoticed. `checkpoint` and `close` do the same and wait for the disk: what
stands there then survives the loss of power.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from orchestrator.audit.chain import Chain, Head
from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.merkle import MerkleTree
from orchestrator.audit.record import LINK_BYTES
from orchestrator.audit.signing import Signer
from orchestrator.core.documents import canonical_bytes
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import RunId
from orchestrator.core.ports import Clock

__all__ = [
    "BUFFER_BYTES_MAX",
    "CHECKPOINT_RECORDS",
    "CHECKPOINT_SECONDS",
    "SEGMENT_BYTES_MAX",
    "AuditLog",
    "head_path",
    "segment_path",
]

BUFFER_BYTES_MAX: Final = 16 * 1024 * 1024
"""Records that wait for a disk that takes nothing: about 40,000 of them."""


SEGMENT_BYTES_MAX: Final = 64 * 1024 * 1024
"""One file of a log: what tools still open; about 150,000 records. Then the next one is begun."""
CHECKPOINT_RECORDS: Final = 1_000
"""Records between two heads: a signature and a small file cost as much as a hundred records."""
CHECKPOINT_SECONDS: Final = 5.0
"""The same in time, for sessions that record little."""


def segment_path(log: Path, number: int) -> Path:
    """Return where a part of a log is kept: first under the log's own name, then `.0001` and on."""
    return log if number == 0 else log.with_name(f"{log.name}.{number:04d}")


def head_path(log: Path) -> Path:
    """Return where the head of a log's chain is kept."""
    return log.with_name(log.name + ".head")


class AuditLog:
    """The log of one run. Belongs to one thread; made by `create`, ended by `close`."""

    def __init__(
        self,
        descriptor: int,
        path: Path,
        run: RunId,
        clock: Clock,
        *,
        signer: Signer | None = None,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> None:
        self.path = path
        self._run = run
        self._signer = signer
        self._segment_bytes_max = segment_bytes_max
        self._segment = 0
        self._segment_bytes = 0
        self._full: list[int] = []  # descriptors of segments that the disk was not waited for
        self._tree = MerkleTree()
        self._hashes: list[str] = []  # of records that the tree has not taken yet
        self._next_head = clock.wall() + CHECKPOINT_SECONDS
        self._descriptor = descriptor
        self._wall = clock.wall
        self._buffer_bytes_max = buffer_bytes_max
        self._chain = Chain()
        self._begun: list[str] = []  # records that are not linked yet
        self._rest = b""  # what the kernel did not take
        self._waiting_bytes = 0
        self._dropped = 0
        self._open = True

    @classmethod
    def create(
        cls,
        path: Path,
        run: RunId,
        clock: Clock,
        *,
        signer: Signer | None = None,
        buffer_bytes_max: int = BUFFER_BYTES_MAX,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
    ) -> AuditLog:
        """Make a new log, readable by its owner only, with its first record.

        Without a `signer` its checkpoints are not signed.

        Raises FileExistsError if something stands at `path`: a log is never taken up again.
        Raises OSError if the file cannot be made or the first record not be written.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log = cls(
            _create(path),
            path,
            run,
            clock,
            signer=signer,
            buffer_bytes_max=buffer_bytes_max,
            segment_bytes_max=segment_bytes_max,
        )
        try:
            log.append(AuditKind.LOG_OPENED, Chain.opening(run))
            log.flush()
        except BaseException:
            os.close(log._descriptor)
            raise
        return log

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Take one record. No system call but the clock's; never waits, whatever the disk does.

        Past the bound of what may wait for the disk, and after `close`, the record is counted and
        not kept: the next `flush` fails, and a record of kind `records_dropped` says how many there
        were. Raises ValueError only for fields that are no record's (see `encode`).
        """
        if not self._open or self._waiting_bytes > self._buffer_bytes_max:
            self._dropped += 1
            return
        text = self._chain.begin(kind, self._wall(), fields)
        self._begun.append(text)
        self._waiting_bytes += len(text) + LINK_BYTES

    def flush(self) -> None:
        """Hand everything appended to the kernel.

        Raises OSError if it does not take all of it. What it did not take waits for the next
        flush, from the very byte on; nothing is written twice and nothing is left out. Raises
        OSError after `close` if anything was appended since.
        """
        if not self._open:
            if self._dropped:
                raise OSError(errno.EBADF, f"the log is closed; {self._dropped} records are lost")
            return
        self._write_waiting()
        if self._segment_bytes > self._segment_bytes_max:
            self._begin_segment()
        if len(self._hashes) >= CHECKPOINT_RECORDS or self._chain.time >= self._next_head:
            # What is recorded is recorded; a head that cannot be kept now is kept later.
            with suppress(OSError, ConfigError):
                self._keep_head(durably=False)
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.append(AuditKind.RECORDS_DROPPED, {"count": dropped})
            self._write_waiting()
            raise OSError(errno.ENOBUFS, f"{dropped} audit records could not be kept")

    def checkpoint(self) -> Head:
        """Flush, wait for the disk, and keep the head of the chain beside the log. Blocks.

        Raises OSError; ConfigError if the signing key cannot be used.
        """
        self.flush()
        while self._full:
            os.fsync(self._full[-1])
            os.close(self._full.pop())
        os.fsync(self._descriptor)
        return self._keep_head(durably=True)

    def close(self) -> None:
        """End the log with a checkpoint. Idempotent; raises OSError if records could not be kept."""
        if not self._open:
            return
        try:
            self.checkpoint()
        finally:
            self._open = False
            for descriptor in (*self._full, self._descriptor):
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _keep_head(self, *, durably: bool) -> Head:
        self._tree.extend(map(bytes.fromhex, self._hashes))
        self._hashes.clear()
        head = replace(self._chain.head, root=self._tree.root().hex())
        if self._signer is not None:
            head = self._signer.sign(self._run, head)
        named = {name: value for name, value in asdict(head).items() if value != ""}
        _replace(head_path(self.path), canonical_bytes(named), durably=durably)
        self._next_head = self._chain.time + CHECKPOINT_SECONDS
        return head

    def _begin_segment(self) -> None:
        """Go on in a new file. Where none can be made the present one grows on."""
        with suppress(OSError):
            descriptor = _create(segment_path(self.path, self._segment + 1))
            self._full.append(self._descriptor)
            self._descriptor = descriptor
            self._segment += 1
            self._segment_bytes = 0

    def _write_waiting(self) -> None:
        lines, hashes = self._chain.link(self._begun)
        self._begun.clear()
        self._hashes += hashes
        data = self._rest + lines if self._rest else lines
        if not data:
            return
        taken = 0
        try:
            taken = os.write(self._descriptor, data)
            while taken < len(data):
                taken += os.write(self._descriptor, memoryview(data)[taken:])
        finally:  # an interrupt is no reason either to lose what is linked already
            self._rest = data[taken:]
            self._waiting_bytes = len(self._rest)
            self._segment_bytes += taken


def _create(path: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _replace(path: Path, data: bytes, *, durably: bool) -> None:
    """Put a small file in place as a whole, for the owner only; `durably` waits for the disk."""
    draft = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        draft.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        os.write(descriptor, data)
        if durably:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(path)
    if not durably:
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
