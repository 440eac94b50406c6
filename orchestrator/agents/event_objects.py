"""Agent events as JSON objects, one a line: the form of `--json-lines`. Decides nothing."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Final

from orchestrator.agents.events import AgentEvent

__all__ = ["event_object"]

_LEFT_OUT: Final = frozenset({"arguments", "content"})
"""What was sent and what came back: events tell of calls, and the audit log keeps their digests."""


def event_object(event: AgentEvent) -> dict[str, object]:
    """Return an event as JSON values; `event` is its name, enums are their values, seconds have six digits."""
    kind = type(event)
    named: dict[str, object] = {"event": kind.__name__}
    for name in _names(kind):
        value: object = getattr(event, name)
        if isinstance(value, Enum):
            value = value.value
        elif isinstance(value, float):
            value = round(value, 6)
        named[name] = value
    return named


@cache  # of the kinds of events, which are nine
def _names(kind: type[AgentEvent]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name not in _LEFT_OUT)
