"""Stands where an agent's model would be, if its turns come from somebody else's framework."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final

from orchestrator.agents.model import AgentTask, Conversation, RequestGate
from orchestrator.core.calls import ToolSpec
from orchestrator.core.errors import ConfigError

__all__ = ["GUEST", "GuestModel"]


@dataclass(frozen=True, slots=True)
class GuestModel:
    """Makes an agent that only a guest can act for: it is never asked for a turn."""

    name: str = "guest"
    provider: str = "guest"

    def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AbstractAsyncContextManager[Conversation]:
        """Raise ConfigError: there is nobody here to converse with."""
        raise ConfigError(
            f"agent {task.agent!r} belongs to a guest, whose framework asks the model",
            code="E-GUEST-MODEL",
            fix="hand it to a SnapshotView, or make an agent with a model",
        )


GUEST: Final = GuestModel()
"""The model of agents that are made for guests."""
