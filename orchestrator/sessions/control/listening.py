"""The control socket of a session: waits, reads a frame, has it done, answers. Decides nothing.

It stands in the folder of the run, which is the owner's alone, and ends with the session.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import anyio
from anyio.abc import TaskGroup

from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.core.groups import ungrouped
from orchestrator.sessions.control.links import Link, accept
from orchestrator.sessions.control.operations import ControlDesk, Peer
from orchestrator.sessions.control.peers import AVAILABLE, peer_process
from orchestrator.sessions.control.wire import (
    ANSWER_BYTES_MAX,
    REQUEST_BYTES_MAX,
    Lines,
    decode,
    encode,
    error_object,
)

__all__ = ["CLIENTS_MAX", "SOCKET_NAME", "listening", "short_address"]

SOCKET_NAME: Final = "control.sock"
"""Of the socket, in the folder of its run."""
CLIENTS_MAX: Final = 16
"""Terminals and pages that look at one session at the same time."""
_SEND_SECONDS_MAX: Final = 10.0
"""A peer that reads nothing for so long is left."""
_RETRY_SECONDS: Final = 0.2
_LAST_SECONDS_MAX: Final = 1.0
"""How long the end of a session waits for those who follow its events."""
_BACKLOG: Final = 16
_MODE: Final = 0o600


@asynccontextmanager
async def listening(desk: ControlDesk, folder: Path) -> AsyncGenerator[None]:
    """Let the session be looked at and acted upon through a socket in this folder, until the block ends.

    Where the kernel cannot say who connects, or no socket can be made, there is none.
    """
    listener = _bound(folder) if AVAILABLE else None
    if listener is None:
        yield
        return
    try:
        with ungrouped():
            async with anyio.create_task_group() as group:
                group.start_soon(_tell_of_asks, desk)
                group.start_soon(_Doors(desk).keep_open, listener, group)
                try:
                    yield
                finally:
                    with anyio.move_on_after(_LAST_SECONDS_MAX, shield=True):
                        await desk.watch.end()
                    group.cancel_scope.cancel()
    finally:
        listener.close()
        with suppress(OSError):
            (folder / SOCKET_NAME).unlink()


@contextmanager
def short_address(folder: Path) -> Generator[str]:
    """Yield an address for the socket that fits into 107 bytes, however long the folder's name is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


def _bound(folder: Path) -> socket.socket | None:
    """Return a socket that listens, or None where the file system has none."""
    with suppress(OSError):
        (folder / SOCKET_NAME).unlink(missing_ok=True)  # of the run's earlier time
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(folder) as address:
            made.bind(address)
            # the folder is the owner's alone already; no moment is open to others
            (folder / SOCKET_NAME).chmod(_MODE)
        made.listen(_BACKLOG)
    except OSError:
        made.close()
        return None
    made.settimeout(0.0)
    return made


async def _tell_of_asks(desk: ControlDesk) -> None:
    """Number each ask as it comes, and tell those who follow that something is asked, or is not."""
    before: frozenset[int] = frozenset()
    while True:
        now = frozenset(number for number, _ in desk.asks().values())
        if now != before:
            desk.watch.tell({"event": "AsksChanged", "open": sorted(now)})
            before = now
        # no step lies between the look and the wait: nothing can come unseen
        await desk.session.inbox.changed()


class _Doors:
    """Lets in so many as there is room for, each with its own state."""

    def __init__(self, desk: ControlDesk) -> None:
        self._desk = desk
        self._inside = 0

    async def keep_open(self, listener: socket.socket, group: TaskGroup) -> None:
        """Take in whoever connects, until cancelled."""
        while True:
            try:
                link = await accept(listener)
            except OSError:  # out of descriptors: the next try is a moment later
                await anyio.sleep(_RETRY_SECONDS)
                continue
            group.start_soon(self.serve, link)

    async def serve(self, link: Link) -> None:
        """Answer one peer until it leaves. What goes wrong with it is its own matter."""
        async with link:
            with suppress(OSError):  # a peer that is gone, or reads nothing
                try:
                    await self._let_in(link)
                except OSError:
                    raise
                except Exception as error:  # noqa: BLE001 - no visitor may end the session
                    await _send(link, {"id": None, "error": error_object(_mistake(error))})

    async def _let_in(self, link: Link) -> None:
        try:
            if self._inside >= CLIENTS_MAX:
                raise ConfigError(
                    f"{CLIENTS_MAX} others look at this session", code="E-CONTROL-BUSY"
                )
            peer = Peer(peer_process(link.raw))
        except ConfigError as error:
            await _send(link, {"id": None, "error": error_object(error)})
            return
        self._inside += 1
        visit = _Visit(self._desk, link, peer)
        try:
            await visit.answer_all()
        finally:
            visit.leave()
            self._inside -= 1


class _Visit:
    """One peer's connection: its frames one after the other, and what ends when it leaves."""

    def __init__(self, desk: ControlDesk, link: Link, peer: Peer) -> None:
        self._desk = desk
        self._link = link
        self._peer = peer
        self._attends = False

    async def answer_all(self) -> None:
        """Answer frame by frame until the peer has left, or sends what is none."""
        lines = Lines(REQUEST_BYTES_MAX)
        while True:
            data = await self._link.receive()
            if not data:
                return
            try:
                for line in lines.feed(data):
                    await self._answer(decode(line))
            except ConfigError as error:
                # what follows cannot be told apart any more
                await _send(self._link, {"id": None, "error": error_object(error)})
                return

    def leave(self) -> None:
        """Let nothing of this peer hold any more."""
        if self._attends:
            self._attends = False
            self._desk.leave()

    async def _answer(self, frame: dict[str, object]) -> None:
        name, number = frame.get("op"), frame.get("id")
        number = number if isinstance(number, int) else None
        operation = name if isinstance(name, str) else ""
        try:
            if operation == "events":
                since = frame.get("since", 0)
                await self._follow(number, since if isinstance(since, int) else 0)
                return
            if operation == "attend":
                told: dict[str, object] = {"attending": self._attend()}
            else:
                told = await self._desk.do(operation, frame, self._peer)
            line = encode({"id": number, "ok": told}, bytes_max=ANSWER_BYTES_MAX)
        except RemitError as error:
            line = _line({"id": number, "error": error_object(error)})
        await _write(self._link, line)

    def _attend(self) -> bool:
        if not self._attends:
            self._attends = self._desk.attend(self._peer)
        return self._attends

    async def _follow(self, number: int | None, since: int) -> None:
        """Send events until the session ends or the peer leaves; it sends nothing more."""
        listener = self._desk.watch.listen(since)
        await _send(self._link, {"id": number, "ok": {"following": True}})
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, self._link, group.cancel_scope)
                while (event := await listener.next()) is not None:
                    await _send(self._link, {"event": event, "dropped": listener.dropped})
                group.cancel_scope.cancel()
        finally:
            self._desk.watch.leave(listener)


def _mistake(error: Exception) -> RemitError:
    return RemitError(f"a mistake of remit's own: {type(error).__name__}", code="E-INTERNAL")


async def _until_gone(link: Link, scope: anyio.CancelScope) -> None:
    while await link.receive():
        pass
    scope.cancel()


async def _send(link: Link, value: dict[str, object]) -> None:
    await _write(link, _line(value))


def _line(value: dict[str, object]) -> bytes:
    return encode(value, bytes_max=ANSWER_BYTES_MAX)


async def _write(link: Link, line: bytes) -> None:
    with anyio.fail_after(_SEND_SECONDS_MAX):
        await link.send(line)
