"""Which MCP server has which tool, as somebody would install them. Knows no policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["server_of"]

_SERVERS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "workspace": {
        "inbox": ("email", "contacts"),
        "calendar": ("calendar", "current_day"),
        "drive": ("file",),
    },
    "travel": {
        "inbox": ("send_email",),
        "calendar": ("calendar",),
        "account": ("user_information",),
        "booking": ("",),
    },
    "banking": {"files": ("read_file",), "account": ("password", "user_info"), "bank": ("",)},
    "slack": {"web": ("webpage",), "slack": ("",)},
}
"""By suite: servers, each with pieces of its tools' names; the first that fits has the tool."""


def server_of(suite: str, tool: str) -> str:
    """Return the server that has this tool."""
    for server, pieces in _SERVERS[suite].items():
        if any(piece in tool for piece in pieces):
            return server
    raise LookupError(f"no server of {suite} has {tool}")
