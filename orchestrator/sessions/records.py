"""What is kept of persistent agents between runs: who they were, what they were asked, how far it came.

A record is information and never authority: whoever is made again from one is decided on anew. One
SQLite file in the state folder, for its owner alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from orchestrator.agents.lifecycle import AgentState, TaskState
from orchestrator.core.documents import read_json
from orchestrator.sessions.private_database import PrivateDatabase

__all__ = ["AgentRecord", "AgentRecords", "MemoryRecords", "SqliteRecords", "TaskRecord"]

AGENTS_MAX: Final = 1_000
"""Agents of one session whose records are kept; then the one that changed longest ago is forgotten."""
TASKS_MAX: Final = 200
"""Tasks of one agent that are kept; then the oldest is forgotten."""
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS agents (
  session TEXT NOT NULL, path TEXT NOT NULL, state TEXT NOT NULL, incarnation INTEGER NOT NULL,
  detail TEXT NOT NULL, changed REAL NOT NULL, PRIMARY KEY (session, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks (
  session TEXT NOT NULL, path TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL,
  detail TEXT NOT NULL, PRIMARY KEY (session, path, number)) WITHOUT ROWID;
"""
_DETAIL_BYTES_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One agent. `detail` are JSON values: role, model, grant, budget."""

    path: str
    state: AgentState
    incarnation: int
    detail: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task. `detail` are JSON values: prompt, inputs, schema, answer, error."""

    number: int
    state: TaskState
    detail: Mapping[str, object]


class AgentRecords(Protocol):
    """Where records are kept. What is written stays when the process dies in the next step."""

    def agents(self) -> tuple[AgentRecord, ...]:
        """Return what is kept of every agent of the session, by path."""
        ...

    def find(self, path: str) -> AgentRecord | None:
        """Return what is kept of an agent."""
        ...

    def tasks(self, path: str) -> tuple[TaskRecord, ...]:
        """Return what is kept of an agent's tasks, the oldest first."""
        ...

    def save_agent(self, record: AgentRecord, *, at: float) -> None:
        """Keep an agent. Raises ConfigError if it cannot be kept."""
        ...

    def save_task(self, path: str, record: TaskRecord) -> None:
        """Keep a task. Raises ConfigError if it cannot be kept."""
        ...


class MemoryRecords:
    """Records that end with the process: for sessions without a name, and for tests."""

    def __init__(self) -> None:
        self._agents: dict[str, AgentRecord] = {}
        self._tasks: dict[str, dict[int, TaskRecord]] = {}

    def agents(self) -> tuple[AgentRecord, ...]:
        """Return what is kept of every agent, by path."""
        return tuple(self._agents[path] for path in sorted(self._agents))

    def find(self, path: str) -> AgentRecord | None:
        """Return what is kept of an agent."""
        return self._agents.get(path)

    def tasks(self, path: str) -> tuple[TaskRecord, ...]:
        """Return what is kept of an agent's tasks, the oldest first."""
        return tuple(self._tasks.get(path, {}).values())

    def save_agent(self, record: AgentRecord, *, at: float) -> None:
        """Keep an agent."""
        self._agents.pop(record.path, None)
        self._agents[record.path] = record
        while len(self._agents) > AGENTS_MAX:
            oldest = next(iter(self._agents))
            del self._agents[oldest]
            self._tasks.pop(oldest, None)

    def save_task(self, path: str, record: TaskRecord) -> None:
        """Keep a task."""
        tasks = self._tasks.setdefault(path, {})
        tasks[record.number] = record
        while len(tasks) > TASKS_MAX:
            del tasks[next(iter(tasks))]


class SqliteRecords:
    """Records in a file. Two processes may use it; of one session the last word counts.

    Raises ConfigError if the file cannot be used, or somebody else could write it.
    """

    def __init__(self, path: Path, *, session: str) -> None:
        self._path = path
        self._session = session
        self._database = PrivateDatabase(
            path,
            schema=_SCHEMA,
            what="the records of agents",
            without="without the file, persistent agents begin anew",
        )

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def agents(self) -> tuple[AgentRecord, ...]:
        """Return what is kept of every agent of the session, by path."""
        query = (
            "SELECT path, state, incarnation, detail FROM agents WHERE session = ? ORDER BY path"
        )
        with self._database.using() as db:
            return tuple(map(self._agent, db.execute(query, (self._session,))))

    def find(self, path: str) -> AgentRecord | None:
        """Return what is kept of an agent."""
        query = "SELECT path, state, incarnation, detail FROM agents WHERE session = ? AND path = ?"
        with self._database.using() as db:
            row = db.execute(query, (self._session, path)).fetchone()
            return None if row is None else self._agent(row)

    def tasks(self, path: str) -> tuple[TaskRecord, ...]:
        """Return what is kept of an agent's tasks, the oldest first."""
        query = (
            "SELECT number, state, detail FROM tasks WHERE session = ? AND path = ? ORDER BY number"
        )
        with self._database.using() as db:
            rows = db.execute(query, (self._session, path)).fetchall()
            return tuple(
                TaskRecord(number=number, state=TaskState(state), detail=self._read(detail))
                for number, state, detail in rows
            )

    def save_agent(self, record: AgentRecord, *, at: float) -> None:
        """Keep an agent; forget the one that changed longest ago where there are too many."""
        detail = json.dumps(record.detail, ensure_ascii=True)
        row = (self._session, record.path, record.state.value, record.incarnation, detail, at)
        spare = (
            "SELECT path FROM agents WHERE session = ? ORDER BY changed DESC, path "
            "LIMIT -1 OFFSET ?"
        )
        with self._database.using() as db:
            db.execute("INSERT OR REPLACE INTO agents VALUES (?, ?, ?, ?, ?, ?)", row)
            for (path,) in db.execute(spare, (self._session, AGENTS_MAX)).fetchall():
                for table in ("agents", "tasks"):
                    db.execute(
                        f"DELETE FROM {table} WHERE session = ? AND path = ?",  # noqa: S608 - ours
                        (self._session, path),
                    )

    def save_task(self, path: str, record: TaskRecord) -> None:
        """Keep a task; forget the oldest where there are too many."""
        detail = json.dumps(record.detail, ensure_ascii=True)
        row = (self._session, path, record.number, record.state.value, detail)
        with self._database.using() as db:
            db.execute("INSERT OR REPLACE INTO tasks VALUES (?, ?, ?, ?, ?)", row)
            db.execute(
                "DELETE FROM tasks WHERE session = ? AND path = ? AND number <= ?",
                (self._session, path, record.number - TASKS_MAX),
            )

    def forget(self) -> None:
        """Remove all that is kept of this session."""
        with self._database.using() as db:
            for table in ("agents", "tasks"):
                db.execute(
                    f"DELETE FROM {table} WHERE session = ?",  # noqa: S608 - ours
                    (self._session,),
                )

    def _agent(self, row: tuple[str, str, int, str]) -> AgentRecord:
        path, state, incarnation, detail = row
        return AgentRecord(
            path=path,
            state=AgentState(state),
            incarnation=incarnation,
            detail=self._read(detail),
        )

    def _read(self, detail: str) -> Mapping[str, object]:
        return dict(read_json(detail, str(self._path), bytes_max=_DETAIL_BYTES_MAX).root)
