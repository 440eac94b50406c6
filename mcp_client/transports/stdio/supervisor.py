"""The host's end of the supervisor: asks for servers, hears how they end; it knows no MCP."""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio

from mcp_client.net.reactor import Reactor, Waiter
from mcp_client.protocol.errors import StartError
from mcp_client.transports.stdio.process_tree import is_alive, is_marked, offspring
from mcp_client.transports.stdio.server_process import ServerProcess, reap_keeper, sweep
from mcp_client.transports.stdio.supervisor_main import REQUEST_BYTES_MAX

__all__ = ["ServerCommand", "Supervisor", "open_supervisor", "require_supervision"]

STOP_SECONDS_MAX: Final = 1.5
"""How long the supervisor is waited for once it was told to end: longer than it takes itself."""

ATTEMPTS_MAX: Final = 2
"""Supervisors asked for one server: one that died meanwhile is replaced, one that cannot live not."""

_PROCESSES: Final = Path("/proc")
_PROGRAM: Final = Path(__file__).with_name("supervisor_main.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCommand:
    """What to execute: the program and its arguments, its whole environment, its directory.

    A program without a slash is looked for in the `PATH` of that environment. Arguments and
    environment may hold secrets: they are never shown.
    """

    arguments: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    directory: str


class Supervisor:
    """The one supervisor of this process. Started with the first server, and again if it died."""

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._lock = anyio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd = -1
        self._socket: socket.socket | None = None
        self._servers: set[ServerProcess] = set()
        self._keepers: list[int] = []  # descriptors of dead ones that may become our children
        self._closed = False

    async def spawn(self, command: ServerCommand, pipes: Sequence[int]) -> ServerProcess:
        """Ask for a server with these three descriptors as its stdin, stdout and stderr.

        They stay the caller's to close. Returns without waiting for the start: see
        `ServerProcess.started`. Raises StartError for a command that cannot be asked for.
        """
        packet = _packet(command)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.settimeout(0)
            async with self._lock:  # held for one packet, not until an answer
                await self._submit(packet, (*pipes, theirs.fileno()))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        server = ServerProcess(self._reactor, ours, self._strays)
        self._servers.add(server)
        server.on_gone = self._forget
        return server

    async def close(self) -> None:
        """End what it still keeps, and the supervisor itself. Shielded, timed and idempotent."""
        self._closed = True
        await self._stop()

    async def _submit(self, packet: bytes, descriptors: Sequence[int]) -> None:
        for _ in range(ATTEMPTS_MAX):
            end = await self._connected()
            try:
                while not _send(end, packet, descriptors):
                    await self._writable(end)
            except (BrokenPipeError, ConnectionResetError):
                await self._stop()  # it died, and took nothing: ask the next one
            else:
                return
        raise StartError("the supervisor of servers does not stay alive", stage="start")

    async def _connected(self) -> socket.socket:
        if self._closed:
            raise StartError("the supervisor of servers is closed", stage="start")
        if self._process is not None and self._process.poll() is not None:
            await self._stop()
        if self._socket is None:
            self._start()
        assert self._socket is not None
        return self._socket

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.settimeout(0)
            # Once per host, and a millisecond: the price of asking anyio would be a second one.
            self._process = subprocess.Popen(  # noqa: S603  # our own program
                [sys.executable, "-I", "-S", str(_PROGRAM), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={},
            )
        self._socket = ours
        self._pidfd = os.pidfd_open(self._process.pid)
        self._reactor.watch_read(self._pidfd, self._died)

    def _died(self) -> None:
        """The supervisor is dead, and not by us: see to the end of what it kept, at once."""
        self._unwatch()
        if self._process is not None:
            self._process.poll()
        for server in self._servers.copy():
            server.orphaned()
        sweep(self._reactor, self._strays, self._reap_strays)

    def _unwatch(self) -> None:
        if self._pidfd >= 0:
            fd, self._pidfd = self._pidfd, -1
            self._reactor.closing(fd)
            os.close(fd)

    def _strays(self) -> list[int]:
        """Servers' processes that have lost their keeper: children of the supervisor, or ours."""
        parents = [os.getpid()]
        if self._process is not None and self._process.returncode is None:
            parents.append(self._process.pid)
        return [
            pid
            for parent in parents
            for pid in offspring(parent)
            if is_marked(pid) and is_alive(pid)
        ]

    def _forget(self, server: ServerProcess, keeper_fd: int) -> None:
        self._servers.discard(server)
        if keeper_fd >= 0:
            self._keepers.append(keeper_fd)
        self._reap_keepers()

    def _reap_keepers(self) -> None:
        for fd in self._keepers.copy():
            if reap_keeper(fd):
                self._keepers.remove(fd)
                os.close(fd)

    def _reap_strays(self) -> None:
        self._reap_keepers()
        for pid in offspring(os.getpid()):
            if is_marked(pid):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    async def _writable(self, end: socket.socket) -> None:
        ready: Waiter[None] = self._reactor.waiter()
        self._reactor.watch_write(end.fileno(), lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            self._reactor.unwatch_write(end.fileno())

    async def _stop(self) -> None:
        """Let the supervisor see the end of its socket, and wait until it has ended."""
        end, self._socket = self._socket, None
        process, self._process = self._process, None
        if end is None or process is None:
            return
        self._unwatch()
        ended = anyio.Event()
        with contextlib.suppress(OSError):  # it may have ended before
            end.shutdown(socket.SHUT_WR)
        process.send_signal(signal.SIGCONT)  # a server may have stopped it
        self._reactor.watch_read(end.fileno(), ended.set)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(STOP_SECONDS_MAX):
                await ended.wait()
            self._reactor.closing(end.fileno())
            end.close()
            if not ended.is_set():
                await self._swept(lambda: offspring(process.pid))
                process.kill()
            process.wait()  # its descriptors are closed already: it is all but gone
            await self._swept(self._strays)
        self._reap_strays()
        while self._keepers:
            os.close(self._keepers.pop())

    async def _swept(self, roots: Callable[[], list[int]]) -> None:
        done = anyio.Event()
        sweep(self._reactor, roots, done.set)
        await done.wait()


@asynccontextmanager
async def open_supervisor(reactor: Reactor) -> AsyncGenerator[Supervisor]:
    """Yield a supervisor for the servers of this block; nothing of them is alive after it."""
    supervisor = Supervisor(reactor)
    try:
        yield supervisor
    finally:
        await supervisor.close()


def _send(end: socket.socket, packet: bytes, descriptors: Sequence[int]) -> bool:
    """Send one packet. False: there is no room for it now."""
    try:
        rights = array.array("i", descriptors)
        end.sendmsg([packet], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    except BlockingIOError:
        return False
    return True


def require_supervision(*, processes: Path = _PROCESSES) -> None:
    """Refuse to start servers where their trees cannot be ended, or their end would be ours.

    The one place for it. `processes` is where the kernel tells of them. Raises StartError.
    """
    if sys.platform != "linux":
        raise StartError(
            f"servers over stdio are not started on {sys.platform}: there is no way here to end"
            " everything that a server has started (on Linux: a child subreaper and /proc)",
            stage="start",
        )
    if not (processes / "self" / "stat").exists():
        raise StartError(
            "servers over stdio are not started without /proc: there is no way to find everything"
            " that a server has started",
            stage="start",
        )
    if signal.getsignal(signal.SIGPIPE) is signal.SIG_DFL:
        raise StartError(
            "servers over stdio are not started while SIGPIPE has its default effect: a server that"
            " closes its input would end this process (Python ignores the signal unless told"
            " otherwise: signal.signal(signal.SIGPIPE, signal.SIG_IGN))",
            stage="start",
        )
    if not sys.executable:
        raise StartError("there is no Python to run the supervisor of servers with", stage="start")


def _packet(command: ServerCommand) -> bytes:
    fields = [
        command.directory,
        str(len(command.arguments)),
        *command.arguments,
        *(f"{name}={value}" for name, value in command.environment.items()),
    ]
    if not command.arguments or any("\0" in field for field in fields):
        raise StartError("a command is one or more arguments without NUL", stage="start")
    packet = b"\0".join(map(os.fsencode, fields))
    if len(packet) > REQUEST_BYTES_MAX:
        raise StartError(
            f"command and environment are over the bound of {REQUEST_BYTES_MAX} bytes",
            stage="start",
        )
    return packet
