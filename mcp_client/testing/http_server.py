"""An HTTP server on loopback that does what a test tells it, with a log; it knows no MCP.

It is written over plain sockets, so that a test decides on every byte: heads, chunks, cuts.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.abc

from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["HttpCall", "HttpHandler", "HttpReply", "HttpServer", "serve_http"]

_WIDE = ClientLimits(frame_bytes_max=1 << 30, nesting_depth_max=1_000)
_LENGTH = re.compile(r"[0-9]+").fullmatch


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpCall:
    """One request, as it came.

    Attributes:
        connection: the number of the connection, counted from 0.
        method: such as POST.
        path: with the query.
        headers: by name in lower case; those given twice are joined by a comma.
        body: the whole of it.
    """

    connection: int
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Mapping[str, object]:
        """The body as a JSON object; empty if it is none."""
        return (as_object(decode(self.body, _WIDE)) or {}) if self.body else {}

    @property
    def rpc_method(self) -> str:
        """The message's method; empty if it has none."""
        method = self.message.get("method")
        return method if isinstance(method, str) else ""


class HttpReply:
    """The response to one call, made piece by piece. Everything that it writes leaves at once."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self.open = True

    async def send(
        self, status: int, body: bytes = b"", *, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a whole response with a length."""
        lines = {"Content-Length": str(len(body)), **(headers or {})}
        await self.raw(_head(status, lines) + body)

    async def json(
        self, message: object, *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send a JSON text as the whole response."""
        body = encode(message, depth_max=_WIDE.nesting_depth_max)
        await self.send(
            status, body, headers={"Content-Type": "application/json", **(headers or {})}
        )

    async def start_events(
        self, *, headers: Mapping[str, str] | None = None, status: int = 200
    ) -> None:
        """Begin a stream of events, in chunks."""
        lines = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self.raw(_head(status, {**lines, **(headers or {})}))

    async def event(
        self,
        message: object = None,
        *,
        id: str | None = None,  # noqa: A002  # the name of the field
        kind: str = "message",
        retry: int | None = None,
        data: str | None = None,
    ) -> None:
        """Send one event, with a message or with any data."""
        lines = [] if id is None else [f"id: {id}"]
        lines += [] if retry is None else [f"retry: {retry}"]
        lines += [] if kind == "message" else [f"event: {kind}"]
        if data is None:
            data = "" if message is None else encode(message).decode()
        lines += [f"data: {line}" for line in data.split("\n")]
        await self.chunk("".join(f"{line}\n" for line in (*lines, "")).encode())

    async def chunk(self, data: bytes) -> None:
        """Send one chunk."""
        await self.raw(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """Send the last chunk."""
        await self.raw(b"0\r\n\r\n")

    async def raw(self, data: bytes) -> None:
        """Send any bytes."""
        await self._stream.send(data)

    async def cut(self) -> None:
        """Close the connection where it stands, as if the network had done it."""
        self.open = False
        raw = self._stream.extra_attributes[anyio.abc.SocketAttribute.raw_socket]()
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await self._stream.aclose()

    async def until_gone(self) -> None:
        """Wait until the client has closed the connection."""
        self.open = False
        try:
            while True:
                await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


HttpHandler = Callable[[HttpCall, HttpReply], Awaitable[None]]
"""Answers one call. What it leaves unsaid stays unsaid: the client waits."""


@dataclass(slots=True)
class HttpServer:
    """A server that runs.

    Attributes:
        port: where, on 127.0.0.1.
        calls: what came, in order.
        path: of `url`.
    """

    port: int
    path: str = "/mcp"
    calls: list[HttpCall] = field(default_factory=list[HttpCall])
    connections: int = 0
    _changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def url(self) -> str:
        """The address of its endpoint."""
        return f"http://127.0.0.1:{self.port}{self.path}"

    def posts(self, rpc_method: str) -> Sequence[HttpCall]:
        """Return the POSTs of one JSON-RPC method that came so far."""
        return [each for each in self.calls if each.rpc_method == rpc_method]

    def of(self, method: str) -> Sequence[HttpCall]:
        """Return the calls of one HTTP method that came so far."""
        return [each for each in self.calls if each.method == method]

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until something is true; it is asked again with each call that comes."""
        while not true():
            await self._changed.wait()

    def came(self, call: HttpCall) -> None:
        """Log a call."""
        self.calls.append(call)
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


@asynccontextmanager
async def serve_http(handler: HttpHandler, *, path: str = "/mcp") -> AsyncGenerator[HttpServer]:
    """Yield a server on a port of its own; its connections end with the block."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]()
        server = HttpServer(port, path)

        async def serve(stream: anyio.abc.SocketStream) -> None:
            number = server.connections
            server.connections += 1
            async with stream:
                await _serve(stream, server, handler, number)

        try:
            async with anyio.create_task_group() as group:
                group.start_soon(listener.serve, serve)
                yield server
                group.cancel_scope.cancel()
        except BaseExceptionGroup as errors:
            if len(errors.exceptions) == 1:  # the block's own, as it was raised
                raise errors.exceptions[0] from None
            raise


async def _serve(
    stream: anyio.abc.SocketStream, server: HttpServer, handler: HttpHandler, number: int
) -> None:
    buffer = bytearray()
    try:
        while True:
            while (end := buffer.find(b"\r\n\r\n")) < 0:
                buffer += await stream.receive()
            head = bytes(buffer[:end])
            del buffer[: end + 4]
            first, headers = _read_head(head.decode("latin-1"))
            length = headers.get("content-length", "0")
            while _LENGTH(length) and len(buffer) < int(length):
                buffer += await stream.receive()
            body = bytes(buffer[: int(length)])
            del buffer[: int(length)]
            method, path, _ = first.split(" ")
            call = HttpCall(connection=number, method=method, path=path, headers=headers, body=body)
            server.came(call)
            reply = HttpReply(stream)
            await handler(call, reply)
            if not reply.open:
                return
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # the client has closed it


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode("latin-1")


def _read_head(text: str) -> tuple[str, dict[str, str]]:
    first, *lines = text.split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        name = name.strip().lower()
        headers[name] = f"{headers[name]}, {value.strip()}" if name in headers else value.strip()
    return first, headers
