"""A connected local socket that waits by the event loop: bytes in, bytes out. Knows no frame.

The waits are anyio's lowest: its own streams over local sockets can lose a race between a cancellation
and an arrival under asyncio.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Final, Self

import anyio
import anyio.lowlevel

__all__ = ["Link", "accept"]

_PIECE: Final = 65_536


class Link:
    """Owns one socket. One task reads it and one writes it; closed by `async with`."""

    def __init__(self, raw: socket.socket) -> None:
        raw.settimeout(0.0)
        self.raw = raw

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.raw.close()

    async def receive(self) -> bytes:
        """Return what has come; empty at the end, and where the other end broke off."""
        await anyio.lowlevel.checkpoint()
        while True:
            try:
                return self.raw.recv(_PIECE)
            except BlockingIOError:
                await anyio.wait_readable(self.raw)
            except OSError:
                return b""

    async def send(self, data: bytes) -> None:
        """Hand all of it over. Raises OSError if the other end is gone."""
        await anyio.lowlevel.checkpoint()
        view = memoryview(data)
        while view:
            try:
                view = view[self.raw.send(view) :]
            except BlockingIOError:
                await anyio.wait_writable(self.raw)


async def accept(listener: socket.socket) -> Link:
    """Return the next that connects. Raises OSError if the listener cannot take any."""
    await anyio.lowlevel.checkpoint()
    while True:
        try:
            raw, _ = listener.accept()
        except BlockingIOError:
            await anyio.wait_readable(listener)
        else:
            return Link(raw)
