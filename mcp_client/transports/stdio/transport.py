"""One server as a child process: its pipes, read and written by ourselves; it knows no JSON-RPC."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from mcp_client.net.reactor import Reactor, TimerHandle
from mcp_client.ports import ClientObserver, FrameSink, SendGuard, Ticket
from mcp_client.protocol.errors import ServerGoneError, StartError
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.outbox import FlushState, Outbox
from mcp_client.protocol.sending import not_open, opened_twice
from mcp_client.protocol.versions import SUPPORTED_VERSIONS
from mcp_client.transports.stdio.environment import server_environment
from mcp_client.transports.stdio.server_process import ServerProcess
from mcp_client.transports.stdio.stderr import StderrTail
from mcp_client.transports.stdio.supervisor import ServerCommand, Supervisor, require_supervision

__all__ = ["StdioTransport"]

PIPE_BYTES: Final = 1024 * 1024
"""What we ask the kernel for as a pipe's buffer: the most that it gives to everybody."""
READ_BYTES: Final = 64 * 1024
"""One read: the usual pipe's buffer, and below the size from which memory is mapped anew."""
READS_PER_STEP_MAX: Final = 16
"""Reads before others get their turn: a megabyte."""
STATUS_SECONDS_MAX: Final = 0.25
"""How long an exit status is waited for after a pipe broke: well under the second for the error."""
KILL_SECONDS_MAX: Final = 0.9
"""How long the end of a tree is waited for after SIGKILL, by the keeper or else by the host."""


class StdioTransport:
    """A server's process and the pipes to it. See `mcp_client.ports.Transport`.

    `environment` are the variables declared for the server; it gets these and the allow-list of
    `environment.py`, nothing else. `directory` is where it starts; empty means where we are.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        server: str,
        reactor: Reactor,
        supervisor: Supervisor,
        observer: ClientObserver,
        limits: ClientLimits,
        environment: Mapping[str, str],
        directory: str = "",
    ) -> None:
        self._command = tuple(command)
        self._server = server
        self._reactor = reactor
        self._supervisor = supervisor
        self._limits = limits
        self._environment = environment
        self._directory = directory
        self._outbox = Outbox(limits, observer, server=server)
        self._framer = LineFramer(limits.frame_bytes_max)
        self._stderr = StderrTail(limits.stderr_tail_bytes_max, environment.values())
        self._sink: FrameSink | None = None
        self._process: ServerProcess | None = None
        self._stdin = -1
        self._stdout = -1
        self._stderr_pipe = -1
        self._write: Callable[[memoryview], int] = _refuse_to_write
        self._flush_due = False
        self._blocked = False
        self._breaking = ""
        self._giving_up: TimerHandle | None = None
        self._lost = False
        self._error: Exception | None = None

    @property
    def stderr_tail(self) -> str:
        """The end of what the server wrote to stderr: untrusted, without control characters.

        The values declared for its environment are hidden there.
        """
        return self._stderr.text

    @property
    def carries_headers(self) -> bool:
        """False: frames travel alone."""
        return False

    @property
    def versions(self) -> Sequence[str]:
        """All that begin with a handshake."""
        return SUPPORTED_VERSIONS

    async def open(self, sink: FrameSink) -> None:
        """Start the server. A start that fails or is cancelled leaves no process.

        Raises StartError, or ServerGoneError if the server ended at once.
        """
        if self._sink is not None or self._lost:
            raise opened_twice(self._server)
        self._sink = sink
        try:
            require_supervision()
            self._process = await self._spawn()
            self._process.on_exit(self._exited)
            self._reactor.watch_read(self._stderr_pipe, self._stderr_readable)
            failure = await self._process.started()
            if failure is not None:
                raise StartError(self._why(failure), server=self._server, stage="start")
            if self._error is not None:  # it ended, or was closed, before this task ran again
                raise self._error
            self._reactor.watch_read(self._stdout, self._stdout_readable)
        except BaseException as error:
            self._lost = True
            with anyio.CancelScope(shield=True):
                await self._end(kill_now=True)
            if isinstance(error, OSError):
                raise StartError(
                    f"cannot start the server: {error.strerror}", server=self._server, stage="start"
                ) from error
            if isinstance(error, StartError):
                error.server = self._server
            raise

    def send(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        """Queue one frame. It is checked and written in a later step.

        Raises ServerGoneError once a pipe broke, even before the loss of the connection is told.
        """
        if self._breaking and not self._lost:
            raise self._gone(self._breaking)
        if self._lost or self._stdin < 0:
            raise not_open(self._server)
        self._outbox.push(frame, guard, ticket)
        if not self._flush_due and not self._blocked:
            self._flush_due = True
            self._reactor.soon(self._flush)

    def negotiated(self, version: str) -> None:
        """Do nothing: no frame has to say it here."""

    def abandon(self, ticket: Ticket) -> bool:
        """Return False: the server has to be told."""
        return False

    async def close(self) -> None:
        """End input, then SIGTERM, then SIGKILL, for the server and everything that it started."""
        self._lose(ServerGoneError("the connection was closed", server=self._server, stage="close"))
        with anyio.CancelScope(shield=True):
            await self._end(kill_now=False)

    # ---- starting

    async def _spawn(self) -> ServerProcess:
        """Make three pipes, keep our ends, and have a server started with the others."""
        command = ServerCommand(
            arguments=self._command,
            environment=server_environment(self._environment, os.environ),
            directory=str(Path.cwd() / self._directory),
        )
        theirs: list[int] = []
        try:
            fd, self._stdin = os.pipe2(os.O_CLOEXEC)
            theirs.append(fd)
            self._stdout, fd = os.pipe2(os.O_CLOEXEC)
            theirs.append(fd)
            self._stderr_pipe, fd = os.pipe2(os.O_CLOEXEC)
            theirs.append(fd)
            for fd in (self._stdin, self._stdout, self._stderr_pipe):
                os.set_blocking(fd, False)
            _enlarge(self._stdin)
            _enlarge(self._stdout)
            # written in C: between a check and the write no Python may run
            self._write = partial(os.write, self._stdin)
            return await self._supervisor.spawn(command, theirs)
        finally:
            for fd in theirs:
                os.close(fd)

    def _why(self, failure: str) -> str:
        stage, _, number = failure.partition(" ")
        if not number.isdigit():
            return "the supervisor of servers ended while it started the server"
        reason = os.strerror(int(number)).lower()
        if stage == "directory":
            return f"cannot start the server in {self._directory!r}: {reason}"
        return f"cannot start {self._command[0]!r}: {reason}"

    # ---- writing

    def _flush(self) -> None:
        self._flush_due = False
        if self._stdin < 0:
            return
        try:
            state = self._outbox.flush(self._write)
        except OSError as error:
            self._stop_writing()
            reason = errno.errorcode.get(error.errno or 0, "error")
            self._lose_soon(f"the server takes no input any more ({reason})")
            return
        except Exception as error:  # noqa: BLE001  # what was written is not known any more
            self._lose(error)
            return
        if state is FlushState.BLOCKED and self._stdin >= 0:
            self._blocked = True
            self._reactor.watch_write(self._stdin, self._writable)

    def _writable(self) -> None:
        self._blocked = False
        self._reactor.unwatch_write(self._stdin)
        self._flush()

    def _stop_writing(self) -> None:
        if self._stdin >= 0:
            fd, self._stdin = self._stdin, -1
            self._write = _refuse_to_write
            self._reactor.closing(fd)
            os.close(fd)
        self._outbox.fail_all()

    # ---- reading

    def _stdout_readable(self) -> None:
        if self._read_frames(READS_PER_STEP_MAX):
            self._reactor.unwatch_read(self._stdout)
            self._lose_soon("the server closed its output")

    def _read_frames(self, reads_max: int) -> bool:
        """Hand over what has come. True at the end of the stream."""
        for _ in range(reads_max):
            data = _read(self._stdout)
            if data is None:
                return False
            if not data:
                return True
            if not self._lost:  # what comes after is read so that the server can go on and end
                self._take(data)
            if len(data) < READ_BYTES:
                return False
        return False

    def _take(self, data: bytes) -> None:
        assert self._sink is not None
        try:
            for frame in self._framer.feed(data):
                self._sink.frame_received(frame)
                if self._lost:
                    return
        except Exception as error:  # noqa: BLE001  # whatever it is, this connection is over
            self._lose(error)

    def _stderr_readable(self) -> None:
        for _ in range(READS_PER_STEP_MAX):
            data = _read(self._stderr_pipe)
            if data == b"":
                self._reactor.unwatch_read(self._stderr_pipe)
            if not data:
                return
            self._stderr.add(data)

    # ---- ending

    def _exited(self) -> None:
        """The server has exited: take what it left in its pipes, then the connection is over."""
        assert self._process is not None
        if self._process.pid and not self._lost:  # one that never started is open()'s to report
            self._read_frames(PIPE_BYTES // READ_BYTES)
            self._lose(self._gone("the server ended"))

    def _lose_soon(self, what: str) -> None:
        """A pipe broke: most often because the server is about to exit, with a status."""
        if self._giving_up is None and not self._lost:
            self._breaking = what
            self._giving_up = self._reactor.at(
                self._reactor.now() + STATUS_SECONDS_MAX, lambda: self._lose(self._gone(what))
            )

    def _gone(self, what: str) -> ServerGoneError:
        if self._stderr_pipe >= 0:
            self._stderr_readable()
        status = None if self._process is None else self._process.exit_status
        return ServerGoneError(
            what if status is None else f"{what} with exit status {status}",
            server=self._server,
            exit_status=status,
            stderr_tail=self.stderr_tail,
        )

    def _lose(self, error: Exception) -> None:
        """End the connection, in this step: no byte leaves after it. The tree is told to end."""
        if self._lost:
            return
        self._lost = True
        self._error = error
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._stop_writing()
        if self._process is not None:
            self._process.end(self._limits.close_seconds_max)
        if self._sink is not None:
            self._sink.connection_lost(error)

    async def _end(self, *, kill_now: bool) -> None:
        """Wait until the tree is gone, then close the pipes. Callers shield it."""
        self._stop_writing()
        if self._process is not None:
            if kill_now:
                self._process.kill()
            with anyio.move_on_after(2 * self._limits.close_seconds_max + KILL_SECONDS_MAX):
                await self._process.gone()
        for fd in (self._stdout, self._stderr_pipe):
            if fd >= 0:
                self._reactor.closing(fd)
                os.close(fd)
        self._stdout = self._stderr_pipe = -1


def _enlarge(pipe: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):  # the pipes of one user are bounded together
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _read(fd: int) -> bytes | None:
    """Return what can be read now, empty at the end, None if there is nothing."""
    try:
        return os.read(fd, READ_BYTES)
    except BlockingIOError:
        return None


def _refuse_to_write(_view: memoryview) -> int:
    raise BrokenPipeError(errno.EPIPE, "the connection is over")
