"""Agent events as JSON objects, one a line: the form of `--json-lines`. Decides nothing."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Final

from orchestrator.agents.events import AgentEvent

__all__ = ["event_object"]

_LEFT_OUT: Final = frozenset({"arguments", "content"})
"""What was sent and what came back: events tell of calls, and the audit log keeps their digests."""


def event_object(event: AgentEvent) -> dict[str, object]:
    """Return an event as JSON values; `event` is its name, enums are their values, seconds have six digits."""
    named: dict[str, object] = {"event": type(event).__name__}
    for field in fields(event):
        if field.name in _LEFT_OUT:
            continue
        value: object = getattr(event, field.name)
        if isinstance(value, Enum):
            value = value.value
        elif isinstance(value, float):
            value = round(value, 6)
        named[field.name] = value
    return named
