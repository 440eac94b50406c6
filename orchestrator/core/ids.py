"""Identities, each a type of its own, and where new ones come from."""

from __future__ import annotations

from typing import NewType, Protocol

__all__ = ["AgentId", "CallId", "IdSource", "RunId", "ServerName"]

AgentId = NewType("AgentId", str)
"""An agent's path below its session: `parent`, `historian`, `historian/helper`."""

CallId = NewType("CallId", str)
"""One attempt to call a capability, unique in its run. Appears in audit, spans and errors."""

RunId = NewType("RunId", str)
"""One run of a session; the name of its folder below the state directory."""

ServerName = NewType("ServerName", str)
"""The label that the host gave to a server. What the server calls itself is never an identity."""


class IdSource(Protocol):
    """Where new identifiers come from; a simulation hands in a seeded one so that it replays."""

    def new(self) -> str:
        """Return an identifier not returned before: lower-case letters and digits, 8 to 32."""
        ...
