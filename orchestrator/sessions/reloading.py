"""What a change of configuration did. A value; it changes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.broker import Revocation
from orchestrator.sessions.servers import ServerConnection

__all__ = ["Reload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """What became of a change of configuration. It has happened when this value exists.

    `revocations` are of the servers that are gone or replaced; `started` are the new ones.
    """

    revocations: tuple[Revocation, ...]
    started: tuple[ServerConnection, ...]

    async def ready(self) -> None:
        """Return once each new server has listed what it offers, or has failed."""
        for connection in self.started:
            await connection.ready.wait()
