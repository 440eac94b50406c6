"""What a guarded call costs, beside the official SDK's client and a raw pipe, in one interleaved run.

    python benchmarks/guarded_call.py [--rounds 5] [--calls 4000] [--json]

Every client drives the same stdlib echo server over stdio, each measurement in a process of its
own, the clients taking turns. `remit` is the whole road: snapshot, policy, gate, permit, audit log
on disk, answer checked again. Client CPU is what to compare; wall time on a shared machine is noise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

SERVER = Path(__file__).with_name("echo_server.py")
COMMAND = [sys.executable, "-I", "-S", str(SERVER)]
ARGUMENTS: dict[str, object] = {"text": "hello"}
CONCURRENCY = (1, 16, 256)
INITIALIZE: dict[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "floor", "version": "1"},
}

OneCall = Callable[[], Awaitable[object]]


class _Floor(asyncio.SubprocessProtocol):
    """The least that a client can do: a dict of futures, and json. No checks at all."""

    def __init__(self) -> None:
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._rest = b""
        self._count = 0
        self._out: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        self._pipe = pipe

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            self._waiting.pop(message["id"]).set_result(message)

    def request(self, method: str, params: object) -> asyncio.Future[object]:
        loop = asyncio.get_running_loop()
        self._count += 1
        future = self._waiting[self._count] = loop.create_future()
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        return future

    def _flush(self) -> None:
        self._pipe.write(b"".join(self._out))
        self._out.clear()


@asynccontextmanager
async def floor() -> AsyncGenerator[OneCall]:
    """A raw asyncio pipe."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.subprocess_exec(_Floor, *COMMAND)
    await protocol.request("initialize", INITIALIZE)
    params = {"name": "echo", "arguments": ARGUMENTS}
    try:
        yield lambda: protocol.request("tools/call", params)
    finally:
        transport.close()


@asynccontextmanager
async def sdk() -> AsyncGenerator[OneCall]:
    """The official `mcp` SDK's client."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
        await session.initialize()
        yield lambda: session.call_tool("echo", ARGUMENTS)


@asynccontextmanager
async def client() -> AsyncGenerator[OneCall]:
    """`mcp_client` alone, with leave to send anything."""
    from mcp_client import UNGUARDED, ServerSpec, connect

    spec = ServerSpec(name="echo", command=COMMAND[0], args=tuple(COMMAND[1:]))
    async with connect(spec, guard=UNGUARDED) as connected:
        yield lambda: connected.call_tool("echo", ARGUMENTS)


@asynccontextmanager
async def remit() -> AsyncGenerator[OneCall]:
    """The whole road of a subagent's call, with the audit log on disk."""
    from sessions import echo_view

    from orchestrator import Call

    with tempfile.TemporaryDirectory() as folder:
        async with echo_view(COMMAND, audit=Path(folder, "audit.jsonl")) as view:
            yield lambda: view.call(Call("echo", "echo", ARGUMENTS))


CLIENTS: dict[str, Callable[[], AbstractAsyncContextManager[OneCall]]] = {
    "floor": floor,
    "client": client,
    "remit": remit,
    "mcp": sdk,
}


async def measure(name: str, concurrency: int, calls: int) -> dict[str, float]:
    """Return calls per second, CPU µs a call and latency of one client in this process."""
    async with CLIENTS[name]() as call:
        for _ in range(50):
            await call()
        latencies: list[float] = []
        left = calls

        async def work() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                began = time.perf_counter()
                await call()
                latencies.append(time.perf_counter() - began)

        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    latencies.sort()
    count = len(latencies)
    return {
        "calls_per_second": count / wall,
        "cpu_us": cpu / count * 1e6,
        "p50_us": latencies[count // 2] * 1e6,
        "p99_us": latencies[int(count * 0.99)] * 1e6,
    }


def measure_apart(name: str, concurrency: int, calls: int) -> dict[str, float]:
    """Measure in a fresh process, so that no client pays for what another imported."""
    command = [sys.executable, __file__, "--one", name, str(concurrency), str(calls)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Run all clients in turns and print the medians and what they are of the SDK's and the floor's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--one", nargs=3, metavar=("CLIENT", "CONCURRENCY", "CALLS"))
    options = parser.parse_args()
    if options.one:
        name, concurrency, calls = options.one
        print(json.dumps(asyncio.run(measure(name, int(concurrency), int(calls)))))
        return
    runs: dict[tuple[str, int], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for concurrency in CONCURRENCY:
            for name in CLIENTS:
                found = measure_apart(name, concurrency, options.calls)
                runs.setdefault((name, concurrency), []).append(found)
    report(runs, as_json=options.json)


def report(runs: dict[tuple[str, int], list[dict[str, float]]], *, as_json: bool) -> None:
    """Print one line a client and concurrency."""
    medians = {
        key: {field: statistics.median(run[field] for run in found) for field in found[0]}
        for key, found in runs.items()
    }
    if as_json:
        print(json.dumps({f"{name} c={c}": values for (name, c), values in medians.items()}))
        return
    print("client  c    calls/s  CPU µs  p50 µs  p99 µs   x mcp calls/s  x mcp CPU  x floor CPU")
    for (name, concurrency), values in sorted(medians.items(), key=lambda item: item[0][1]):
        peer, base = medians["mcp", concurrency], medians["floor", concurrency]
        print(
            f"{name:7} {concurrency:<4} {values['calls_per_second']:8.0f} {values['cpu_us']:7.1f} "
            f"{values['p50_us']:7.0f} {values['p99_us']:7.0f}   "
            f"{values['calls_per_second'] / peer['calls_per_second']:13.1f}  "
            f"{values['cpu_us'] / peer['cpu_us']:9.3f}  {values['cpu_us'] / base['cpu_us']:11.2f}"
        )


if __name__ == "__main__":
    main()
