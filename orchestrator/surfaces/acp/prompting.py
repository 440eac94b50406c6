"""One prompt of an editor, from its arrival to its stop reason. Knows neither the session nor the wire."""

from __future__ import annotations

from typing import Any

import anyio

from orchestrator.sessions.tasks import Task
from orchestrator.surfaces.acp.ending import StopReason
from orchestrator.surfaces.acp.errors import RequestError
from orchestrator.surfaces.acp.params import PromptRequest
from orchestrator.surfaces.acp.turn import TurnView

__all__ = ["Turn"]


class Turn:
    """One prompt, and how it ends. `scope` holds what comes before its task; `task` is the rest.

    `over` is set once nobody waits for an answer of its person any more.
    """

    def __init__(self, request: PromptRequest, view: TurnView) -> None:
        self.request = request
        self.view = view
        self.scope = anyio.CancelScope()
        self.cancelled = False
        self.task: Task[Any] | None = None
        self.ended = anyio.Event()
        self.over = anyio.Event()
        self._end: StopReason | RequestError | None = None

    def cancel(self) -> None:
        """Stop it. The agent's authority is gone when this returns. Idempotent."""
        self.cancelled = True
        self.over.set()
        if self.task is None:
            self.scope.cancel()
        else:
            self.task.cancel()

    def begun(self, task: Task[Any]) -> None:
        """Note the task that does it. A cancel that came before holds for it."""
        self.task = task
        if self.cancelled:
            task.cancel()

    def settle(self, end: StopReason | RequestError) -> None:
        """Note how it ended; only the first word counts."""
        if self._end is None:
            self._end = end
            self.over.set()
            self.ended.set()

    async def stopped(self) -> StopReason:
        """Return how it ended. Raises RequestError if it failed."""
        await self.ended.wait()
        if isinstance(self._end, RequestError):
            raise self._end
        return self._end or StopReason.CANCELLED
