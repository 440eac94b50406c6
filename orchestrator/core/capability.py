"""What may be invoked: an identity only, never a client, a transport or a credential."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from orchestrator.core.ids import ServerName

__all__ = ["BUILTIN_SERVER", "CapabilityKind", "CapabilityRef"]

BUILTIN_SERVER = ServerName("remit")
"""The label under which the built-in tools stand in snapshots and policies. No server may have it."""


class CapabilityKind(Enum):
    """MCP's kinds, with its own words."""

    TOOL = "tool"
    RESOURCE = "resource"
    RESOURCE_TEMPLATE = "resource_template"
    PROMPT = "prompt"


@dataclass(frozen=True, slots=True)
class CapabilityRef:
    """One thing of one server, at one definition. Keyed by the raw (server, kind, name).

    `digest` is the SHA-256 of its definition as the server sent it, in hexadecimal.
    """

    server: ServerName
    kind: CapabilityKind
    name: str
    digest: str

    def __str__(self) -> str:
        return f"{self.server}/{self.name}"
