"""Finds the sessions that run, and speaks with one over its control socket. Acts only as it is told."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, cast

import anyio

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.ids import RunId
from orchestrator.core.nearest import did_you_mean
from orchestrator.sessions.control.links import Link
from orchestrator.sessions.control.listening import SOCKET_NAME, short_address
from orchestrator.sessions.control.wire import ANSWER_BYTES_MAX, Lines, decode, encode, error_from
from orchestrator.sessions.state import StatePaths, refuse_shared

__all__ = ["ControlClient", "EventStream", "connected", "find_live", "live_runs"]

_SECONDS_MAX: Final = 30.0
"""An answer: a kill waits a second for frames that had begun."""
_LOOKED_AT_MAX: Final = 200
"""Sockets that are tried; those of sessions that were killed stay behind."""


def live_runs(paths: StatePaths) -> tuple[str, ...]:
    """Return the runs whose session answers now, the newest first."""
    names = sorted((file.parent.name for file in paths.runs.glob(f"*/{SOCKET_NAME}")), reverse=True)
    live: list[str] = []
    for name in names[:_LOOKED_AT_MAX]:
        try:
            _connect(paths, name).close()
        except (OSError, ConfigError):
            continue
        live.append(name)
    return tuple(live)


def find_live(paths: StatePaths, run: str, *, alone: bool = False) -> str:
    """Return the run that is meant: the one that is named, or the newest. Raises ConfigError.

    With `alone` a run has to be named where several are at work: an act must not hit another one.
    """
    live = list(live_runs(paths))
    if run:
        if run in live:
            return run
        raise ConfigError(
            f"no session of the run {safe_line(run)!r} is at work",
            code="E-CONTROL-NONE",
            fix=did_you_mean(run, live) if live else "see `remit runs list` for those that ended",
        )
    if not live:
        raise ConfigError(
            "no session is at work",
            code="E-CONTROL-NONE",
            fix="start one: remit run PIPELINE; what ended is in `remit runs list`",
        )
    if alone and len(live) > 1:
        raise ConfigError(
            f"{len(live)} sessions are at work",
            code="E-CONTROL-WHICH",
            why="the same number may stand for something else in each",
            fix=f"name one: --run {live[0]}",
        )
    return live[0]


@asynccontextmanager
async def connected(paths: StatePaths, run: str) -> AsyncGenerator[ControlClient]:
    """Speak with the session of a run until the block ends. Raises ConfigError if it is not at work."""
    try:
        raw = _connect(paths, run)
    except OSError:
        raise _gone(run) from None
    async with Link(raw) as link:
        yield ControlClient(link, run)


class ControlClient:
    """One connection: a question after the other, or events."""

    def __init__(self, link: Link, run: str) -> None:
        self.run = run
        self._link = link
        self._lines = Lines(ANSWER_BYTES_MAX)
        self._whole: list[bytes] = []
        self._number = 0
        self._turn = anyio.Lock()

    async def do(self, operation: str, **arguments: object) -> dict[str, object]:
        """Return what an operation came to.

        Raises RemitError as the session did; ConfigError (`E-CONTROL-GONE`) if it has ended.
        """
        async with self._turn:
            with anyio.move_on_after(_SECONDS_MAX):
                number = await self._ask(operation, arguments)
                while True:
                    frame = await self.receive()
                    if frame.get("id") in {number, None}:
                        return _content(frame)
        raise _gone(self.run)

    async def follow(self, since: int = 0) -> EventStream:
        """Return the events from behind `since`; nothing else can be asked on this connection then."""
        await self.do("events", since=since)
        return EventStream(self.receive)

    async def receive(self) -> dict[str, object]:
        """Return the next frame. Raises ConfigError (`E-CONTROL-GONE`) if there is no more."""
        while not self._whole:
            data = await self._link.receive()
            if not data:
                raise _gone(self.run)
            self._whole.extend(self._lines.feed(data))
        return decode(self._whole.pop(0))

    async def _ask(self, operation: str, arguments: dict[str, object]) -> int:
        self._number += 1
        frame = {**arguments, "op": operation, "id": self._number}
        with suppress(OSError):  # it may have said why before it closed
            await self._link.send(encode(frame, bytes_max=ANSWER_BYTES_MAX))
        return self._number


class EventStream(AsyncIterator[dict[str, object]]):
    """The events of a session as they come, until it ends."""

    def __init__(self, receive: Callable[[], Awaitable[dict[str, object]]]) -> None:
        self._receive = receive

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> dict[str, object]:
        while True:
            try:
                event = (await self._receive()).get("event")
            except ConfigError:
                raise StopAsyncIteration from None
            if isinstance(event, dict):
                return cast("dict[str, object]", event)


def _content(frame: dict[str, object]) -> dict[str, object]:
    told = frame.get("ok")
    if isinstance(told, dict):
        return cast("dict[str, object]", told)
    error: RemitError = error_from(frame.get("error"))
    raise error


def _connect(paths: StatePaths, run: str) -> socket.socket:
    """Return a connected socket. Raises OSError; ConfigError where others could have put it there."""
    folder: Path = paths.run(RunId(run)).folder
    refuse_shared(folder)
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.settimeout(2.0)
        with short_address(folder) as address:
            made.connect(address)
    except OSError:
        made.close()
        raise
    return made


def _gone(run: str) -> ConfigError:
    return ConfigError(
        f"the session of the run {safe_line(run)!r} is not at work any more",
        code="E-CONTROL-GONE",
        fix="see `remit runs list`",
    )
