"""One server's process as its keeper tells of it, and its end without the keeper; no MCP."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable
from typing import Final

import anyio

from mcp_client.net.reactor import Reactor, TimerHandle
from mcp_client.transports.stdio.process_tree import QUIET_ROUNDS, kill_round, offspring

__all__ = ["OVERDUE_SECONDS", "SWEEP_SECONDS_MAX", "ServerProcess", "reap_keeper", "sweep"]

OVERDUE_SECONDS: Final = 0.4
"""How long a keeper may be late with its SIGKILL: then it was stopped, and the host does its work."""
SWEEP_SECONDS_MAX: Final = 0.2
"""How long the host itself kills before it goes on: each close ends within a second more than asked."""
SWEEP_PROCESSES_MAX: Final = 256
"""Processes that the host deals with at a time: ten milliseconds or so in which nobody else runs."""
SWEEP_STEP_SECONDS: Final = 0.01
"""One turn of killing: others wait for it."""
SWEEP_PAUSE_SECONDS: Final = 0.002
"""Between two turns of killing: others run, and what was killed gets the processor to die."""


class ServerProcess:
    """One server and all that it starts, as its keeper tells of it.

    Attributes:
        pid: the server's process id.
        exit_status: its status once it has exited, negative for a signal; None until then, and
            for good if nobody was left to tell.
        exited: True once it has exited, or nobody is left to tell.
        on_gone: called once with this and a descriptor of its keeper, -1 if all was in order. It
            takes the descriptor: the keeper may yet become our child, to be reaped.
    """

    def __init__(
        self, reactor: Reactor, control: socket.socket, strays: Callable[[], list[int]]
    ) -> None:
        """Speak to the keeper over `control`; `strays()` are the processes that lost theirs."""
        self.pid = 0
        self.exit_status: int | None = None
        self.exited = False
        self.on_gone: Callable[[ServerProcess, int], object] = _nobody
        self._reactor = reactor
        self._control = control
        self._strays = strays
        self._keeper = 0
        self._keeper_fd = -1  # names the keeper even after its id is another's
        self._adopted = False
        self._lost = False
        self._failure: str | None = None
        self._answered = anyio.Event()
        self._gone = anyio.Event()
        self._on_exit: Callable[[], object] | None = None
        self._overdue_at = float("inf")
        self._overdue: TimerHandle | None = None
        reactor.watch_read(control.fileno(), self._readable)

    def on_exit(self, fn: Callable[[], object]) -> None:
        """Have `fn()` run in the step in which `exited` becomes true. Set it before that."""
        self._on_exit = fn

    async def started(self) -> str | None:
        """Wait until it runs and return None, or why it does not: `STAGE ERRNO`, `lost`."""
        await self._answered.wait()
        return self._failure

    def end(self, seconds: float) -> None:
        """End the tree: SIGTERM to what is alive after so long, SIGKILL after as long again."""
        self._command(f"end {max(0, round(seconds * 1000))}", 2 * seconds)

    def kill(self) -> None:
        """End the tree with SIGKILL, at once."""
        self._command("kill", 0.0)

    async def gone(self) -> None:
        """Wait until nothing of the tree is alive, or nothing more can be done about it."""
        await self._gone.wait()

    def orphaned(self) -> None:
        """End the tree at once: the supervisor died, and may have been killed by a server."""
        self._adopted = True
        self.kill()

    # ---- the keeper

    def _command(self, command: str, seconds: float) -> None:
        """Tell the keeper, which is done after so long; later it is overdue."""
        try:
            self._control.send(command.encode())
        except BlockingIOError:
            pass  # it takes none of the commands before this one: it will be overdue
        except OSError:
            return  # it is gone, or lost: what it has said last is there to be read
        self._signal_keeper(signal.SIGCONT)  # the server may have stopped it
        when = self._reactor.now() + seconds + OVERDUE_SECONDS
        if when < self._overdue_at:
            if self._overdue is not None:
                self._overdue.cancel()
            self._overdue_at = when
            self._overdue = self._reactor.at(when, self._take_over)

    def _readable(self) -> None:
        try:
            message = self._control.recv(64).decode()
        except (BlockingIOError, ConnectionResetError):
            # it ended with a command unread, which Linux tells before what it had said itself
            return
        except OSError:
            message = ""
        kind, _, rest = message.partition(" ")
        match kind:
            case "started":
                server, _, keeper = rest.partition(" ")
                self.pid, self._keeper = int(server), int(keeper)
                with contextlib.suppress(OSError):  # it is gone again
                    self._keeper_fd = os.pidfd_open(self._keeper)
                self._answered.set()
            case "failed":
                self._failure = rest
                self._answered.set()
            case "exited":
                self.exit_status = int(rest)
                self._note_exit()
            case _:  # gone, left, or the end of the socket
                self._lose(orderly=kind == "gone")

    def _note_exit(self) -> None:
        if not self.exited:
            self.exited = True
            if self._on_exit is not None:
                self._on_exit()

    def _signal_keeper(self, number: signal.Signals) -> None:
        if self._keeper_fd >= 0:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._keeper_fd, number)

    def _lose(self, *, orderly: bool) -> None:
        """Nothing more will be heard of it. Unless all is well, see to its tree ourselves."""
        self._lost = True
        if self._overdue is not None:
            self._overdue.cancel()
        self._reactor.closing(self._control.fileno())
        self._control.close()
        if not self._answered.is_set():
            self._failure = "lost"
            self._answered.set()
        self._note_exit()
        if orderly and not self._adopted:
            if self._keeper_fd >= 0:
                os.close(self._keeper_fd)
                self._keeper_fd = -1
            self._finish()
        elif self._keeper_fd >= 0:
            # only when it is dead altogether are its children somebody else's
            self._reactor.watch_read(self._keeper_fd, self._keeper_dead)
        else:
            sweep(self._reactor, self._strays, self._finish)

    def _keeper_dead(self) -> None:
        self._reactor.closing(self._keeper_fd)
        sweep(self._reactor, self._strays, self._finish)

    def _take_over(self) -> None:
        """The keeper does not do its work: kill what it keeps, then the keeper."""
        if self._keeper_fd < 0:
            return
        sweep(
            self._reactor,
            lambda: [] if self._lost else offspring(self._keeper),
            lambda: self._signal_keeper(signal.SIGKILL),
        )

    def _finish(self) -> None:
        fd, self._keeper_fd = self._keeper_fd, -1
        self._gone.set()
        self.on_gone(self, fd)


def sweep(reactor: Reactor, roots: Callable[[], list[int]], then: Callable[[], object]) -> None:
    """Kill `roots()` and what descends from them until nothing is alive; then call `then()`.

    Runs in short turns, from this step on. Gives up after SWEEP_SECONDS_MAX.
    """
    _Sweep(reactor, roots, then).turn()


def reap_keeper(fd: int) -> bool:
    """Collect a dead keeper if it became our child. True: it is collected, by us or its parent."""
    with contextlib.suppress(ChildProcessError):  # another's child
        os.waitid(os.P_PIDFD, fd, os.WEXITED | os.WNOHANG)
    try:
        signal.pidfd_send_signal(fd, 0)
    except ProcessLookupError:
        return True
    return False


class _Sweep:
    def __init__(
        self, reactor: Reactor, roots: Callable[[], list[int]], then: Callable[[], object]
    ) -> None:
        self._reactor = reactor
        self._roots = roots
        self._then = then
        self._give_up_at = reactor.now() + SWEEP_SECONDS_MAX
        self._known: set[int] = set()
        self._quiet = 0

    def turn(self) -> None:
        ends_at = self._reactor.now() + SWEEP_STEP_SECONDS
        while True:
            alive = kill_round(self._roots(), processes_max=SWEEP_PROCESSES_MAX)
            self._quiet = 0 if alive else self._quiet + 1
            now = self._reactor.now()
            if self._quiet >= QUIET_ROUNDS or now >= self._give_up_at:
                self._then()
                return
            if now >= ends_at or (alive and alive <= self._known):
                self._reactor.at(now + SWEEP_PAUSE_SECONDS, self.turn)
                return
            self._known |= alive


def _nobody(_process: ServerProcess, keeper_fd: int) -> None:
    if keeper_fd >= 0:
        os.close(keeper_fd)
