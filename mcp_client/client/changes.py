"""Changes of a list, waited for one refresh at a time; it lists nothing itself."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator

import anyio

from mcp_client.session import ClientSession

__all__ = ["Changes"]


class Changes:
    """The changes of one list that the server told, for one task that refreshes.

    Whatever is told before a refresh begins is in it, however often it is told; two refreshes are
    at least `list_change_seconds_min` apart. It ends with the connection.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._told = anyio.Event()
        self._last = -math.inf

    def tell(self) -> None:
        """The list has changed, or the connection is over."""
        self._told.set()

    async def wait(self) -> None:
        """Wait until the list has changed since the last time, or the connection is over."""
        if self._session.lost is None:
            await self._told.wait()
        self._told = anyio.Event()

    def __aiter__(self) -> AsyncIterator[None]:
        """Go on each time that the list has to be asked for again."""
        return self

    async def __anext__(self) -> None:
        """Wait for the next refresh."""
        session = self._session
        if session.lost is None:
            await self._told.wait()
            pause = self._last + session.limits.list_change_seconds_min - session.reactor.now()
            if pause > 0 and session.lost is None:
                await anyio.sleep(pause)
        if session.lost is not None:
            raise StopAsyncIteration
        self._told = anyio.Event()
        self._last = session.reactor.now()
