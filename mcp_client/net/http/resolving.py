"""Names looked up in threads, since that blocks, and answered in a step of the loop; no sockets."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from mcp_client.net.reactor import Reactor

__all__ = ["Address", "AddressFilter", "LookUp", "Resolver", "literal_address"]

AddressFilter: TypeAlias = "Callable[[str, str], bool]"
"""Whether a name, which comes first, may stand for an address."""


class Address(NamedTuple):
    """Where a socket can be connected to."""

    family: int
    place: tuple[str | int | bytes, ...] | str
    """What `connect` takes."""


Answer: TypeAlias = "Sequence[Address] | OSError"


class LookUp:
    """One look-up. It may be forgotten; the thread then ends by itself, whenever that is."""

    __slots__ = ("host", "port", "report")

    def __init__(self, host: str, port: int, report: Callable[[Answer], None]) -> None:
        self.host = host
        self.port = port
        self.report: Callable[[Answer], None] | None = report

    def forget(self) -> None:
        """Report nothing."""
        self.report = None


class Resolver:
    """Looks names up, a bounded number at once; others wait their turn.

    An address that `allows` does not allow is none: a name that has no other cannot be resolved.
    """

    def __init__(
        self, reactor: Reactor, *, threads_max: int, allows: AddressFilter | None = None
    ) -> None:
        self._allows = allows
        self._reactor = reactor
        self._threads_max = threads_max
        self._running = 0
        self._waiting: deque[LookUp] = deque()
        self._answers: deque[tuple[LookUp, Answer]] = deque()
        self._bell: tuple[socket.socket, socket.socket] | None = None

    def look_up(self, host: str, port: int, report: Callable[[Answer], None]) -> LookUp:
        """Have `report` called, in a later step, with a name's addresses or what went wrong."""
        look_up = LookUp(host, port, report)
        if self._running < self._threads_max:
            self._start(look_up)
        else:
            self._waiting.append(look_up)
        return look_up

    def close(self) -> None:
        """Report nothing any more. Threads that still run end by themselves."""
        self._waiting.clear()
        self._answers.clear()
        if self._bell is not None:
            ear, rope = self._bell
            self._bell = None
            self._reactor.closing(ear.fileno())
            ear.close()
            rope.close()

    def _start(self, look_up: LookUp) -> None:
        if self._bell is None:
            self._bell = socket.socketpair()
            for end in self._bell:
                end.settimeout(0)
            self._reactor.watch_read(self._bell[0].fileno(), self._rung)
        self._running += 1
        # a daemon: a look-up that hangs must not keep the program from ending
        threading.Thread(
            target=_run, args=(look_up, self._answers, self._bell[1]), daemon=True
        ).start()

    def _rung(self) -> None:
        assert self._bell is not None
        with contextlib.suppress(BlockingIOError):
            self._bell[0].recv(1_024)
        while self._answers:
            look_up, answer = self._answers.popleft()
            self._running -= 1
            while self._waiting and self._running < self._threads_max:
                self._start_next()
            if look_up.report is not None:
                look_up.report(self._allowed(look_up, answer))

    def _allowed(self, look_up: LookUp, answer: Answer) -> Answer:
        allows = self._allows
        if allows is None or isinstance(answer, OSError):
            return answer
        return [each for each in answer if allows(look_up.host, str(each.place[0]))]

    def _start_next(self) -> None:
        look_up = self._waiting.popleft()
        if look_up.report is not None:
            self._start(look_up)


def literal_address(host: str, port: int) -> Address | None:
    """Return the address that a host is already, or None if it is a name."""
    bare = host.removeprefix("[").removesuffix("]")
    for family, place in ((socket.AF_INET, (bare, port)), (socket.AF_INET6, (bare, port, 0, 0))):
        with contextlib.suppress(OSError):
            socket.inet_pton(family, bare)
            return Address(family, place)
    return None


def _run(look_up: LookUp, answers: deque[tuple[LookUp, Answer]], rope: socket.socket) -> None:
    """In a thread: look one name up, lay the answer down, ring."""
    try:
        found = socket.getaddrinfo(look_up.host, look_up.port, type=socket.SOCK_STREAM)
        answer: Answer = [
            Address(family, place)
            for family, _, _, _, place in found
            if family in (socket.AF_INET, socket.AF_INET6)
        ]
    except OSError as error:
        answer = error
    except Exception as error:  # noqa: BLE001  # a name that cannot be encoded, for one
        answer = OSError(str(error))
    answers.append((look_up, answer))
    with contextlib.suppress(OSError):  # closed by now, or rung so often that it is full
        rope.send(b"\0")
