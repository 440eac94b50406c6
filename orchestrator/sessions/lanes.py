"""How many calls a server gets at a time, and how many a minute: waits stand before every decision.

Who waits here has been given nothing yet: snapshot, policy and ledger are looked at when the wait is over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import CoroutineType
from typing import Any, Final, TypeAlias

import anyio

from orchestrator.broker import AgentView
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason

__all__ = ["Lanes", "Road", "ServerCap"]

WAITING_MAX: Final = 1_000
"""Calls that wait for one server; further ones are refused, so that nothing grows without end."""

Road: TypeAlias = "Callable[[AgentView, Call], CoroutineType[Any, Any, UntrustedContent]]"
"""What makes a call: the broker's own, or one with waits before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCap:
    """At most so many calls of a server at a time, and so many begun in a minute. None: no such cap."""

    parallel: int | None = None
    per_minute: int | None = None

    def __post_init__(self) -> None:
        for value in (self.parallel, self.per_minute):
            if value is not None and value < 1:
                raise ConfigError(
                    "a server's cap is a number from 1 on", code="E-SERVER-CAP", fix="use 1 or more"
                )


class _Lane:
    def __init__(self, cap: ServerCap) -> None:
        self._room = None if cap.parallel is None else anyio.Semaphore(cap.parallel)
        self._every = None if cap.per_minute is None else 60.0 / cap.per_minute
        self._burst = max(1, (cap.per_minute or 0) // 60)
        self._free_at = 0.0
        self._waiting = 0

    @asynccontextmanager
    async def place(self, server: str) -> AsyncGenerator[None]:
        """Wait for a place; it is free again at the end of the block."""
        if self._waiting >= WAITING_MAX:
            raise AuthorityError(
                f"{self._waiting} calls wait for server {server!r} already",
                reason=DenyReason.BUDGET_SPENT,
            )
        self._waiting += 1
        try:
            await self._turn()
            if self._room is not None:
                await self._room.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            if self._room is not None:
                self._room.release()

    async def _turn(self) -> None:
        """Take the next place in time: a second's worth may go at once, then one after the other."""
        if self._every is None:
            return
        now = anyio.current_time()
        self._free_at = max(self._free_at, now - (self._burst - 1) * self._every)
        mine, self._free_at = self._free_at, self._free_at + self._every
        if mine > now:
            await anyio.sleep_until(mine)


class Lanes:
    """The road of a session's calls, with a wait where a server has a cap."""

    def __init__(self, road: Road, caps: Mapping[str, ServerCap]) -> None:
        self._road = road
        self._lanes = {server: _Lane(cap) for server, cap in caps.items()}

    def call(self, view: AgentView, call: Call) -> CoroutineType[Any, Any, UntrustedContent]:
        """Wait for a place, then make the call. Awaiting it raises as the broker does."""
        lane = self._lanes.get(call.server)
        return self._road(view, call) if lane is None else self._in_turn(lane, view, call)

    async def _in_turn(self, lane: _Lane, view: AgentView, call: Call) -> UntrustedContent:
        async with lane.place(call.server):
            return await self._road(view, call)
