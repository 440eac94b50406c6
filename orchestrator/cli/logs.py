"""Finds the audit log that a command means, and follows one that is being written."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from orchestrator.audit.kinds import AuditKind
from orchestrator.audit.log import segment_path
from orchestrator.audit.record import RECORD_BYTES_MAX, BadRecordError, Record, decode
from orchestrator.audit.signing import Signer
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, RemitError, Where
from orchestrator.core.ids import RunId
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.state import RunPaths, StatePaths

__all__ = ["find_log", "follow_records", "own_key", "reading"]


def find_log(text: str) -> Path:
    """Return the log of a run, of a file or folder, or of the newest run where nothing is named.

    Of a run that was taken up again it is the last log; the others are named by their files.

    Raises ConfigError if there is none.
    """
    paths = StatePaths.from_environment(os.environ)
    if not text:
        return _newest(paths)
    named = Path(text)
    if named.is_dir():
        named = (RunPaths(folder=named).logs or (named / "audit.jsonl",))[-1]
    if named.is_file():
        return named
    if named.parent == Path():
        logs = paths.run(RunId(text)).logs
        if logs:
            return logs[-1]
    raise ConfigError(
        f"there is no run and no file {safe_line(text, reveal=True)!r}",
        code="E-AUDIT-NO-LOG",
        fix=did_you_mean(text, [log.parent.name for log in _logs(paths)]),
    )


def own_key(path: Path) -> str:
    """Return the public key that signs the logs of this state folder, if a log is one of them.

    Empty for other logs, and where nothing was ever signed. Raises ConfigError for an unusable key.
    """
    paths = StatePaths.from_environment(os.environ)
    inside = path.resolve().is_relative_to(paths.runs.resolve())
    if not inside or not paths.signing_key.exists():
        return ""
    return Signer(paths.signing_key).public_key()


def follow_records(path: Path, count: int, *, wait: Callable[[], None]) -> Iterator[Record]:
    """Yield the last `count` records, then each new one, until the run has ended.

    `wait` is called whenever there is nothing new. Raises BadRecordError and OSError.
    """
    with ExitStack() as stack:
        reader = _Reader(path, stack)
        yield from deque(reader.new_records(), maxlen=count)
        while not reader.ended:
            before = reader.records
            yield from reader.new_records()
            if reader.records == before:
                wait()


class _Reader:
    """Reads a log that grows, part after part: whole lines only, the beginning of the next is kept."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self._path = path
        self._part = 0
        self._stack = stack
        self._file: BinaryIO = stack.enter_context(path.open("rb"))
        self._begun = b""
        self.records = 0
        self.ended = False

    def new_records(self) -> Iterator[Record]:
        """Yield the records that were finished since the last time."""
        yield from self._new_in_part()
        following = segment_path(self._path, self._part + 1)
        while following.exists():
            # nothing is written to a part once there is a next one; what came in between is read
            yield from self._new_in_part()
            self._file.close()
            self._part += 1
            self._file = self._stack.enter_context(following.open("rb"))
            yield from self._new_in_part()
            following = segment_path(self._path, self._part + 1)

    def _new_in_part(self) -> Iterator[Record]:
        while piece := self._file.readline(RECORD_BYTES_MAX + 1 - len(self._begun)):
            self._begun += piece
            if not self._begun.endswith(b"\n"):
                if len(self._begun) > RECORD_BYTES_MAX:
                    raise BadRecordError("longer than any record")
                continue
            record, self._begun = decode(self._begun[:-1]), b""
            self.records += 1
            self.ended = record.kind == AuditKind.RUN_ENDED
            yield record


@contextmanager
def reading(path: Path) -> Generator[None]:
    """Turn what can go wrong with a log into an error for people."""
    try:
        yield
    except BadRecordError as error:
        raise RemitError(
            f"the log has a line that is no record: {error}",
            code="E-AUDIT-BAD-RECORD",
            fix="see `remit audit verify`",
            where=Where(str(path)),
        ) from error
    except BrokenPipeError:
        raise
    except OSError as error:
        raise RemitError(
            f"cannot read the log: {error.strerror}", code="E-AUDIT-IO", where=Where(str(path))
        ) from error


def _newest(paths: StatePaths) -> Path:
    try:
        return max(_logs(paths), key=lambda log: (log.stat().st_mtime_ns, log))
    except ValueError:
        raise ConfigError(
            "there is no run yet",
            code="E-AUDIT-NO-LOG",
            fix="`remit demo` makes one; or name the log's file",
            where=Where(str(paths.runs)),
        ) from None


def _logs(paths: StatePaths) -> list[Path]:
    return list(paths.runs.glob("*/audit*.jsonl"))
