"""The pipes to an editor: bytes in, frames out, and the end of both. Knows no method.

Nothing but frames goes to stdout: whatever else in this process writes there is led to stderr.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel

from orchestrator.surfaces.acp.limits import AcpLimits

__all__ = ["Outbox", "private_stdout", "read_bytes"]

_PIECE_BYTES = 64 * 1024
"""Read and written at once: the usual size of a pipe's buffer."""


@contextmanager
def private_stdout() -> Generator[int]:
    """Give a descriptor of stdout that nobody else has; the usual one is stderr meanwhile."""
    own = os.dup(1)
    try:
        os.dup2(2, 1)
        yield own
    finally:
        os.dup2(own, 1)
        os.close(own)


class Outbox:
    """Frames on their way, in their order. `put` never blocks; one that is not read is given up."""

    def __init__(self, limits: AcpLimits, give_up: Callable[[], None]) -> None:
        self._frames = deque[bytes]()
        self._bytes = 0
        self._bytes_max = limits.outbox_bytes_max
        self._give_up = give_up
        self._filled = anyio.Event()

    def put(self, frame: bytes) -> None:
        """Put a frame behind the others. An editor that does not read is given up."""
        if self._bytes + len(frame) > self._bytes_max:
            self._give_up()
            return
        self._bytes += len(frame)
        self._frames.append(frame)
        self._filled.set()

    async def write_to(self, descriptor: int) -> None:
        """Write what there is, and what comes, for as long as somebody reads."""
        was_blocking = os.get_blocking(descriptor)
        os.set_blocking(descriptor, False)
        try:
            while True:
                while self._frames:
                    frame = self._frames.popleft()
                    await _write(descriptor, frame)
                    self._bytes -= len(frame)
                self._filled = anyio.Event()
                await self._filled.wait()
        except OSError:
            self._give_up()  # nobody reads any more
        finally:
            os.set_blocking(descriptor, was_blocking)


async def read_bytes(descriptor: int) -> AsyncIterator[bytes]:
    """Go through what comes, until its end."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except PermissionError:  # a plain file is always readable, and nothing can wait for it
            await anyio.lowlevel.checkpoint()
        try:
            data = os.read(descriptor, _PIECE_BYTES)
        except BlockingIOError:
            continue
        except OSError:
            return
        if not data:
            return
        yield data


async def _write(descriptor: int, frame: bytes) -> None:
    rest = memoryview(frame)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest[:_PIECE_BYTES]) :]
        except BlockingIOError:
            await anyio.wait_writable(descriptor)
