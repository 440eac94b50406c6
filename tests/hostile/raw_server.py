"""A server on loopback that sends any bytes, at any time, read or unread; it answers the handshake."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["Evil", "RawServer", "ok", "raw_server", "reply_to", "tool_text"]

_WIDE = ClientLimits(frame_bytes_max=1 << 30, nesting_depth_max=1_000)

Evil = Callable[[anyio.abc.SocketStream, Mapping[str, object]], Awaitable[None]]
"""Does with a connection what it likes, once the head and the body of a call were read."""


@dataclass
class RawServer:
    """A server that runs. `heads` are the request lines and headers that came."""

    port: int
    heads: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def came(self, start: str) -> int:
        """How many requests began like that."""
        return sum(head.startswith(start) for head in self.heads)


def reply_to(message: Mapping[str, object], result: object) -> bytes:
    """The answer to a request, as JSON."""
    return encode({"jsonrpc": "2.0", "id": message.get("id"), "result": result})


def tool_text(text: str) -> Mapping[str, object]:
    """A tool's result."""
    return {"content": [{"type": "text", "text": text}]}


def ok(body: bytes, kind: str = "application/json", *lines: str, status: str = "200 OK") -> bytes:
    """A whole response with a length."""
    head = "".join(f"{line}\r\n" for line in (f"Content-Type: {kind}", *lines))
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


@asynccontextmanager
async def raw_server(evil: Evil, *, read_body: bool = True) -> AsyncGenerator[RawServer]:
    """A server of 2025-11-25 whose answers to `tools/call` are up to `evil`.

    With `read_body` false what is evil begins after the head of a large call.
    """
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        server = RawServer(listener.extra_attributes[anyio.abc.SocketAttribute.local_port]())

        async def serve(stream: anyio.abc.SocketStream) -> None:
            async with stream:
                try:
                    while await _one(stream, server, evil, read_body=read_body):
                        pass
                except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                    pass  # the client has closed it

        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, serve)
            yield server
            group.cancel_scope.cancel()


async def _one(
    stream: anyio.abc.SocketStream, server: RawServer, evil: Evil, *, read_body: bool
) -> bool:
    buffer = b""
    while b"\r\n\r\n" not in buffer:
        buffer += await stream.receive()
    head, _, body = buffer.partition(b"\r\n\r\n")
    server.heads.append(head.decode("latin-1"))
    lines = dict(line.lower().split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
    length = int(lines.get("content-length", "0"))
    if length > 1_000_000 and not read_body:
        await evil(stream, {})
        return False
    while len(body) < length:
        body += await stream.receive()
    message = (as_object(decode(body, _WIDE)) or {}) if body else {}
    match message.get("method"):
        case "initialize":
            result: object = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "evil", "version": "1"},
            }
            await stream.send(ok(reply_to(message, result)))
        case "tools/call":
            await evil(stream, message)
        case "ping":
            await stream.send(ok(reply_to(message, {})))
        case str():
            await stream.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        case _:
            await stream.send(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
    return True
