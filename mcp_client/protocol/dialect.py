"""Which versions and extensions are spoken with one server, as its configuration says; no messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_client.protocol.eras import EraMemory, Opening
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.modern.caching import ResponseCache
from mcp_client.protocol.modern.extensions import SKILLS, TASKS, Settings
from mcp_client.protocol.modern.limits import ModernLimits

__all__ = ["Dialect"]


def _new_cache() -> ResponseCache:
    return ResponseCache(ModernLimits())


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What a configuration says about the protocol. Extensions are off unless it turns them on.

    Attributes:
        opening: the first message.
        tasks: calls may become tasks, as an experiment of 2025-11-25 and as an extension.
        skills: the server may offer skills.
        bounds: the bounds of all that.
        memory: what the server turned out to speak. A configuration that is loaded anew, or
            belongs to another authority, gets a new one.
        credential: stands for whoever answers are kept for: another login is another one.
        cache: answers kept for their time to live.

    Raises LocalProtocolError for an empty credential.
    """

    opening: Opening = Opening.LEGACY_FIRST
    tasks: bool = False
    skills: bool = False
    bounds: ModernLimits = field(default_factory=ModernLimits)
    memory: EraMemory = field(default_factory=EraMemory, compare=False)
    credential: str = "connection"
    cache: ResponseCache = field(default_factory=_new_cache, compare=False)

    def __post_init__(self) -> None:
        if not self.credential:
            raise LocalProtocolError("a credential is named by something", stage="start")

    @property
    def offers(self) -> Mapping[str, Settings]:
        """The extensions that are on, with our settings."""
        wanted = {TASKS: self.tasks, SKILLS: self.skills}
        return {name: {} for name, on in wanted.items() if on}
