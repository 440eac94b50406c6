"""The echo server over Streamable HTTP: kept-alive connections, each answer as JSON or as an event.

    python http_server.py json|sse

It prints its port, and ends with its input. Requests are small; what it cannot parse it cuts off.
"""

from __future__ import annotations

import asyncio
import json
import sys

from echo_server import answer

__all__ = ["serve"]


class _Server(asyncio.Protocol):
    """One connection."""

    def __init__(self, kind: str) -> None:
        self._sse = kind == "sse"
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while True:
            head, found, rest = self._received.partition(b"\r\n\r\n")
            if not found:
                return
            lowered = head.lower()
            at = lowered.find(b"\r\ncontent-length:")
            length = int(lowered[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(rest) < length:
                return
            self._received = rest[length:]
            self._transport.write(self._response(head[:4], rest[:length]))

    def _response(self, method: bytes, body: bytes) -> bytes:
        if method != b"POST":
            return b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
        message = answer(body)
        if message is None:
            return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
        session = b"Mcp-Session-Id: 0123456789abcdef\r\n" if b'"initialize"' in body else b""
        kind = b"application/json"
        if self._sse:
            kind, message = b"text/event-stream", b"event: message\ndata: %b\n\n" % message
        return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\n%bContent-Length: %d\r\n\r\n%b" % (
            kind,
            session,
            len(message),
            message,
        )


async def serve(kind: str) -> None:
    """Serve until the input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Server(kind), "127.0.0.1", 0, backlog=512)
    print(json.dumps(server.sockets[0].getsockname()[1]), flush=True)
    ended = loop.create_future()
    loop.add_reader(0, lambda: ended.done() or ended.set_result(None))
    await ended


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
