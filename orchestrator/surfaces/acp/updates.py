"""What a session tells an editor, as the objects of `session/update`. Decides and sends nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orchestrator.core.display import safe_text
from orchestrator.surfaces.acp.limits import AcpLimits

__all__ = [
    "COMMANDS",
    "Update",
    "chunks",
    "commands_update",
    "content",
    "info_update",
    "plan_update",
    "usage_update",
]

Update = Mapping[str, object]
"""One `session/update`, its session left out."""

COMMANDS: Final = {
    "servers": "Show the servers of this session, and what is left out.",
    "agents": "Show the agents that are at work.",
    "audit": "Show where this session is recorded.",
    "login": "Log in to a server, by an address that is opened here.",
}
"""Commands that are answered without a model, by name."""


_INPUTS: Final = {"login": {"input": {"hint": "server"}}}


def content(text: str) -> dict[str, object]:
    """Return a block of text."""
    return {"type": "text", "text": text}


def chunks(kind: str, text: str, limits: AcpLimits) -> Iterator[Update]:
    """Yield a text in pieces, made safe: what a server or a model wrote commands no terminal."""
    plain = safe_text(text, reveal=True, chars_max=None)
    for at in range(0, len(plain), limits.chunk_chars_max):
        yield {"sessionUpdate": kind, "content": content(plain[at : at + limits.chunk_chars_max])}


def commands_update() -> Update:
    """Return which commands there are."""
    return {
        "sessionUpdate": "available_commands_update",
        "availableCommands": [
            {"name": name, "description": text, **_INPUTS.get(name, {})}
            for name, text in COMMANDS.items()
        ],
    }


def info_update(title: str, updated: str) -> Update:
    """Return what a session is called now."""
    return {"sessionUpdate": "session_info_update", "title": title, "updatedAt": updated}


def plan_update(entries: Sequence[tuple[str, str]]) -> Update:
    """Return the whole plan: of each entry what it is, and how far."""
    return {
        "sessionUpdate": "plan",
        "entries": [
            {"content": text, "priority": "medium", "status": status} for text, status in entries
        ],
    }


def usage_update(used: int, size: int, usd: float) -> Update:
    """Return how much of its window the last request to the model took, and what all has cost."""
    update: dict[str, object] = {
        "sessionUpdate": "usage_update",
        "used": min(used, size),
        "size": size,
    }
    if usd:
        update["cost"] = {"amount": round(usd, 6), "currency": "USD"}
    return update
