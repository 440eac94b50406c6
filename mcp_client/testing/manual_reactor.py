"""A loop whose steps and time a test turns by hand; it has no descriptors and never waits."""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, Generic, NoReturn, TypeVar, TypeVarTuple, cast

import anyio
import anyio.lowlevel

__all__ = ["ManualReactor"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _ManualWaiter(Generic[T]):
    def __init__(self) -> None:
        self._settled = anyio.Event()
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, value: T, /) -> None:
        self._done, self._value = True, value
        self._settled.set()

    def set_exception(self, error: BaseException, /) -> None:
        self._done, self._error = True, error
        self._settled.set()

    def __await__(self) -> Generator[object, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        try:
            await self._settled.wait()
        finally:
            self._done = True
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


class _ManualTimer:
    def __init__(self, fn: Callable[[], object]) -> None:
        self.fn: Callable[[], object] | None = fn

    def cancel(self) -> None:
        self.fn = None


class ManualReactor:
    """A `Reactor` whose steps and time a test turns by hand. It has no descriptors.

    `run` takes steps until none is left; `advance` moves the time and then does the same.
    """

    def __init__(self) -> None:
        self._now = 1_000.0
        self._ready: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Return the time to which it was advanced."""
        return self._now

    def soon(self, fn: Callable[[*Ts], object], /, *args: *Ts) -> None:
        """Run `fn(*args)` in a later step."""
        self._ready.append(lambda: fn(*args))

    def at(self, when: float, fn: Callable[[], object], /) -> _ManualTimer:
        """Run `fn()` once the time has come."""
        timer = _ManualTimer(fn)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def waiter(self) -> _ManualWaiter[Any]:
        """Return a new waiter, of the type that its use gives it."""
        return _ManualWaiter()

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        """Raise NotImplementedError: it has no descriptors."""
        raise NotImplementedError

    def unwatch_read(self, fd: int, /) -> None:
        """Do nothing."""

    def watch_write(self, fd: int, fn: Callable[[], object], /) -> None:
        """Raise NotImplementedError: it has no descriptors."""
        raise NotImplementedError

    def unwatch_write(self, fd: int, /) -> None:
        """Do nothing."""

    def closing(self, fd: int, /) -> None:
        """Do nothing."""

    @property
    def timers(self) -> int:
        """Timers that were set and neither ran nor were cancelled."""
        return sum(timer.fn is not None for _, _, timer in self._timers)

    def step(self) -> bool:
        """Take one step; False if there is none."""
        if not self._ready:
            return False
        self._ready.popleft()()
        return True

    def run(self) -> None:
        """Take steps until there are none."""
        while self.step():
            pass

    async def finish(self, fn: Callable[[], Awaitable[T]]) -> T:
        """Run an async function to its end, with steps taken whenever it waits for one."""
        ended: list[Callable[[], T]] = []

        async def running() -> None:
            try:
                value = await fn()
            except Exception as error:  # noqa: BLE001  # raised again, where it was asked for
                ended.append(partial(_raise, error))
            else:
                ended.append(lambda: value)

        async with anyio.create_task_group() as group:
            group.start_soon(running)
            while not ended:
                self.run()
                await anyio.lowlevel.checkpoint()
        return ended[0]()

    def advance(self, seconds: float) -> None:
        """Take steps until there are none, with the time moved on, timer by timer."""
        end = self._now + seconds
        self.run()
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            if timer.fn is not None:
                timer.fn()
            self.run()
        self._now = end


def _raise(error: Exception) -> NoReturn:
    raise error
