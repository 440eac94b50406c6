"""SQLite files of the state folder, each for its owner alone. Knows no table."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from orchestrator.core.errors import ConfigError, Where
from orchestrator.sessions.state import refuse_shared

__all__ = ["PrivateDatabase"]

_BUSY_SECONDS: Final = 2.0
"""How long another process may be at the file."""


class PrivateDatabase:
    """One file, open. `what` it holds and what happens without it are told when it fails.

    Raises ConfigError if the file cannot be used, or somebody else could write it.
    """

    def __init__(self, path: Path, *, schema: str, what: str, without: str) -> None:
        self._path = path
        self._what = what
        self._without = without
        with self._telling():
            path.touch(mode=0o600, exist_ok=True)
        refuse_shared(path)
        with self._telling():
            self._db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            # with WAL this outlives a process that is killed; only a power cut can take the last
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(schema)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def using(self) -> Generator[sqlite3.Connection]:
        """Hand out the connection; what SQLite, the disk or a row of no use says becomes a ConfigError."""
        with self._telling():
            yield self._db

    @contextmanager
    def _telling(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            raise ConfigError(
                f"{self._what} cannot be used: {type(error).__name__}",
                code="E-STATE-RECORDS",
                why=str(error),
                fix=f"look at the disk; {self._without}",
                where=Where(str(self._path)),
            ) from error
