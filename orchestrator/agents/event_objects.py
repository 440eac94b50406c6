"""Agent events as JSON objects, one a line: the form of `--json-lines`. Decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Final

from orchestrator.agents.events import AgentEvent

__all__ = ["EventOutline", "event_object"]

_LEFT_OUT: Final = frozenset({"arguments", "content"})
"""What was sent and what came back: events tell of calls, and the audit log keeps their digests."""
_QUOTING: Final = frozenset({"text", "message", "schema", "host"})
"""What of an event may hold another's words."""


def event_object(event: AgentEvent) -> dict[str, object]:
    """Return an event as JSON values; `event` is its name, enums are their values, seconds have six digits."""
    kind = type(event)
    named: dict[str, object] = {"event": kind.__name__}
    for name in _names(kind):
        named[name] = _plain(getattr(event, name))
    return named


class EventOutline:
    """What is kept of an event for whoever looks later, and made an object for them alone.

    Neither what was sent, nor what came back, nor another's words are kept of it.
    """

    __slots__ = ("_kind", "_values")

    def __init__(self, event: AgentEvent) -> None:
        self._kind = kind = type(event)
        self._values = _reader(kind)(event)

    def object(self) -> dict[str, object]:
        """Return it as JSON values, as `event_object` does."""
        named: dict[str, object] = {"event": self._kind.__name__}
        for name, value in zip(_outlined(self._kind), self._values, strict=True):
            named[name] = _plain(value)
        return named


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return round(value, 6) if isinstance(value, float) else value


@cache  # of the kinds of events, which are few
def _names(kind: type[AgentEvent]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in _LEFT_OUT)


@cache
def _outlined(kind: type[AgentEvent]) -> tuple[str, ...]:
    return tuple(name for name in _names(kind) if name not in _QUOTING)


@cache
def _reader(kind: type[AgentEvent]) -> Callable[[AgentEvent], tuple[object, ...]]:
    names = _outlined(kind)
    if len(names) == 1:  # the reader of one is no tuple
        read: Callable[[AgentEvent], object] = attrgetter(*names)
        return lambda event: (read(event),)
    return attrgetter(*names)
