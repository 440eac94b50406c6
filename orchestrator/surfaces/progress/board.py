"""What is known of a run's agents by their events, as a tree. Values only; draws nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentSaid,
    AgentStarted,
    CallEnded,
    CallProgressed,
    CallStarted,
    InputMissing,
    TurnEnded,
    VisitEnded,
)
from orchestrator.core.outcomes import CallOutcome, RunStatus

__all__ = ["WAITING", "AgentRow", "Board", "Branch"]

WAITING: Final = "waiting"
"""The state of a step that was not begun."""
RUNNING: Final = "running"
"""The state of an agent at work."""

_GROUPED_FROM: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """What is known of one agent by its events. `seconds` is set once it has ended."""

    agent: str
    started: float
    state: str = RUNNING
    calls: int = 0
    denied: int = 0
    refused: int = 0
    tokens: int = 0
    usd: float = 0.0
    last: str = ""
    seconds: float | None = None

    def elapsed(self, now: float) -> float:
        """Return the seconds that it has worked, or worked in all."""
        return max(0.0, now - self.started) if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree: an agent, or the items of a map together (`of` says how many)."""

    row: AgentRow
    depth: int
    of: int = 1


@dataclass(frozen=True, slots=True)
class Board:
    """All agents of a run, in the order of their start. A new value for each event."""

    rows: tuple[AgentRow, ...] = ()

    @classmethod
    def of(cls, steps: Sequence[str]) -> Board:
        """Return a board on which these steps wait."""
        return cls(
            tuple(AgentRow(agent=step, started=0, state=WAITING, seconds=0) for step in steps)
        )

    def after(self, event: AgentEvent, now: float) -> Board:
        """Return the board with one more event in it."""
        if not event.agent:  # it is the session's own, and no agent's
            return self
        row = next((row for row in self.rows if row.agent == event.agent), None)
        rows = self.rows
        if row is None:
            row = AgentRow(agent=event.agent, started=now)
            rows = self._with(row)
        changed = _advanced(row, event, now)
        return Board(tuple(changed if each is row else each for each in rows))

    def shown(self, rows_max: int) -> tuple[tuple[Branch, ...], int]:
        """Return the branches that fit, those at work first, and how many are left out."""
        branches = tuple(self.branches())
        if len(branches) <= rows_max:
            return branches, 0
        # of those that have ended the last ones: they are news
        order = sorted(range(len(branches)), key=lambda at: _rank(branches[at].row, at))
        kept = set(order[:rows_max])
        return tuple(branches[at] for at in sorted(kept)), len(branches) - len(kept)

    def branches(self) -> Iterator[Branch]:
        """Yield the tree, parents before their children; of a map's items those at work."""
        items: dict[str, list[AgentRow]] = {}
        for row in self.rows:
            if _step(row.agent) != row.agent:
                items.setdefault(_step(row.agent), []).append(row)
        grouped = {step for step, rows in items.items() if len(rows) >= _GROUPED_FROM}
        told: set[str] = set()
        for row in self.rows:
            step, depth = _step(row.agent), row.agent.count("/")
            if step not in grouped:
                yield Branch(row, depth)
                continue
            if step not in told:  # the waiting step itself, or the first of its items
                told.add(step)
                yield Branch(_together(step, items[step]), depth, len(items[step]))
            if row.agent != step and row.state == RUNNING:
                yield Branch(row, depth + 1)

    def total(self) -> AgentRow:
        """Return all agents as one row."""
        return _together("", [row for row in self.rows if row.state != WAITING])

    def _with(self, row: AgentRow) -> tuple[AgentRow, ...]:
        """Put a new agent behind those that it belongs to: its parent's, or its step's others."""
        parent = row.agent.rpartition("/")[0]
        step = _step(row.agent)
        place = len(self.rows)
        for at, each in enumerate(self.rows):
            below = bool(parent) and (each.agent == parent or each.agent.startswith(f"{parent}/"))
            if below or _step(each.agent) == step:
                place = at + 1
        return (*self.rows[:place], row, *self.rows[place:])


def _advanced(row: AgentRow, event: AgentEvent, now: float) -> AgentRow:
    match event:
        case AgentStarted():
            return replace(row, started=now, state=RUNNING, seconds=None)
        case CallStarted():
            return replace(row, calls=row.calls + 1, last=f"{event.server}/{event.tool}")
        case CallProgressed():
            return replace(row, last=f"{event.server}/{event.tool} {event.how_far}")
        case CallEnded():
            return replace(
                row,
                denied=row.denied + (event.outcome is CallOutcome.DENIED),
                refused=row.refused + (event.outcome is CallOutcome.REFUSED),
                last=f"{event.server}/{event.tool} {event.outcome.value}",
            )
        case AgentEnded():
            return replace(row, state=event.status.value, seconds=event.seconds)
        case InputMissing():
            return replace(row, last=f"{event.server} asked, and nobody can be asked here")
        case VisitEnded():
            return replace(row, last=f"{event.server} says that the visit is over")
        case AgentNoted():
            return replace(row, last=event.text)
        case AgentSaid():
            return row
        case TurnEnded():
            return replace(row, tokens=row.tokens + event.tokens, usd=max(row.usd, event.usd))
        case _:
            assert_never(event)


def _rank(row: AgentRow, at: int) -> tuple[int, int]:
    """At work comes first, then what has ended, then what waits."""
    if row.seconds is None:
        return 0, at
    return (2, at) if row.state == WAITING else (1, -at)


def _step(agent: str) -> str:
    """Return the step that an item's agent belongs to; any other agent is a step of its own."""
    step, _, number = agent.rpartition("-")
    return step if step and number.isdecimal() else agent


def _together(name: str, rows: Sequence[AgentRow]) -> AgentRow:
    at_work = sum(row.seconds is None for row in rows)
    bad = sum(row.seconds is not None and row.state != RunStatus.OK.value for row in rows)
    done = len(rows) - at_work - bad
    words = ((at_work, "running"), (done, "ok"), (bad, "not ok"))
    started = min((row.started for row in rows), default=0.0)
    ended = max((row.started + (row.seconds or 0.0) for row in rows), default=started)
    return AgentRow(
        agent=name,
        started=started,
        state=", ".join(f"{count} {word}" for count, word in words if count),
        calls=sum(row.calls for row in rows),
        denied=sum(row.denied for row in rows),
        refused=sum(row.refused for row in rows),
        tokens=sum(row.tokens for row in rows),
        usd=sum(row.usd for row in rows),
        seconds=None if at_work else ended - started,
    )
