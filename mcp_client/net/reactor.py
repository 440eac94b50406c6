"""What the shells ask of the event loop, by one name on asyncio and on trio; it knows no protocol.

On asyncio these are the loop's own methods and futures: nothing stands in between.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar, TypeVarTuple

__all__ = ["Reactor", "TimerHandle", "Waiter", "open_reactor"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class TimerHandle(Protocol):
    """A function that waits for its time."""

    def cancel(self) -> None:
        """Forget the function. Harmless if it ran already or was cancelled before."""
        ...


class Waiter(Protocol[T]):
    """One value or error, awaited by one task.

    If the task that awaits it is cancelled, the waiter is done: whoever wants to settle it asks
    `done()` first, in the same step. A waiter that was settled before its task was cancelled
    keeps what it was settled with.
    """

    def done(self) -> bool:
        """True once it was settled, or its task was cancelled."""
        ...

    def set_result(self, value: T, /) -> None:
        """Settle it with a value; its task goes on in a later step. It must not be done."""
        ...

    def set_exception(self, error: BaseException, /) -> None:
        """Settle it with an error, raised where it is awaited. It must not be done."""
        ...

    def __await__(self) -> Generator[object, None, T]:
        """Wait for it. Returns at once, without letting others run, if it is settled already."""
        ...


class Reactor(Protocol):
    """Steps, time and descriptors. Every function is synchronous and belongs to the loop's thread.

    What a function that was handed in raises is reported by the loop and ends nothing else.
    """

    def now(self) -> float:
        """Return the loop's monotonic time in seconds."""
        ...

    def soon(self, fn: Callable[[*Ts], object], /, *args: *Ts) -> object:
        """Run `fn(*args)` in a later step, in the order of asking."""
        ...

    def at(self, when: float, fn: Callable[[], object], /) -> TimerHandle:
        """Run `fn()` in a step at or after `when`, a time of `now()`."""
        ...

    def waiter(self) -> Waiter[T]:  # pyright: ignore[reportInvalidTypeVarUse]  # by its use
        """Return a new waiter."""
        ...

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        """Run `fn()` in each turn of the loop in which `fd` can be read or is at its end.

        Raises NotImplementedError on a loop that has no descriptors.
        """
        ...

    def unwatch_read(self, fd: int, /) -> object:
        """Stop watching; `fn` is not run again. Harmless if `fd` is not watched."""
        ...

    def watch_write(self, fd: int, fn: Callable[[], object], /) -> None:
        """Run `fn()` in each turn of the loop in which `fd` can be written or is broken.

        Raises NotImplementedError on a loop that has no descriptors.
        """
        ...

    def unwatch_write(self, fd: int, /) -> object:
        """Stop watching; `fn` is not run again. Harmless if `fd` is not watched."""
        ...

    def closing(self, fd: int, /) -> None:
        """End all watches of `fd`. To be called right before it is closed."""
        ...


@asynccontextmanager
async def open_reactor() -> AsyncGenerator[Reactor]:
    """Yield the reactor of the running loop. It works until the block ends, cancelled or not."""
    if _in_trio():
        from mcp_client.net.trio_reactor import TrioReactor

        on_trio = TrioReactor()
        on_trio.start()
        try:
            yield on_trio
        finally:
            on_trio.stop()
    else:
        yield _AsyncioReactor(asyncio.get_running_loop())


def _in_trio() -> bool:
    if "trio" not in sys.modules:  # it is not one of our dependencies
        return False
    import trio.lowlevel

    return trio.lowlevel.in_trio_task()


class _AsyncioReactor:
    __slots__ = ("_loop", "at", "now", "soon", "unwatch_read", "unwatch_write", "waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # bound here so that a call of the hot path is the loop's own function
        own = getattr(loop.time, "__func__", None) is not asyncio.BaseEventLoop.time
        self.now = loop.time if own else time.monotonic  # what the usual one calls
        self.soon = loop.call_soon
        self.at = loop.call_at
        self.waiter = loop.create_future
        self.unwatch_read = loop.remove_reader
        self.unwatch_write = loop.remove_writer

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        self._loop.add_reader(fd, fn)

    def watch_write(self, fd: int, fn: Callable[[], object], /) -> None:
        self._loop.add_writer(fd, fn)

    def closing(self, fd: int, /) -> None:
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)
