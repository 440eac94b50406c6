# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The seeded loop takes the place of asyncio's own step, and so works on its ready queue.
"""Schedules that replay, and stand-ins for time and names: for our tests and for those of users.

Nothing here is used by the product itself.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from random import Random
from typing import TypeVar
from weakref import WeakKeyDictionary

import anyio.to_thread

__all__ = ["CountingIds", "Deadlock", "LoopClock", "SeededLoop", "elapse", "run_seeded"]

T = TypeVar("T")


class Deadlock(RuntimeError):  # noqa: N818  # the word says it
    """Nothing is ready, nothing is scheduled, and the main coroutine is not done."""


class SeededLoop(asyncio.BaseEventLoop):
    """An event loop without descriptors: shuffled steps and virtual time, both from one seed.

    What is ready at the same time runs in an order that the seed decides. Time stands still while
    anything is ready, and then jumps to the next timer: a wait of an hour costs nothing.

    Attributes:
        steps: callbacks run so far.
        before_step: called before each callback with its number; how a test injects something at
            every point of a schedule.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._random = Random(seed)
        self._virtual = 0.0
        self._numbers: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._tasks_seen = 0
        self.steps = 0
        self.before_step: Callable[[int], None] | None = None

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual

    def _run_once(self) -> None:
        self._take_due()
        if not self._ready:
            if not self._scheduled:
                message = "nothing is ready and nothing is scheduled"
                raise Deadlock(message)
            self._virtual = max(self._virtual, self._scheduled[0]._when)
            self._take_due()
        batch = [handle for handle in self._ready if not handle._cancelled]
        self._ready.clear()
        batch.sort(key=self._number_of)
        self._random.shuffle(batch)
        for handle in batch:
            if handle._cancelled:
                continue
            self.steps += 1
            if self.before_step is not None:
                self.before_step(self.steps)
            if not handle._cancelled:
                handle._run()

    def _number_of(self, handle: asyncio.Handle) -> int:
        """Return the number of the task that a step is of, or tells the end of; 0 for no task.

        Whoever cancels a scope goes through a set of tasks, whose order is that of their addresses:
        no seed would say what became ready first. A task is numbered at its first step.
        """
        for owner in (getattr(handle._callback, "__self__", None), *(handle._args or ())[:1]):
            if isinstance(owner, asyncio.Task):
                number = self._numbers.get(owner)
                if number is None:
                    self._tasks_seen += 1
                    number = self._numbers[owner] = self._tasks_seen
                return number
        return 0

    def _take_due(self) -> None:
        while self._scheduled:
            handle = self._scheduled[0]
            if not handle._cancelled and handle._when > self._virtual:
                return
            heapq.heappop(self._scheduled)
            handle._scheduled = False
            if not handle._cancelled:
                self._ready.append(handle)

    def _process_events(self, event_list: object) -> None:
        """There are no descriptors."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""


def run_seeded(
    seed: int,
    main: Callable[[], Coroutine[object, object, T]],
    *,
    before_step: Callable[[int], None] | None = None,
) -> T:
    """Run `main` on a loop with this seed and return its result; the same seed, the same schedule.

    What would be done in a worker thread is done in place, in a step of its own.

    Raises:
        Deadlock: it can never end.
        AssertionError: a task was left over when it had ended.
    """
    loop = SeededLoop(seed)
    loop.before_step = before_step
    errors: list[object] = []
    loop.set_exception_handler(lambda _, context: errors.append(context))
    try:
        with _without_threads():
            result = loop.run_until_complete(main())
        loop.before_step = None
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        if left:
            message = f"seed {seed}: tasks were left over: {left}"
            raise AssertionError(message)
        loop.run_until_complete(loop.shutdown_asyncgens())
        if errors:
            message = f"seed {seed}: the loop caught: {errors}"
            raise AssertionError(message)
        return result
    finally:
        loop.close()


@contextmanager
def _without_threads() -> Generator[None]:
    """Let nothing leave for a worker thread: when it came back would be no seed's to say."""
    threaded = anyio.to_thread.run_sync
    anyio.to_thread.run_sync = _in_place
    try:
        yield
    finally:
        anyio.to_thread.run_sync = threaded


async def _in_place(work: Callable[..., T], *arguments: object, **_: object) -> T:
    await asyncio.sleep(0)
    result = work(*arguments)
    await asyncio.sleep(0)
    return result


async def elapse(seconds: float) -> None:
    """Let virtual time pass. Raises RuntimeError on a loop whose time is real: tests do not sleep."""
    if not isinstance(asyncio.get_running_loop(), SeededLoop):
        message = "elapse is for seeded loops only"
        raise RuntimeError(message)
    await asyncio.sleep(seconds)


class LoopClock:
    """The clock of the running asyncio loop: virtual on a seeded one. Wall time starts at 0."""

    def now(self) -> float:
        """Return the loop's time in seconds."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Return the same: there is no calendar in a simulation."""
        return self.now()


class CountingIds:
    """Identifiers in the order of asking, so that a run replays."""

    def __init__(self, prefix: str = "id") -> None:
        self._prefix = prefix
        self._count = 0

    def new(self) -> str:
        """Return the next identifier."""
        self._count += 1
        return f"{self._prefix}{self._count:08d}"
