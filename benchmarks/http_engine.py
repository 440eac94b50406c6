"""What a JSON POST costs through our engine, beside httpx and a floor, in one interleaved run.

    python benchmarks/http_engine.py [--rounds 5] [--calls 4000] [--json]

Every client drives the same stdlib server, which runs in a process of its own, over kept-alive
connections; each measurement is a process of its own too, the clients taking turns. `engine` is a
direct exchange under a guard, as MCP traffic makes it; `client` is `guarded_client(...).post`.
Client CPU is what to compare; wall time on a shared machine is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from mcp_client.protocol.errors import Delivery

CONCURRENCY = (1, 16, 256)
BODY = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "hello"}},
    }
).encode()
ANSWER = json.dumps(
    {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "hello"}]}}
).encode()
HEADERS = (
    ("Accept", "application/json, text/event-stream"),
    ("Content-Type", "application/json"),
    ("Mcp-Session-Id", "0123456789abcdef"),
    ("MCP-Protocol-Version", "2025-11-25"),
)

OneCall = Callable[[], Awaitable[object]]


# ------------------------------------------------------------------------------- the server


class _Server(asyncio.Protocol):
    """Answers each request with the same bytes; the requests are small and come whole."""

    response = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (len(ANSWER), ANSWER)
    )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(BODY)) >= 0:
            self._received = self._received[end + len(BODY) :]
            self._transport.write(self.response)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Server, "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = loop.create_future()
    loop.add_reader(0, lambda: ended.done() or ended.set_result(None))  # with its parent
    await ended


# ------------------------------------------------------------------------------- the clients


class _Floor(asyncio.Protocol):
    """The least that a client can do: one write, one search for the body. No checks at all."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.waiting: asyncio.Future[bytes] | None = None
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if found:
            length = int(head[head.index(b"Content-Length: ") + 16 :])
            if len(body) >= length and self.waiting is not None:
                self._received = body[length:]
                self.waiting.set_result(body[:length])

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        self.waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self.waiting


@asynccontextmanager
async def floor(port: int) -> AsyncGenerator[OneCall]:
    """Raw asyncio."""
    loop = asyncio.get_running_loop()
    idle: list[_Floor] = []
    opened: list[asyncio.Transport] = []
    fields = "".join(f"{name}: {value}\r\n" for name, value in HEADERS)

    async def call() -> object:
        if idle:
            connection = idle.pop()
        else:
            transport, connection = await loop.create_connection(_Floor, "127.0.0.1", port)
            opened.append(transport)
        head = f"POST /mcp HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {len(BODY)}\r\n\r\n"
        answer = json.loads(await connection.ask(head.encode() + BODY))
        idle.append(connection)
        return answer

    yield call
    for transport in opened:
        transport.close()


@asynccontextmanager
async def plain_httpx(port: int) -> AsyncGenerator[OneCall]:
    """The client of httpx as it comes, over httpcore."""
    import httpx

    limits = httpx.Limits(max_connections=256, max_keepalive_connections=256)
    async with httpx.AsyncClient(limits=limits, trust_env=False) as client:
        url = f"http://127.0.0.1:{port}/mcp"

        async def call() -> object:
            response = await client.post(url, content=BODY, headers=HEADERS)
            return response.json()

        yield call


class _Ticket:
    """A request on its way."""

    id = 1
    method = "tools/call"
    name = "echo"
    headers: Sequence[tuple[str, str]] = ()
    settled = False

    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0

    def refused(self, error: Exception) -> None:
        pass

    def written(self) -> None:
        pass

    def failed(self, error: Exception) -> None:
        pass

    def lost(self) -> None:
        pass


class _Sink:
    """Keeps a body and wakes who waits for it."""

    def __init__(self, waiter: asyncio.Future[bytes]) -> None:
        self._waiter = waiter
        self._pieces: list[bytes] = []

    def refused(self, error: Exception) -> None:
        self._waiter.set_exception(error)

    def first_byte_out(self) -> None:
        pass

    def written(self) -> None:
        pass

    def response_started(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        pass

    def body(self, data: bytes) -> None:
        self._pieces.append(data)

    def ended(self) -> None:
        self._waiter.set_result(b"".join(self._pieces))

    def failed(self, error: Exception, delivery: Delivery) -> None:
        self._waiter.set_exception(error)


@asynccontextmanager
async def engine(port: int) -> AsyncGenerator[OneCall]:
    """Our engine, called as MCP traffic calls it: a guard, a ticket and a sink for each request."""
    from mcp_client.net.http.engine import HttpEngine
    from mcp_client.net.http.messages import HttpRequest, Target
    from mcp_client.net.reactor import open_reactor
    from mcp_client.ports import SILENT, UNGUARDED

    async with open_reactor() as reactor:
        ours = HttpEngine(reactor, observer=SILENT)
        target = Target.parse(f"http://127.0.0.1:{port}/mcp")
        loop = asyncio.get_running_loop()

        async def call() -> object:
            waiter: asyncio.Future[bytes] = loop.create_future()
            request = HttpRequest(method="POST", target=target, headers=HEADERS, body=BODY)
            ours.exchange(request, UNGUARDED, _Ticket(), _Sink(waiter))
            return json.loads(await waiter)

        yield call
        ours.close()


@asynccontextmanager
async def client(port: int) -> AsyncGenerator[OneCall]:
    """The client of httpx over our engine."""
    from mcp_client.net.http.engine import HttpEngine
    from mcp_client.net.http.httpx_transport import guarded_client
    from mcp_client.net.reactor import open_reactor
    from mcp_client.ports import SILENT, UNGUARDED

    async with open_reactor() as reactor:
        ours = HttpEngine(reactor, observer=SILENT)
        async with guarded_client(ours, seconds=30) as http:
            url = f"http://127.0.0.1:{port}/mcp"

            async def call() -> object:
                response = await http.post(
                    url, content=BODY, headers=HEADERS, extensions={"guard": UNGUARDED}
                )
                return response.json()

            yield call
        ours.close()


CLIENTS: dict[str, Callable[[int], AbstractAsyncContextManager[OneCall]]] = {
    "floor": floor,
    "engine": engine,
    "client": client,
    "httpx": plain_httpx,
}


# ------------------------------------------------------------------------------- measuring


async def measure(name: str, port: int, concurrency: int, calls: int) -> dict[str, float]:
    """CPU and wall microseconds of one call, after a warm-up."""
    async with CLIENTS[name](port) as call:

        async def work(count: int) -> None:
            for _ in range(count):
                await call()

        await asyncio.gather(*(work(3) for _ in range(concurrency)))
        each = max(1, calls // concurrency)
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(work(each) for _ in range(concurrency)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    count = each * concurrency
    return {"cpu": cpu / count * 1e6, "wall": wall / count * 1e6}


def measured(name: str, port: int, concurrency: int, calls: int) -> dict[str, float]:
    """The same, in a process of its own."""
    command = [sys.executable, __file__, "--one", name, str(port), str(concurrency), str(calls)]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout)


def run(rounds: int, calls: int) -> dict[str, dict[int, float]]:
    """Median CPU microseconds by client and concurrency."""
    command = [sys.executable, __file__, "--serve"]
    figures: dict[str, dict[int, list[float]]] = {
        name: {concurrency: [] for concurrency in CONCURRENCY} for name in CLIENTS
    }
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        port = int(server.stdout.readline())
        for _ in range(rounds):
            for concurrency in CONCURRENCY:
                for name in CLIENTS:
                    count = calls // 4 if name == "httpx" else calls
                    one = measured(name, port, concurrency, count)
                    figures[name][concurrency].append(one["cpu"])
        server.stdin.close()
    return {
        name: {concurrency: statistics.median(values) for concurrency, values in by.items()}
        for name, by in figures.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU microseconds of one JSON POST.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    if options.one:
        name, *numbers = options.one
        print(json.dumps(asyncio.run(measure(name, *map(int, numbers)))))
        return
    figures = run(options.rounds, options.calls)
    if options.json:
        print(json.dumps(figures))
        return
    print(f"{'CPU µs a call':14}" + "".join(f"{f'c={c}':>9}" for c in CONCURRENCY))
    for name, by in figures.items():
        print(f"{name:14}" + "".join(f"{by[c]:9.1f}" for c in CONCURRENCY))


if __name__ == "__main__":
    main()
