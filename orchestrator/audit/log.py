"""The audit log of one run as a file: appends, and says what is kept. Does not read it back.

What is kept, and when: `append` chains a record in memory, without a system call. `flush` hands
everything appended to the kernel in one write, before the bytes that the records are about: it
survives the death of this process, `kill -9` included. `checkpoint` and `close` also wait for the
disk, and keep the head of the chain in a file of its own: it survives the loss of power, and the
log cannot be cut behind it unnoticed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from orchestrator.audit.chain import Chain, Head
from orchestrator.audit.kinds import AuditKind
from orchestrator.core.documents import canonical_bytes
from orchestrator.core.ids import RunId
from orchestrator.core.ports import Clock

__all__ = ["BUFFER_BYTES_MAX", "AuditLog", "head_path"]

BUFFER_BYTES_MAX: Final = 16 * 1024 * 1024
"""Records that wait for a disk that takes nothing: about 40,000 of them."""


def head_path(log: Path) -> Path:
    """Return where the head of a log's chain is kept."""
    return log.with_name(log.name + ".head")


class AuditLog:
    """The log of one run. Belongs to one thread; made by `create`, ended by `close`."""

    def __init__(
        self, descriptor: int, path: Path, clock: Clock, *, buffer_bytes_max: int = BUFFER_BYTES_MAX
    ) -> None:
        self.path = path
        self._descriptor = descriptor
        self._wall = clock.wall
        self._buffer_bytes_max = buffer_bytes_max
        self._chain = Chain()
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._dropped = 0
        self._open = True

    @classmethod
    def create(
        cls, path: Path, run: RunId, clock: Clock, *, buffer_bytes_max: int = BUFFER_BYTES_MAX
    ) -> AuditLog:
        """Make a new log, readable by its owner only, with its first record.

        Raises FileExistsError if something stands at `path`: a log is never taken up again.
        Raises OSError if the file cannot be made or the first record not be written.
        """
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        log = cls(os.open(path, flags, 0o600), path, clock, buffer_bytes_max=buffer_bytes_max)
        try:
            log.append(AuditKind.LOG_OPENED, Chain.opening(run))
            log.flush()
        except BaseException:
            os.close(log._descriptor)
            raise
        return log

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Chain one record. No system call but the clock's; never waits, whatever the disk does.

        Past the bound of what may wait for the disk, and after `close`, the record is counted and
        not kept: the next `flush` fails, and a record of kind `records_dropped` says how many there
        were. Raises ValueError only for fields that are no record's (see `encode`).
        """
        if not self._open or self._waiting_bytes > self._buffer_bytes_max:
            self._dropped += 1
            return
        line = self._chain.link(kind, self._wall(), fields)
        self._waiting.append(line)
        self._waiting_bytes += len(line)

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
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self.append(AuditKind.RECORDS_DROPPED, {"count": dropped})
            self._write_waiting()
            raise OSError(errno.ENOBUFS, f"{dropped} audit records could not be kept")

    def checkpoint(self) -> Head:
        """Flush, wait for the disk, and keep the head of the chain beside the log. Blocks."""
        self.flush()
        os.fsync(self._descriptor)
        head = self._chain.head
        _replace(head_path(self.path), canonical_bytes({"seq": head.seq, "hash": head.hash}))
        return head

    def close(self) -> None:
        """End the log with a checkpoint. Idempotent; raises OSError if records could not be kept."""
        if not self._open:
            return
        try:
            self.checkpoint()
        finally:
            self._open = False
            os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        taken = 0
        try:
            taken = os.write(self._descriptor, data)
            while taken < len(data):
                taken += os.write(self._descriptor, memoryview(data)[taken:])
        except OSError:
            rest = data[taken:]
            self._waiting, self._waiting_bytes = [rest], len(rest)
            raise
        self._waiting.clear()
        self._waiting_bytes = 0


def _replace(path: Path, data: bytes) -> None:
    """Put a small file in place as a whole, for the owner only, and wait for the disk."""
    draft = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        draft.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, 0o600)
    try:
        os.write(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
