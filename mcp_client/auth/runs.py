"""One piece of work at a time, in a task of its own, for all who wait for it; it does not know what."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
import anyio.abc

from mcp_client.auth.errors import AuthFault, AuthorizationFailedError
from mcp_client.net.groups import tasks_of_block

__all__ = ["SharedRun"]


class _Run:
    """Work under way, and how it ended."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.scope = anyio.CancelScope()
        self.waiters = 0
        self.error: Exception | None = None


class SharedRun:
    """Has work done by a task that is nobody's who waits: a call that is given up ends no other's.

    Work for which nobody waits any more is given up, but for what is done `whole`. Nothing is done
    outside of `open`.

    Args:
        closing_seconds: how long `whole` work may take once `open` is left.
    """

    def __init__(self, *, closing_seconds: float) -> None:
        self._closing_seconds = closing_seconds
        self._group: anyio.abc.TaskGroup | None = None
        self._run: _Run | None = None
        self._whole: anyio.CancelScope | None = None

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[None]:
        """Own the task; it has ended after the block."""
        async with tasks_of_block() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                if self._whole is not None:
                    self._whole.deadline = anyio.current_time() + self._closing_seconds

    @property
    def is_busy(self) -> bool:
        """Whether something is under way."""
        return self._run is not None

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin, whether anybody waits for it or not. Nothing may be under way."""
        run = self._begin(work)
        run.waiters += 1  # itself: it is not given up

    async def do(self, work: Callable[[], Awaitable[None]]) -> None:
        """Begin, and wait for it; raise what it raises. Nothing may be under way."""
        await self._wait(self._begin(work))

    async def join(self) -> None:
        """Wait for what is under way; raise what it raises."""
        if self._run is not None:
            await self._wait(self._run)

    @contextmanager
    def whole(self) -> Generator[None]:
        """Do what would be lost for good if it were given up in the middle."""
        with anyio.CancelScope(shield=True, deadline=math.inf) as scope:
            self._whole = scope
            try:
                yield
            finally:
                self._whole = None
        if scope.cancelled_caught:
            raise AuthorizationFailedError(AuthFault.UNREACHABLE, "it took too long to close")

    def _begin(self, work: Callable[[], Awaitable[None]]) -> _Run:
        assert self._run is None
        if self._group is None:
            raise AuthorizationFailedError(AuthFault.FLOW, "the connection is closed")
        run = self._run = _Run()
        self._group.start_soon(self._work, run, work)
        return run

    async def _work(self, run: _Run, work: Callable[[], Awaitable[None]]) -> None:
        try:
            with run.scope:
                await work()
        except Exception as error:  # noqa: BLE001  # told to all who wait, a guard's own among them
            run.error = error
        finally:
            self._run = None
            run.over.set()

    async def _wait(self, run: _Run) -> None:
        run.waiters += 1
        try:
            await run.over.wait()
        finally:
            run.waiters -= 1
            if not run.waiters:
                run.scope.cancel()
        if run.error is not None:
            raise run.error
