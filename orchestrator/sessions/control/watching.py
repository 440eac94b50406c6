"""What the agents of a session do, kept for those who look later. Counts; decides nothing, opens nothing.

Only names, numbers and reasons are kept: a note of a recipe and the words of an error may quote what a
server answered, and go to nobody from here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never

import anyio

from orchestrator.agents.event_objects import EventOutline
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
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import CallOutcome

__all__ = ["EVENTS_KEPT_MAX", "LINES_MAX", "AgentLine", "Listener", "Watch"]

EVENTS_KEPT_MAX: Final = 500
"""Events that are told to whoever comes later."""
LISTENER_EVENTS_MAX: Final = 2_000
"""Events that wait for one slow listener; then the oldest are dropped, and counted."""
LINES_MAX: Final = 2_000
"""Agents that are remembered, twice those that can live; then the one that ended first is forgotten."""


@dataclass(slots=True, kw_only=True)
class AgentLine:
    """What one agent has done so far, by its events. Times are the session's own seconds."""

    agent: AgentId
    began: float
    model: str = ""
    state: str = "running"
    turns: int = 0
    calls: int = 0
    denied: int = 0
    refused: int = 0
    failed: int = 0
    tokens: int = 0
    usd: float = 0.0
    ended: float | None = None
    current: dict[str, int] = field(default_factory=dict[str, int])
    """The calls under way, each with how often."""

    def take(self, event: AgentEvent, now: float) -> None:
        """Count one event in."""
        match event:
            case AgentStarted():
                self.model, self.state, self.ended, self.began = event.model, "running", None, now
            case TurnEnded():
                self.turns += 1
                self.tokens += event.tokens
                self.usd = max(self.usd, event.usd)
            case CallStarted():
                self.calls += 1
                name = f"{event.server}/{event.tool}"
                self.current[name] = self.current.get(name, 0) + 1
            case CallEnded():
                self._call_ended(event)
            case AgentEnded():
                self.state, self.ended = event.status.value, now
                self.current.clear()
            case AgentNoted() | AgentSaid() | InputMissing() | VisitEnded() | CallProgressed():
                pass
            case _:
                assert_never(event)

    def _call_ended(self, event: CallEnded) -> None:
        self.denied += event.outcome is CallOutcome.DENIED
        self.refused += event.outcome is CallOutcome.REFUSED
        self.failed += event.outcome not in {
            CallOutcome.OK, CallOutcome.DENIED, CallOutcome.REFUSED,
        }  # fmt: skip
        name = f"{event.server}/{event.tool}"
        left = self.current.pop(name, 0) - 1
        if left > 0:
            self.current[name] = left


class Listener:
    """One who follows the events; `dropped` counts those that came too fast."""

    def __init__(self, earlier: Iterator[Mapping[str, object]]) -> None:
        self._waiting: deque[Mapping[str, object]] = deque(earlier)
        self._news = anyio.Event()
        self._over = False
        self.dropped = 0

    def put(self, event: Mapping[str, object]) -> None:
        """Hand one more event over; never waits."""
        if len(self._waiting) >= LISTENER_EVENTS_MAX:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(event)
        self._news.set()

    def end(self) -> None:
        """Let nothing more come."""
        self._over = True
        self._news.set()

    async def next(self) -> Mapping[str, object] | None:
        """Return the next event; None once there is no more."""
        while not self._waiting:
            if self._over:
                return None
            self._news = anyio.Event()
            await self._news.wait()
        return self._waiting.popleft()


class Watch:
    """Hears every event of a session, hands it on to `emit`, and keeps what others will ask for."""

    def __init__(
        self, now: Callable[[], float], emit: Callable[[AgentEvent], None] | None = None
    ) -> None:
        self._now = now
        self._emit = emit
        self._lines: dict[AgentId, AgentLine] = {}
        self._over: dict[AgentId, None] = {}
        """Those of them that have ended, the one that ended first before the others."""
        self._kept: deque[_Told] = deque(maxlen=EVENTS_KEPT_MAX)
        self._count = 0
        self._listeners: dict[Listener, None] = {}
        self._alone = anyio.Event()

    @property
    def lines(self) -> Mapping[AgentId, AgentLine]:
        """What each agent has done, in the order of their starts."""
        return self._lines

    def hear(self, event: AgentEvent) -> None:
        """Take an event in; must not and does not raise or wait."""
        now = self._now()
        if event.agent:  # what a server wants of nobody in particular is no agent's
            line = self._line(event.agent, now)
            line.take(event, now)
            self._over.pop(line.agent, None)
            if line.ended is not None:
                self._over[line.agent] = None
        # a model's words, and how far a call has come: many times in a second
        if not isinstance(event, AgentSaid | CallProgressed):
            self._tell(EventOutline(event), now)
        if self._emit is not None:
            self._emit(event)

    def tell(self, event: Mapping[str, object]) -> None:
        """Tell all who listen; `seq` counts from 1, `at` is the session's own clock."""
        self._tell(event, self._now())

    def _tell(self, event: EventOutline | Mapping[str, object], now: float) -> None:
        self._count += 1
        told = _Told(self._count, now, event)
        self._kept.append(told)
        if self._listeners:
            numbered = told.object()
            for listener in self._listeners:
                listener.put(numbered)

    def listen(self, since: int = 0) -> Listener:
        """Return one who hears all that is kept from behind `since`, and all that follows."""
        earlier = (told.object() for told in self._kept if told.seq > since)
        listener = Listener(earlier)
        self._listeners[listener] = None
        return listener

    def leave(self, listener: Listener) -> None:
        """Let a listener go. Idempotent."""
        self._listeners.pop(listener, None)
        if not self._listeners:
            self._alone.set()

    async def end(self) -> None:
        """Tell all who listen that nothing more comes, and return once they have heard the rest."""
        for listener in self._listeners:
            listener.end()
        self._alone = anyio.Event()
        if self._listeners:
            await self._alone.wait()

    def _line(self, agent: AgentId, now: float) -> AgentLine:
        line = self._lines.get(agent)
        if line is None:
            self._make_room()
            line = self._lines[agent] = AgentLine(agent=agent, began=now)
        return line

    def _make_room(self) -> None:
        if len(self._lines) < LINES_MAX:
            return
        # all of them at work cannot be: fewer may live than are remembered
        gone = next(iter(self._over or self._lines))
        self._over.pop(gone, None)
        del self._lines[gone]


class _Told:
    """One event with its number. It is made an object for those who listen: mostly nobody does."""

    __slots__ = ("_at", "_event", "seq")

    def __init__(self, seq: int, at: float, event: EventOutline | Mapping[str, object]) -> None:
        self.seq = seq
        self._at = at
        self._event = event

    def object(self) -> Mapping[str, object]:
        event = self._event.object() if isinstance(self._event, EventOutline) else self._event
        return {"seq": self.seq, "at": round(self._at, 3), **event}
