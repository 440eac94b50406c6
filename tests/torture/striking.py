"""Strikes a flow at one of its await points: it is cancelled there, or what it talks to fails there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from mcp_client.protocol.errors import McpError
from orchestrator import RemitError

__all__ = ["Blow", "Flow", "How", "Ran", "Struck", "strike"]

SECONDS_MAX = 20.0
"""A flow takes some milliseconds; what takes longer than this hangs."""

SETTLE_SECONDS = 5.0


class How(Enum):
    """What happens at the point."""

    CANCEL = "cancel"
    FAIL = "fail"


@dataclass
class Struck:
    """What a flow is handed: where it says how what it talks to can fail."""

    fail: Callable[[], object] = lambda: None
    failed: bool = False
    after: list[Callable[[], Awaitable[object]]] = field(
        default_factory=list[Callable[[], Awaitable[object]]]
    )
    """What must be true once the flow is over, whatever struck it: each raises if it is not."""


Flow = Callable[[Struck], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of it: how many points the flow had, and what is wrong."""

    points: int
    reached: bool
    wrong: str


class _Counted:
    """A coroutine whose every suspension is counted; the one that was chosen is told."""

    def __init__(self, flow: Coroutine[Any, Any, object], at: int, told: Callable[[], None]):
        self._flow = flow
        self._at = at
        self._told = told
        self.points = 0

    def __await__(self) -> Generator[Any, Any, object]:
        step: Callable[[], Any] = lambda: self._flow.send(None)  # noqa: E731
        while True:
            try:
                wanted = step()
            except StopIteration as stop:
                return stop.value
            self.points += 1
            if self.points == self._at:
                self._told()
            try:
                got = yield wanted
                step = _sender(self._flow, got)
            except BaseException as error:  # noqa: BLE001  # it is the flow's own
                step = _thrower(self._flow, error)


def _sender(flow: Coroutine[Any, Any, object], got: object) -> Callable[[], Any]:
    return lambda: flow.send(got)


def _thrower(flow: Coroutine[Any, Any, object], error: BaseException) -> Callable[[], Any]:
    return lambda: flow.throw(error)


@dataclass(frozen=True, slots=True)
class Blow:
    """What happens so many turns of the loop after the blow before it, or after the point."""

    how: How
    turns: int = 0


async def strike(flow: Flow, *blows: Blow, at: int = 0) -> Ran:
    """Run a flow, and strike it from its `at`-th await point on; from its start, if `at` is 0.

    The flow may end as it likes, with an error of ours or without: but it ends, in time, with all
    of its tasks, and has no more descriptors than before.
    """
    before = _descriptors()
    struck, reached, scope = Struck(), anyio.Event(), anyio.CancelScope()
    if at == 0:
        reached.set()
    counted = _Counted(flow(struck), at, reached.set)
    left = list(blows)

    async def hand() -> None:
        await reached.wait()
        while left:
            for _ in range(left[0].turns):
                await anyio.lowlevel.checkpoint()
            if left.pop(0).how is How.CANCEL:
                scope.cancel()
            else:
                struck.failed = True
                struck.fail()

    try:
        with anyio.fail_after(SECONDS_MAX):
            async with anyio.create_task_group() as group:
                group.start_soon(hand)
                with suppress(RemitError, McpError), scope:
                    await counted
                group.cancel_scope.cancel()
            for check in struck.after:
                await check()
    except TimeoutError:
        wrong = "it hangs"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told
        wrong = f"{type(error).__name__}: {error!r}"
    else:
        with anyio.move_on_after(SETTLE_SECONDS):  # a server of the test's own may be slower
            while _descriptors() > before:
                await anyio.lowlevel.checkpoint()
        more = _descriptors() - before
        wrong = f"{more} descriptors are left" if more > 0 else ""
    return Ran(points=counted.points, reached=not left, wrong=wrong)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
