"""The keys of an entry: what is known, what is ignored with a warning, and what makes it unusable."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.entries import ConfigWarning, ServerTransport

__all__ = [
    "KNOWN",
    "LOGIN",
    "NARROWING",
    "REMOTE",
    "STARTED",
    "TRANSPORTS",
    "WIDENING",
    "unknown_key",
]

KNOWN: Final = frozenset(
    {
        "args", "command", "cwd", "description_trust", "disabled", "enabled", "env", "isolate",
        "protocol", "roots", "sandbox", "timeout", "type",
    }
)  # fmt: skip
"""Keys of a server that is started; of one at a URL, those that are not `STARTED`."""
STARTED: Final = frozenset({"args", "command", "cwd", "env", "sandbox"})
"""Keys that only a server which is started can have."""
REMOTE: Final = frozenset({"auth", "headers", "headersHelper", "httpUrl", "oauth", "url"})
"""Keys that only a server at a URL can have."""
LOGIN: Final = frozenset({"auth"})
"""Keys of other clients about logging in: ignored with a warning that says what to write."""
WIDENING: Final = frozenset(
    {"alwaysAllow", "autoApprove", "autoApproveTools", "default_tools_approval_mode", "trust"}
)
"""Keys of other clients that would widen what may be done: ignored with a warning."""
NARROWING: Final = frozenset(
    {
        "disabledTools", "disabled_tools", "enabled_tools", "excludeTools", "includeTools",
        "sandboxEnabled",
    }
)  # fmt: skip
"""Keys of other clients that would narrow it and are not supported: the entry is unusable."""


TRANSPORTS: Final = {
    "stdio": ServerTransport.STDIO,
    "http": ServerTransport.HTTP,
    "streamable-http": ServerTransport.HTTP,
    "streamable_http": ServerTransport.HTTP,
    "streamableHttp": ServerTransport.HTTP,
    "sse": ServerTransport.SSE,
}
"""What `type` may say, in the spellings of other clients."""


def unknown_key(table: Table, name: str, known: Collection[str]) -> ConfigWarning:
    """Return the warning about a key that nobody knows, with the nearest that is known."""
    shown = safe_line(name, reveal=True, chars_max=80)
    return ConfigWarning(
        f"unknown key {shown!r} is ignored", table.where(name), did_you_mean(name, known)
    )
