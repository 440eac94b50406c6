"""The supervisor's program: ends servers' process trees, whatever becomes of the host; knows no MCP.

Started once per host as `python -I -S supervisor_main.py FD`, with one end of a socket pair. Only
the standard library, only Linux. It relays no bytes: a request carries the server's pipe ends.

    host ─── supervisor ─┬─ keeper ── server ── whatever the server starts
                         └─ keeper ── server ── …

The supervisor forks one keeper for each server. A keeper is a subreaper, so that each process
that loses its parent (a double fork, a wrapper that exits) becomes the keeper's child, whatever
its session, group or environment: the tree of a server is what descends from its keeper, and
nothing of it is alive when the keeper has no child left. If a server kills its keeper, what it
leaves falls to the supervisor, which kills whatever is its child and not a keeper.

Messages are packets. To the supervisor: NUL-joined working directory, count, arguments,
environment, with four descriptors (stdin, stdout, stderr, control). To a keeper, over `control`:
`end MILLISECONDS`, `kill`. From a keeper: `started PID KEEPER` or `failed STAGE ERRNO`, then
`exited STATUS` of the server, then `gone` or `left COUNT` of its tree. Anything else, and the end
of the socket, means that the host is gone: everything ends.
"""

from __future__ import annotations

import array
import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from types import ModuleType
from typing import Final

if __name__ == "__main__":
    # Run by its path: packages are their folders here, without their own code and its imports.
    _folder = os.path.dirname(__file__)  # noqa: PTH120  # pathlib would double the start-up
    for _name in ("mcp_client.transports.stdio", "mcp_client.transports", "mcp_client"):
        sys.modules[_name] = ModuleType(_name)
        sys.modules[_name].__path__ = [_folder]
        _folder = os.path.dirname(_folder)  # noqa: PTH120

from mcp_client.transports.stdio.process_tree import (
    become_subreaper,
    descendants,
    die_with_parent,
    hide_memory,
    kill_round,
    mark,
    offspring,
    send_signal,
)

HOST_GONE_SECONDS: Final = 0.5
"""Between SIGTERM and SIGKILL when the host is gone: no server outlives it by a second."""
LEFT_BEHIND_SECONDS: Final = 0.5
"""Between SIGTERM and SIGKILL for what a server leaves behind when it exits by itself."""
KILL_SECONDS_MAX: Final = 10.0
"""How long SIGKILL is repeated: what is alive then cannot be killed by us. No close waits for it."""
KILL_ROUND_SECONDS: Final = 0.005
"""Between two rounds of SIGKILL that met the same processes: they need the processor to die."""
REQUEST_BYTES_MAX: Final = 128 * 1024
"""One request: below the smallest usual send buffer."""
DESCRIPTORS: Final = 4
_NEVER: Final = float("inf")

_now = time.monotonic  # noqa: TID251  # no event loop here, and no clock to be handed in


class _BadRequestError(Exception):
    pass


class _Request:
    """What to start, and the descriptors that came with it."""

    def __init__(self, packet: bytes, descriptors: list[int]) -> None:
        if len(descriptors) != DESCRIPTORS:
            raise _BadRequestError
        directory, count, *rest = packet.split(b"\0")
        if not count.isdigit() or not 0 < int(count) <= len(rest):
            raise _BadRequestError
        self.directory = directory
        self.arguments = rest[: int(count)]
        self.environment: dict[bytes, bytes] = {}
        for pair in rest[int(count) :]:
            name, equals, value = pair.partition(b"=")
            if not name or not equals:
                raise _BadRequestError
            self.environment[name] = value
        self.pipes = descriptors[:3]
        self.control = descriptors[3]


def main() -> None:
    """Serve the host at the descriptor given as the argument, until it is gone."""
    host = socket.socket(fileno=int(sys.argv[1]))
    os.chdir("/")
    # Ctrl-C and a closed terminal are the host's to handle; servers are ended through it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    hide_memory()  # the environments of all servers pass through it
    become_subreaper()
    gc.freeze()  # keepers share these pages
    keepers: set[int] = set()
    try:
        _serve(host, keepers, _wake_on(signal.SIGCHLD))
    finally:
        _end_all(keepers)


def _serve(host: socket.socket, keepers: set[int], wakeup: int) -> None:
    poll = select.poll()
    poll.register(host, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    # A process that the host forked may hold the other end of the socket open after it.
    with contextlib.suppress(OSError):
        poll.register(os.pidfd_open(os.getppid()), select.POLLIN)
    quiet = True
    while True:
        ready = {fd for fd, _ in poll.poll(None if quiet else KILL_ROUND_SECONDS * 1000)}
        if wakeup in ready or not quiet:
            _drain(wakeup)
            if not _reap_keepers(keepers) or not quiet:
                quiet = not _kill_strays(keepers)
        if host.fileno() in ready:
            try:
                request = _receive(host)
            except (_BadRequestError, OSError):
                return
            keepers.add(_fork_keeper(host, wakeup, request))
        elif ready - {wakeup}:
            return


def _receive(host: socket.socket) -> _Request:
    """Take one request. The end of the socket is a bad request too: it has no descriptors."""
    space = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)
    packet, ancillary, flags, _ = host.recvmsg(REQUEST_BYTES_MAX, space, socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(payload)
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        raise _BadRequestError
    return _Request(packet, list(descriptors))


def _fork_keeper(host: socket.socket, wakeup: int, request: _Request) -> int:
    supervisor = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            host.close()
            os.close(wakeup)
            status = _Keeper(request, supervisor).run()
        finally:
            os._exit(status)
    for fd in (*request.pipes, request.control):
        os.close(fd)
    return pid


def _reap_keepers(keepers: set[int]) -> bool:
    """Collect what has ended. False: a keeper did not end as it should, or a stray was there."""
    orderly = True
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return orderly
        if pid == 0:
            return orderly
        orderly = orderly and pid in keepers and status == 0
        keepers.discard(pid)


def _kill_strays(keepers: set[int]) -> bool:
    """Kill every child that is not a keeper, with all that descends from it. True: some are left.

    Goes on without a pause as long as it meets new ones: a tree may fork while it is walked.
    """
    known: set[int] = set()
    while True:
        _reap_keepers(keepers)
        strays = set(offspring(os.getpid())) - keepers
        if not strays:
            return False
        alive = kill_round(strays)
        if alive and alive <= known:
            return True
        known |= alive


def _end_all(keepers: set[int]) -> None:
    """End what is left: by the keepers, then without them."""
    give_up = _now() + HOST_GONE_SECONDS + HOST_GONE_SECONDS
    while keepers and _now() < give_up:
        for keeper in keepers:
            send_signal(keeper, signal.SIGTERM)
            send_signal(keeper, signal.SIGCONT)  # a server may have stopped it
        time.sleep(KILL_ROUND_SECONDS)
        _reap_keepers(keepers)
    give_up = _now() + KILL_SECONDS_MAX
    while _kill_strays(set()) and _now() < give_up:
        time.sleep(KILL_ROUND_SECONDS)


class _Keeper:
    """One server's tree, from its start until nothing of it is alive."""

    def __init__(self, request: _Request, supervisor: int) -> None:
        self._request = request
        self._supervisor = supervisor
        self._control = socket.socket(fileno=request.control)
        self._control.settimeout(0)
        self._server = 0
        self._term_at = _NEVER
        self._kill_at = _NEVER
        self._terminated = False

    def run(self) -> int:
        become_subreaper()
        wakeup = _wake_on(signal.SIGCHLD, signal.SIGTERM)
        if not die_with_parent(signal.SIGTERM, self._supervisor):
            return 1
        self._start()
        for fd in self._request.pipes:
            os.close(fd)
        poll = select.poll()
        poll.register(wakeup, select.POLLIN)
        poll.register(self._control, select.POLLIN)
        while self._reap():
            if _now() >= self._kill_at:
                return self._kill()
            self._terminate_if_due()
            for fd, _ in poll.poll(self._milliseconds_to_wait()):
                if fd == wakeup:
                    if signal.SIGTERM in _drain(wakeup):
                        self._end(0.0, HOST_GONE_SECONDS)
                elif not self._obey():
                    poll.unregister(self._control)
        self._tell("gone")
        return 0

    def _start(self) -> None:
        """Start the server; tell how that went."""
        reader, writer = os.pipe()  # closed by a successful exec
        keeper = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become_server(self._request, writer, keeper)
        os.close(writer)
        failure = os.read(reader, 64)
        os.close(reader)
        if failure:
            self._tell(f"failed {failure.decode()}")
            return
        self._server = pid
        self._tell(f"started {pid} {keeper}")

    def _reap(self) -> bool:
        """Collect what has ended. False: nothing of the server is alive."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._server:
                self._tell(f"exited {os.waitstatus_to_exitcode(status)}")
                self._end(0.0, LEFT_BEHIND_SECONDS)

    def _obey(self) -> bool:
        """Take one command. False: the host is gone, or makes no sense any more."""
        try:
            command, _, argument = self._control.recv(64).partition(b" ")
        except BlockingIOError:
            return True
        except OSError:
            command, argument = b"", b""
        if command == b"end" and argument.isdigit():
            seconds = int(argument) / 1000
            self._end(seconds, seconds)
        elif command == b"kill":
            self._end(0.0, 0.0)
        else:
            self._end(0.0, HOST_GONE_SECONDS)
            return False
        return True

    def _end(self, term_seconds: float, kill_seconds: float) -> None:
        """End the tree: SIGTERM after the one, SIGKILL after the other. Never later than before."""
        now = _now()
        self._term_at = min(self._term_at, now + term_seconds)
        self._kill_at = min(self._kill_at, now + term_seconds + kill_seconds)

    def _terminate_if_due(self) -> None:
        if _now() >= self._term_at and not self._terminated:
            self._terminated = True
            for pid in descendants(offspring(os.getpid())):
                send_signal(pid, signal.SIGTERM)

    def _kill(self) -> int:
        """Kill until nothing is left. Pauses only for what was met before and is dying."""
        known: set[int] = set()
        while self._reap():
            alive = kill_round(offspring(os.getpid()))
            if _now() > self._kill_at + KILL_SECONDS_MAX:
                self._tell(f"left {len(alive)}")
                return 1
            if alive and alive <= known:
                time.sleep(KILL_ROUND_SECONDS)
            known |= alive
        self._tell("gone")
        return 0

    def _milliseconds_to_wait(self) -> float | None:
        due = self._kill_at if self._terminated else min(self._term_at, self._kill_at)
        return None if due == _NEVER else max(due - _now(), 0.0) * 1000

    def _tell(self, message: str) -> None:
        with contextlib.suppress(OSError):  # a host that is gone shows as the end of the socket
            self._control.send(message.encode())


def _become_server(request: _Request, failures: int, keeper: int) -> None:
    """Turn this process into the server. Never returns."""
    stage = "prepare"
    try:
        os.setsid()
        mark()
        if not die_with_parent(signal.SIGKILL, keeper):
            os._exit(127)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
        for target, fd in enumerate(request.pipes):
            os.dup2(fd, target)
        stage = "directory"
        os.chdir(request.directory)
        stage = "command"
        os.execvpe(request.arguments[0], request.arguments, request.environment)  # noqa: S606
    except OSError as error:
        os.write(failures, f"{stage} {error.errno}".encode())
    finally:
        os._exit(127)


def _wake_on(*numbers: signal.Signals) -> int:
    """Return a descriptor from which the numbers of these signals can be read as they come."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, _noted)
    return reader


def _noted(_number: int, _frame: object) -> None:
    """Do nothing: the wake-up descriptor has it."""


def _drain(reader: int) -> bytes:
    try:
        return os.read(reader, 4096)
    except BlockingIOError:
        return b""


if __name__ == "__main__":
    main()
