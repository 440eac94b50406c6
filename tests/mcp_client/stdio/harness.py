"""What the tests of the stdio transport share: a sink, tickets, guards, and processes to look at."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from mcp_client.net.reactor import Reactor, TimerHandle, Waiter, open_reactor
from mcp_client.ports import SILENT, UNGUARDED, SendGuard
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio import StdioTransport, Supervisor, open_supervisor

__all__ = [
    "BARE",
    "Connection",
    "Guard",
    "RevokedError",
    "Sink",
    "SteppedReactor",
    "Ticket",
    "children",
    "connected",
    "is_alive",
    "opened",
    "supervisors",
    "until_dead",
]

BARE = (sys.executable, "-I", "-S", "-c")
"""A Python that starts fast, for a program that follows."""


DEAD_SECONDS_MAX = 15
"""How long something that would otherwise live on is waited for: only a busy machine takes seconds."""


class RevokedError(Exception):
    """What a guard of the tests raises."""


class Guard:
    """Says yes until it is told otherwise."""

    def __init__(self) -> None:
        self.revoked = False

    def check(self) -> None:
        if self.revoked:
            raise RevokedError

    def sent(self) -> None:
        pass


class Ticket:
    """Remembers how its frame ended, and lets one wait for it."""

    settled = False
    id: int | None = None
    method = ""
    name = ""
    headers: Sequence[tuple[str, str]] = ()

    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.end = ""
        self.ended = anyio.Event()

    def refused(self, error: Exception) -> None:
        self._finish("refused")

    def written(self) -> None:
        self._finish("written")

    def lost(self) -> None:
        self._finish("lost")

    def failed(self, error: Exception) -> None:
        self._finish("failed")

    def _finish(self, how: str) -> None:
        self.end = how
        self.ended.set()


class Sink:
    """Keeps what arrives, and lets one wait for it."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.lost: list[Exception] = []
        self.over = anyio.Event()
        self._arrived = anyio.Event()

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        self.frames.append(frame)
        self._arrived.set()

    def connection_lost(self, error: Exception) -> None:
        self.lost.append(error)
        self.over.set()

    async def frame(self, number: int) -> bytes:
        """Wait for the frame with this number, counted from 0."""
        with anyio.fail_after(30):
            while len(self.frames) <= number:
                self._arrived = anyio.Event()
                await self._arrived.wait()
        return self.frames[number]

    async def error(self) -> Exception:
        """Wait for the end of the connection and return its cause."""
        with anyio.fail_after(30):
            await self.over.wait()
        return self.lost[0]


class SteppedReactor:
    """The loop's own reactor, which runs `before_step` before everything that it runs for others."""

    def __init__(self, inner: Reactor) -> None:
        self._inner = inner
        self.before_step: Callable[[], object] = lambda: None
        self.now = inner.now
        self.unwatch_read = inner.unwatch_read
        self.unwatch_write = inner.unwatch_write
        self.closing = inner.closing

    def soon(self, fn: Callable[..., object], /, *args: object) -> None:
        self._inner.soon(self._stepped(lambda: fn(*args)))

    def at(self, when: float, fn: Callable[[], object], /) -> TimerHandle:
        return self._inner.at(when, self._stepped(fn))

    def waiter(self) -> Waiter[Any]:
        return self._inner.waiter()

    def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
        self._inner.watch_read(fd, self._stepped(fn))

    def watch_write(self, fd: int, fn: Callable[[], object], /) -> None:
        self._inner.watch_write(fd, self._stepped(fn))

    def _stepped(self, fn: Callable[[], object]) -> Callable[[], None]:
        def step() -> None:
            self.before_step()
            fn()

        return step


@dataclass
class Connection:
    transport: StdioTransport
    reactor: Reactor
    supervisor: Supervisor
    sink: Sink = field(default_factory=Sink)

    def send(self, frame: bytes, guard: SendGuard | None = None) -> Ticket:
        ticket = Ticket()
        self.transport.send(frame, guard or UNGUARDED, ticket)
        return ticket

    def another(self, *command: str) -> Connection:
        """A second server of the same host, not open yet."""
        return _connection(self.reactor, self.supervisor, command)


def _connection(
    reactor: Reactor,
    supervisor: Supervisor,
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    directory: str = "",
    limits: ClientLimits | None = None,
) -> Connection:
    transport = StdioTransport(
        command,
        server="srv",
        reactor=reactor,
        supervisor=supervisor,
        observer=SILENT,
        limits=limits or ClientLimits(close_seconds_max=0.1),
        environment=environment or {},
        directory=directory,
    )
    return Connection(transport, reactor, supervisor)


@asynccontextmanager
async def connected(
    *command: str,
    environment: Mapping[str, str] | None = None,
    directory: str = "",
    limits: ClientLimits | None = None,
    wrap: Callable[[Reactor], Reactor] = lambda reactor: reactor,
) -> AsyncGenerator[Connection]:
    """A connection that is not open yet, with a supervisor of its own; nothing is left after it."""
    async with open_reactor() as reactor, open_supervisor(reactor) as supervisor:
        connection = _connection(
            wrap(reactor),
            supervisor,
            command,
            environment=environment,
            directory=directory,
            limits=limits,
        )
        yield connection
        await connection.transport.close()


@asynccontextmanager
async def opened(
    *command: str,
    environment: Mapping[str, str] | None = None,
    limits: ClientLimits | None = None,
    wrap: Callable[[Reactor], Reactor] = lambda reactor: reactor,
) -> AsyncGenerator[Connection]:
    """The same, open."""
    async with connected(*command, environment=environment, limits=limits, wrap=wrap) as connection:
        await connection.transport.open(connection.sink)
        yield connection


def children(parent: int) -> dict[int, str]:
    """The live children of a process, with their command lines."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                state, of = (
                    (entry / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
                )
                if int(of) == parent and state != "Z":
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = line.decode("utf-8", "replace")
    return found


def supervisors(host: int) -> list[int]:
    """The supervisors of a host."""
    return [pid for pid, line in children(host).items() if "supervisor_main.py" in line]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that is dead and not yet collected does not."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return stat.read().rpartition(b")")[2].split()[0] != b"Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_dead(pids: Sequence[int], *, seconds: float = DEAD_SECONDS_MAX) -> None:
    """Wait until none of these runs any more; fail if one does after so long."""
    with anyio.fail_after(seconds):
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                await anyio.wait_readable(fd)
            finally:
                anyio.notify_closing(fd)
                os.close(fd)
