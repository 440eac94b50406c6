"""What an agent has of the world: the tools it is shown and one way to call them. No client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.content import UntrustedContent
from orchestrator.core.ids import AgentId

__all__ = ["View"]


class View(Protocol):
    """One agent's side of the broker. It carries no right: the broker decides each call anew."""

    @property
    def agent(self) -> AgentId:
        """Whose view this is."""
        ...

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """What the agent's snapshot shows; empty where no view was admitted.

        Model-facing names are unique, at most 64 of `[A-Za-z0-9_-]`: `mcp_<server>_<tool>`.
        """
        ...

    async def call(self, call: Call) -> UntrustedContent:
        """Make one call.

        Raises:
            AuthorityError: it was denied or refused; says why, and what the server has seen.
            CallFailedError: it went out, or should have, and ended without a result.
        """
        ...
