"""The reactor's functions on trio: a pump and one task per watched descriptor; imported on trio only."""

from __future__ import annotations

import functools
import heapq
import itertools
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, TypeVar, TypeVarTuple

import outcome
import trio
import trio.lowlevel

__all__ = ["TrioReactor"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_LOG = logging.getLogger(__name__)


class _Waiter(Generic[T]):
    __slots__ = ("_done", "_outcome", "_task")

    def __init__(self) -> None:
        self._done = False
        self._outcome: outcome.Value[T] | outcome.Error | None = None
        self._task: trio.lowlevel.Task | None = None

    def done(self) -> bool:
        return self._done

    def set_result(self, value: T, /) -> None:
        self._settle(outcome.Value(value))

    def set_exception(self, error: BaseException, /) -> None:
        self._settle(outcome.Error(error))

    def _settle(self, result: outcome.Value[T] | outcome.Error) -> None:
        if self._done:
            raise RuntimeError("the waiter is done already")
        self._done = True
        if self._task is None:
            self._outcome = result
        else:
            trio.lowlevel.reschedule(self._task, result)

    def __await__(self) -> Generator[object, None, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        if self._task is not None:
            raise RuntimeError("a waiter is awaited by one task, once")
        self._task = trio.lowlevel.current_task()
        if self._outcome is not None:
            return self._outcome.unwrap()
        return await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._done = True
        return trio.lowlevel.Abort.SUCCEEDED


class _Timer:
    __slots__ = ("fn",)

    def __init__(self, fn: Callable[[], object]) -> None:
        self.fn: Callable[[], object] | None = fn

    def cancel(self) -> None:
        self.fn = None


class TrioReactor:
    """See `mcp_client.net.reactor.Reactor`. Its system tasks run from `start` to `stop`.

    They are system tasks, not children of a nursery: whoever closes a connection after its own
    cancellation still needs them, and a nursery would wrap the errors of its block in a group.
    """

    def __init__(self) -> None:
        self._ready: deque[Callable[[], object]] = deque()
        self._timers: list[tuple[float, int, _Timer]] = []
        self._order = itertools.count()
        self._parked: trio.lowlevel.Task | None = None
        self._pumping = trio.CancelScope()
        self._reads: dict[int, trio.CancelScope] = {}
        self._writes: dict[int, trio.CancelScope] = {}

    def start(self) -> None:
        """Start the pump."""
        trio.lowlevel.spawn_system_task(self._pump)

    def stop(self) -> None:
        """End the pump and all watches; what still waits is forgotten."""
        self._pumping.cancel()
        for fd in [*self._reads]:
            self.unwatch_read(fd)
        for fd in [*self._writes]:
            self.unwatch_write(fd)

    def now(self) -> float:
        """Return trio's time."""
        return trio.current_time()

    def soon(self, fn: Callable[[*Ts], object], /, *args: *Ts) -> None:
        """Run `fn(*args)` in a later step of the pump."""
        self._ready.append(functools.partial(fn, *args))
        self._wake()

    def at(self, when: float, fn: Callable[[], object], /) -> _Timer:
        """Run `fn()` in a step of the pump at or after `when`."""
        timer = _Timer(fn)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        if self._timers[0][2] is timer:
            self._wake()
        return timer

    def waiter(self) -> _Waiter[Any]:
        """Return a new waiter, of the type that its use gives it (as `loop.create_future` does)."""
        return _Waiter()

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        """Run `fn()` again and again while `fd` can be read."""
        _watch(self._reads, fd, trio.lowlevel.wait_readable, fn)

    def unwatch_read(self, fd: int, /) -> None:
        """Stop watching."""
        _unwatch(self._reads, fd)

    def watch_write(self, fd: int, fn: Callable[[], object], /) -> None:
        """Run `fn()` again and again while `fd` can be written."""
        _watch(self._writes, fd, trio.lowlevel.wait_writable, fn)

    def unwatch_write(self, fd: int, /) -> None:
        """Stop watching."""
        _unwatch(self._writes, fd)

    def closing(self, fd: int, /) -> None:
        """End all watches of `fd`, and tell trio, which may reuse the number."""
        _unwatch(self._reads, fd)
        _unwatch(self._writes, fd)
        trio.lowlevel.notify_closing(fd)

    async def _pump(self) -> None:
        with self._pumping:
            while True:
                self._collect_due()
                for _ in range(len(self._ready)):
                    _run(self._ready.popleft())
                if self._ready:
                    await trio.lowlevel.checkpoint()
                else:
                    await self._park()

    def _collect_due(self) -> None:
        now = trio.current_time()
        while self._timers and (self._timers[0][2].fn is None or self._timers[0][0] <= now):
            fn = heapq.heappop(self._timers)[2].fn
            if fn is not None:
                self._ready.append(fn)

    async def _park(self) -> None:
        with trio.CancelScope() as until_due:
            if self._timers:
                until_due.deadline = self._timers[0][0]
            self._parked = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def _unpark(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        if self._parked is not None:
            task, self._parked = self._parked, None
            trio.lowlevel.reschedule(task)


def _run(fn: Callable[[], object]) -> None:
    try:
        fn()
    except Exception:  # noqa: BLE001  # as asyncio does: an error in a system task would end the whole loop
        _LOG.exception("a function of the reactor raised")


def _watch(
    watches: dict[int, trio.CancelScope],
    fd: int,
    wait: Callable[[int], Awaitable[None]],
    fn: Callable[[], object],
) -> None:
    _unwatch(watches, fd)
    scope = watches[fd] = trio.CancelScope()

    async def watching() -> None:
        with scope:
            # asked before each wait too: the descriptor may be closed by then
            while not scope.cancel_called:
                try:
                    await wait(fd)
                except Exception:  # noqa: BLE001  # as in _run
                    _LOG.exception("descriptor %d cannot be watched", fd)
                    return
                if not scope.cancel_called:
                    _run(fn)

    trio.lowlevel.spawn_system_task(watching)


def _unwatch(watches: dict[int, trio.CancelScope], fd: int) -> None:
    scope = watches.pop(fd, None)
    if scope is not None:
        scope.cancel()
