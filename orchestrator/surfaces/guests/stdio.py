"""A gateway's server on two descriptors: lines in, lines out, each within the bound of a frame."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

import anyio
import anyio.lowlevel
import mcp_types
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from mcp_client.protocol.errors import FrameTooLargeError
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.limits import ClientLimits

__all__ = ["serve_lines"]

_READ_BYTES: Final = 64 * 1024
_WRITE_BYTES: Final = select.PIPE_BUF
"""What a pipe that can be written to takes without a wait."""


async def serve_lines(
    server: Server[dict[str, object]],
    read_fd: int,
    write_fd: int,
    *,
    frame_bytes_max: int = ClientLimits().frame_bytes_max,
) -> None:
    """Serve one client until its end of the pipe closes, or it sends what is no frame.

    Neither descriptor is put into another mode: both may be shared with whoever started us.
    """
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_server:
            try:
                async for line in _lines(read_fd, frame_bytes_max):
                    await to_server.send(_message(line))
            except FrameTooLargeError:
                return  # where the next frame begins is not known

    async def write() -> None:
        async with from_server:
            async for item in from_server:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await _write(write_fd, text.encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(write)
        async with incoming, outgoing:
            await server.run(incoming, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | Exception:
    """Return a line's message, or the error that says that it is none; the server answers to both."""
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


async def _lines(fd: int, frame_bytes_max: int) -> AsyncGenerator[bytes]:
    framer = LineFramer(frame_bytes_max)
    while True:
        await _ready(anyio.wait_readable, fd)
        data = os.read(fd, _READ_BYTES)
        if not data:
            return
        for line in framer.feed(data):
            yield line


async def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        await _ready(anyio.wait_writable, fd)
        try:
            written = os.write(fd, view[:_WRITE_BYTES])
        except BlockingIOError:  # whoever started us has put it into that mode
            continue
        view = view[written:]


async def _ready(wait: Callable[[int], Awaitable[None]], fd: int) -> None:
    """Wait for a descriptor. A file is always ready, and cannot be waited for."""
    try:
        await wait(fd)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        await anyio.lowlevel.checkpoint()
