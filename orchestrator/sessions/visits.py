"""The addresses that one connection's server wants visited, until it tells that a visit is over. Opens none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcp_client.protocol.limits import ClientLimits
from orchestrator.agents.events import EventListener, VisitEnded
from orchestrator.broker import AgentView
from orchestrator.core.ids import AgentId, ServerName

__all__ = ["VISITS_MAX", "Visits"]

VISITS_MAX: Final = ClientLimits().elicitations_max
"""Visits of one connection whose end may still be told: as many as the client takes note of."""


class Visits:
    """The visits that one connection's server may tell the end of, by its own name and by one of ours."""

    def __init__(
        self, server: ServerName, *, new_id: Callable[[], str], emit: EventListener | None
    ) -> None:
        self._server = server
        self._new_id = new_id
        self._emit = emit
        self._open: dict[str, tuple[AgentId, str]] = {}

    def begin(self, theirs: str, view: AgentView | None) -> str:
        """Note a visit that a person is asked for; return what it is called here."""
        agent, ours = view.agent if view is not None else AgentId(""), self._new_id()
        self._open[theirs] = agent, ours
        while len(self._open) > VISITS_MAX:
            del self._open[next(iter(self._open))]
        return ours

    def forget(self, theirs: str) -> None:
        """Nobody went there."""
        self._open.pop(theirs, None)

    def ended(self, theirs: str) -> None:
        """The server tells that it is over: once, and only of one that somebody was asked for."""
        agent, ours = self._open.pop(theirs, (AgentId(""), ""))
        if ours and self._emit is not None:
            self._emit(VisitEnded(agent=agent, server=self._server, visit=ours))
