"""Which conversations there are to go on with: where each was held, and how it began. Holds no words of it.

What was said in one is kept with its agent's record, and goes when the conversation is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.sessions.private_database import PrivateDatabase

__all__ = ["KEPT_MAX", "Conversation", "Conversations"]

KEPT_MAX: Final = 1_000
"""Conversations that are kept; then the one that was used longest ago is forgotten."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS conversations (
  id TEXT PRIMARY KEY, cwd TEXT NOT NULL, project TEXT NOT NULL, title TEXT NOT NULL,
  changed REAL NOT NULL) WITHOUT ROWID;
"""
_COLUMNS: Final = "id, cwd, project, title, changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation. `project` is whose its records are; `changed` is in seconds since 1970."""

    id: str
    cwd: str
    project: str
    title: str = ""
    changed: float = 0.0


class Conversations:
    """The list, in one SQLite file for its owner alone.

    Raises ConfigError if the file cannot be used, or somebody else could write it.
    """

    def __init__(self, path: Path, *, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._database = PrivateDatabase(
            path,
            schema=_SCHEMA,
            what="the list of conversations",
            without="without the file, conversations begin anew",
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def find(self, name: str) -> Conversation | None:
        """Return one by its id."""
        query = f"SELECT {_COLUMNS} FROM conversations WHERE id = ?"  # noqa: S608 - ours
        with self._database.using() as db:
            row = db.execute(query, (name,)).fetchone()
        return None if row is None else _conversation(row)

    def page(self, *, cwd: str | None, skip: int, count: int) -> tuple[Conversation, ...]:
        """Return some of them, the one that was used last first; with `cwd` those of one folder."""
        query = (
            f"SELECT {_COLUMNS} FROM conversations WHERE ?1 IS NULL OR cwd = ?1 "  # noqa: S608 - ours
            "ORDER BY changed DESC, id LIMIT ?2 OFFSET ?3"
        )
        with self._database.using() as db:
            return tuple(map(_conversation, db.execute(query, (cwd, count, skip)).fetchall()))

    def save(self, conversation: Conversation) -> tuple[Conversation, ...]:
        """Keep one, and return those that there is no room for any more: their records are to go."""
        row = (
            conversation.id,
            conversation.cwd,
            conversation.project,
            conversation.title,
            conversation.changed,
        )
        spare = (
            f"SELECT {_COLUMNS} FROM conversations ORDER BY changed DESC, id "  # noqa: S608 - ours
            "LIMIT -1 OFFSET ?"
        )
        with self._database.using() as db:
            db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, ?, ?)", row)
            found = db.execute(spare, (self._kept_max,)).fetchall()
        gone = tuple(map(_conversation, found))
        for item in gone:
            self.delete(item.id)
        return gone

    def delete(self, name: str) -> None:
        """Forget one. Idempotent."""
        with self._database.using() as db:
            db.execute("DELETE FROM conversations WHERE id = ?", (name,))


def _conversation(row: tuple[str, str, str, str, float]) -> Conversation:
    name, cwd, project, title, changed = row
    return Conversation(id=name, cwd=cwd, project=project, title=title, changed=changed)
