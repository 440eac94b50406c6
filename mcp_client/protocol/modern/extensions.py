"""Extensions of the protocol: their names, and which of them both sides declared; no messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.limits import ModernLimits

__all__ = [
    "SKILLS",
    "TASKS",
    "Settings",
    "extension_request_allowed",
    "in_common",
    "read_extensions",
]

SKILLS: Final = "io.modelcontextprotocol/skills"
"""Skills that a server offers (SEP-2640)."""
TASKS: Final = "io.modelcontextprotocol/tasks"
"""Answers that are asked for later (SEP-2663)."""

Settings: TypeAlias = Mapping[str, object]
"""What one side says about one extension."""

_REQUESTS: Final[Mapping[str, str]] = {
    "skills/list": SKILLS,
    "skills/get": SKILLS,
    "tasks/get": TASKS,
    "tasks/update": TASKS,
    "tasks/cancel": TASKS,
}

# MCP, `_meta` key names, where the prefix is mandatory: labels with dots, a slash, a name
_NAME: Final = re.compile(
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*"
    r"/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
).fullmatch
_NAME_CHARS_MAX: Final = 256


def read_extensions(
    capabilities: Mapping[str, object], bounds: ModernLimits
) -> Mapping[str, Settings]:
    """Read `extensions` of declared capabilities. What is malformed counts as not declared."""
    declared = as_object(capabilities.get("extensions")) or {}
    if len(declared) > bounds.extensions_max:
        return {}
    found: dict[str, Settings] = {}
    for name, value in declared.items():
        settings = as_object(value)
        if settings is not None and len(name) <= _NAME_CHARS_MAX and _NAME(name):
            found[name] = settings
    return found


def in_common(
    ours: Mapping[str, Settings], theirs: Mapping[str, Settings]
) -> Mapping[str, Settings]:
    """Return the server's settings of what both sides declared: everything else is off."""
    return {name: settings for name, settings in theirs.items() if name in ours}


def extension_request_allowed(method: str, extensions: Mapping[str, Settings]) -> bool:
    """Return whether a method belongs to an extension that is on."""
    return _REQUESTS.get(method) in extensions
