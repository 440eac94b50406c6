"""Agent events as JSON objects, one a line: the form of `--json-lines`. Decides nothing."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum

from orchestrator.agents.events import AgentEvent

__all__ = ["event_object"]


def event_object(event: AgentEvent) -> dict[str, object]:
    """Return an event as JSON values; `event` is its name, enums are their values, seconds have six digits."""
    named: dict[str, object] = {"event": type(event).__name__}
    for field in fields(event):
        value: object = getattr(event, field.name)
        if isinstance(value, Enum):
            value = value.value
        elif isinstance(value, float):
            value = round(value, 6)
        named[field.name] = value
    return named
