"""What a run has done so far, in one SQLite file: steps that ended, calls that were answered.

Knows no session and decides nothing. What is written survives the end of the process at any point.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread

from orchestrator.core.errors import ConfigError, RemitError, Where

__all__ = ["KEPT_BYTES_MAX", "RUNNING", "CallRow", "CallState", "Checkpoint", "StepRow", "TurnRow"]

KEPT_BYTES_MAX: Final = 16 * 1024 * 1024
"""One result that is kept: two frames' worth, since escapes take more room than what they stand for."""

_FORMAT: Final = "1"
_SCHEMA: Final = """
CREATE TABLE run (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE steps (
  step TEXT PRIMARY KEY, attempt INTEGER NOT NULL, status TEXT NOT NULL, result BLOB
) WITHOUT ROWID;
CREATE TABLE calls (
  step TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, server TEXT NOT NULL,
  tool TEXT NOT NULL, recorded TEXT NOT NULL, arguments TEXT NOT NULL, state TEXT NOT NULL,
  result BLOB, PRIMARY KEY (step, attempt, number)
) WITHOUT ROWID;
"""
_TURNS: Final = """
CREATE TABLE IF NOT EXISTS turns (
  step TEXT NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, model TEXT NOT NULL,
  said BLOB NOT NULL, PRIMARY KEY (step, attempt, number)
) WITHOUT ROWID;
"""


class CallState(Enum):
    """How a call stands. What was answered is never made again."""

    OPEN = "open"
    """It was about to be made; whether it was is in the audit log."""
    ANSWERED = "answered"
    FAILED = "failed"
    """The server answered with an error."""
    LOST = "lost"
    """A person said: do without its answer."""
    CLEARED = "cleared"
    """A person said: it was not carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """One call of one attempt of a step. `recorded` is the keyed digest that the audit log has too."""

    step: str
    attempt: int
    number: int
    server: str
    tool: str
    recorded: str
    arguments: str
    state: CallState
    result: bytes | None = None

    @property
    def id(self) -> str:
        """What a person calls it by: `STEP#NUMBER`."""
        return f"{self.step}#{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One step, or one item of a map. `status` is `running` until it has ended."""

    step: str
    attempt: int
    status: str
    result: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """What a language model said in one turn, and which one said it."""

    model: str
    said: bytes


RUNNING: Final = "running"
"""The status of a step that was begun."""


class Checkpoint:
    """checkpoint.sqlite of one run. One process at a time has it open for writing.

    The synchronous methods are for before and after a run; the asynchronous ones write in one
    worker thread, one after the other, and return once the kernel has what they wrote.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._one_at_a_time = anyio.CapacityLimiter(1)

    @classmethod
    def create(cls, path: Path, run: Mapping[str, str]) -> Checkpoint:
        """Make the file, for the owner alone. `run` is what a later resume has to know.

        Raises ConfigError (`E-CHECKPOINT-IO`) if it is there already or cannot be made.
        """
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            made = cls(path, _connected(path))
            with made._changing() as database:
                database.executescript(_SCHEMA + _TURNS)
                database.executemany(
                    "INSERT INTO run VALUES (?, ?)",
                    [("format", _FORMAT), *((name, _stored(run[name])) for name in run)],
                )
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        return made

    @classmethod
    def open(cls, path: Path) -> Checkpoint:
        """Open a file that is there. Raises ConfigError if it is none of ours, or damaged."""
        if not path.is_file():
            raise ConfigError(
                "the run has no checkpoint",
                code="E-CHECKPOINT-IO",
                why="only runs of pipelines have one; those of older versions have none",
                where=Where(str(path)),
            )
        try:
            opened = cls(path, _connected(path))
            if opened.about.get("format") != _FORMAT:
                raise ConfigError(
                    "a checkpoint of another version of remit",
                    code="E-CHECKPOINT-IO",
                    where=Where(str(path)),
                )
            with opened._changing() as database:  # those of older runs have none
                database.executescript(_TURNS)
        except (OSError, sqlite3.Error) as error:
            raise _unusable(path, error) from error
        return opened

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._connection.close()

    # ------------------------------------------------------------------------------- reading

    @property
    def about(self) -> dict[str, str]:
        """What the run was started with, and how it ended, by name."""
        return {
            name: os.fsdecode(value) if isinstance(value, bytes) else value
            for name, value in self._rows("SELECT name, value FROM run")
        }

    @property
    def steps(self) -> dict[str, StepRow]:
        """The steps that were begun, by name."""
        rows = self._rows("SELECT step, attempt, status, result FROM steps")
        return {
            step: StepRow(step=step, attempt=attempt, status=status, result=result)
            for step, attempt, status, result in rows
        }

    def calls(self, step: str, attempt: int) -> tuple[CallRow, ...]:
        """Return the calls of one attempt, in the order in which they were about to be made."""
        rows = self._rows(
            "SELECT number, server, tool, recorded, arguments, state, result FROM calls"
            " WHERE step = ? AND attempt = ? ORDER BY number",
            (step, attempt),
        )
        return tuple(
            CallRow(
                step=step,
                attempt=attempt,
                number=number,
                server=server,
                tool=tool,
                recorded=recorded,
                arguments=arguments,
                state=CallState(state),
                result=result,
            )
            for number, server, tool, recorded, arguments, state, result in rows
        )

    def turns(self, step: str, attempt: int) -> tuple[TurnRow, ...]:
        """Return what the model of one attempt said, in order."""
        rows = self._rows(
            "SELECT model, said FROM turns WHERE step = ? AND attempt = ? ORDER BY number",
            (step, attempt),
        )
        return tuple(TurnRow(model=model, said=said) for model, said in rows)

    # ------------------------------------------------------------------- before and after a run

    def note(self, name: str, value: str) -> None:
        """Keep one thing about the run. Raises ConfigError."""
        try:
            with self._changing() as database:
                database.execute("INSERT OR REPLACE INTO run VALUES (?, ?)", (name, value))
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    def settle(self, call: CallRow, state: CallState, result: bytes | None = None) -> None:
        """Keep what a person, or the audit log, says of an open call. Raises ConfigError."""
        key = (call.step, call.attempt, call.number)
        try:
            with self._changing() as database:
                database.execute(
                    "UPDATE calls SET state = ?, result = ?"
                    " WHERE step = ? AND attempt = ? AND number = ?",
                    (state.value, result, *key),
                )
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    def forget(self, call: CallRow) -> None:
        """Forget an open call of which nothing went out. Raises ConfigError."""
        key = (call.step, call.attempt, call.number)
        try:
            with self._changing() as database:
                database.execute(
                    "DELETE FROM calls WHERE step = ? AND attempt = ? AND number = ?", key
                )
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    # -------------------------------------------------------------------------- while it runs

    async def begin(self, step: str, attempt: int) -> None:
        """Keep that an attempt of a step begins."""
        await self._write("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, NULL)",
                          (step, attempt, RUNNING))  # fmt: skip

    async def end(self, step: str, attempt: int, status: str, result: bytes, *, done: bool) -> None:
        """Keep how an attempt ended; with `done` its calls are not needed any more."""

        def write() -> None:
            with self._changing() as database:
                row = (step, attempt, status, result)
                database.execute("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)", row)
                if done:
                    database.execute("DELETE FROM calls WHERE step = ?", (step,))
                    database.execute("DELETE FROM turns WHERE step = ?", (step,))

        await self._in_thread(write)

    async def turn_ended(
        self, step: str, attempt: int, number: int, model: str, said: bytes
    ) -> None:
        """Keep what a model said, before any call of it is made; what it said after that is not kept.

        Raises RemitError.
        """
        if len(said) > KEPT_BYTES_MAX:
            raise RemitError("a model's turn is too large to be kept", code="E-CHECKPOINT-IO")

        def write() -> None:
            with self._changing() as database:
                database.execute(
                    "DELETE FROM turns WHERE step = ? AND attempt = ? AND number >= ?",
                    (step, attempt, number),
                )
                database.execute(
                    "INSERT INTO turns VALUES (?, ?, ?, ?, ?)", (step, attempt, number, model, said)
                )

        await self._in_thread(write)

    async def call_opens(self, call: CallRow) -> None:
        """Keep that a call is about to be made: before anything of it goes out."""
        await self._write(
            "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)",
            (
                call.step, call.attempt, call.number, call.server, call.tool, call.recorded,
                call.arguments, call.state.value,
            ),
        )  # fmt: skip

    async def call_ended(self, call: CallRow, state: CallState, result: bytes) -> None:
        """Keep an answer. One that is too large stays open: it is in doubt after a crash."""
        if len(result) > KEPT_BYTES_MAX:
            return
        await self._write(
            "UPDATE calls SET state = ?, result = ? WHERE step = ? AND attempt = ? AND number = ?",
            (state.value, result, call.step, call.attempt, call.number),
        )

    async def call_forgotten(self, call: CallRow) -> None:
        """Forget a call of which nothing went out."""
        await self._write(
            "DELETE FROM calls WHERE step = ? AND attempt = ? AND number = ?",
            (call.step, call.attempt, call.number),
        )

    async def _write(self, statement: str, values: Sequence[object]) -> None:
        def write() -> None:
            with self._changing() as database:
                database.execute(statement, values)

        await self._in_thread(write)

    async def _in_thread(self, write: Callable[[], None]) -> None:
        # What has been answered is kept, whoever is cancelled meanwhile.
        with anyio.CancelScope(shield=True):
            try:
                await anyio.to_thread.run_sync(write, limiter=self._one_at_a_time)
            except sqlite3.Error as error:
                raise RemitError(
                    "the checkpoint cannot be written",
                    code="E-CHECKPOINT-IO",
                    why=type(error).__name__,
                    fix="make room on the disk, then `remit run --resume`",
                    where=Where(str(self._path)),
                ) from error

    @contextmanager
    def _changing(self) -> Generator[sqlite3.Connection]:
        with self._connection:  # commits, or rolls back
            yield self._connection

    def _rows(self, query: str, values: Sequence[str | int] = ()) -> list[tuple[Any, ...]]:
        try:
            with closing(self._connection.execute(query, tuple(values))) as found:
                return found.fetchall()
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error


def _stored(value: str) -> str | bytes:
    """Return a text as the file holds it: a path need not be text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return os.fsencode(value)
    return value


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=5.0, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # A kill loses nothing; a loss of power may lose the last calls, as it may the audit log's.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _unusable(path: Path, error: Exception) -> ConfigError:
    return ConfigError(
        "the checkpoint cannot be used",
        code="E-CHECKPOINT-IO",
        why=type(error).__name__,
        where=Where(str(path)),
    )
