"""One measurement of one client, in this process: `python measure.py ROW CLIENT COUNT` prints JSON.

A process measures one client once, so that no client pays for what another imported or left behind.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import resource
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path

from clients import HTTP, MANY, STDIO, Peer, command

__all__ = ["LARGE_BYTES", "ROWS"]

LARGE_BYTES = 7_900 * 1024
"""A text that leaves a frame just under the usual bound of 8 MiB."""
ARGUMENTS: dict[str, object] = {"text": "hello"}
SERVERS = 50
TOOLS = 10_000
SCHEMA_BYTES = 2_000

Figures = dict[str, float]


async def _calls(peer: Peer, concurrency: int, count: int) -> Figures:
    """Microseconds of CPU a call, and its latency, with so many callers that take turns."""
    latencies: list[float] = []
    left = max(50, concurrency)
    keep = False

    async def work() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            began = time.perf_counter()
            await peer.call(ARGUMENTS)
            if keep:
                latencies.append(time.perf_counter() - began)

    await asyncio.gather(*(work() for _ in range(concurrency)))
    left, keep = count, True
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    latencies.sort()
    return {
        "cpu": cpu / len(latencies) * 1e6,
        "rate": len(latencies) / wall,
        "p50": latencies[len(latencies) // 2] * 1e6,
        "p99": latencies[int(len(latencies) * 0.99)] * 1e6,
    }


def _stdio_calls(concurrency: int) -> Row:
    async def row(name: str, count: int) -> Figures:
        async with STDIO[name](command()) as peer:
            return await _calls(peer, concurrency, count)

    return row


def _http_calls(kind: str, concurrency: int) -> Row:
    async def row(name: str, count: int) -> Figures:
        async with _http_server(kind) as port, HTTP[name](port) as peer:
            return await _calls(peer, concurrency, count)

    return row


@asynccontextmanager
async def _http_server(kind: str) -> AsyncGenerator[int]:
    server = Path(__file__).with_name("http_server.py")
    with subprocess.Popen(  # noqa: ASYNC220  # nothing else runs yet
        [sys.executable, str(server), kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()


async def _large(peer: Peer, count: int) -> Figures:
    """Milliseconds of CPU a result, and how far the peak of memory rose above what was in use."""
    await peer.call(ARGUMENTS)
    before = _resident()
    cpu = time.process_time()
    for _ in range(count):
        await peer.call({"size": LARGE_BYTES})
    cpu = time.process_time() - cpu
    return {"cpu": cpu / count * 1e3, "peak": (_peak() - before) / LARGE_BYTES}


async def _large_stdio(name: str, count: int) -> Figures:
    async with STDIO[name](command()) as peer:
        return await _large(peer, count)


def _large_http(kind: str) -> Row:
    async def row(name: str, count: int) -> Figures:
        async with _http_server(kind) as port, HTTP[name](port) as peer:
            return await _large(peer, count)

    return row


async def _connect(name: str, count: int) -> Figures:
    """Milliseconds of CPU to connect to servers at once, list the tools of each, and close."""
    async with MANY[name]() as connect:
        async with connect(command()) as peer:  # so that everything is imported
            await peer.tools()
        ready, over = asyncio.Semaphore(0), asyncio.Event()

        async def one() -> None:
            async with connect(command()) as peer:
                await peer.tools()
                ready.release()
                await over.wait()

        opening = time.process_time()
        tasks = [asyncio.create_task(one()) for _ in range(count)]
        for _ in tasks:
            await ready.acquire()
        closing = time.process_time()
        over.set()
        await asyncio.gather(*tasks)
        return {"cpu": (closing - opening) * 1e3, "close": (time.process_time() - closing) * 1e3}


async def _listing(name: str, count: int) -> Figures:
    """Milliseconds of CPU to list so many tools with small schemas."""
    async with STDIO[name](command(count, 200)) as peer:
        await peer.call(ARGUMENTS)
        cpu = time.process_time()
        found = await peer.tools()
        cpu = time.process_time() - cpu
    assert len(found) == count
    return {"cpu": cpu * 1e3}


async def _catalogue(name: str, count: int) -> Figures:
    """Megabytes that a listing with large schemas holds, and what it adds to a full collection."""
    async with STDIO[name](command(count, SCHEMA_BYTES)) as peer:
        await peer.call(ARGUMENTS)
        gc.collect()
        memory, pause = _resident(), _pause()
        found = await peer.tools()
        gc.collect()
        held = _resident() - memory
        assert len(found) == count
        return {"held": held / 1e6, "pause": (_pause() - pause) * 1e3}


def _pause() -> float:
    def once() -> float:
        began = time.process_time()
        gc.collect()
        return time.process_time() - began

    return min(once() for _ in range(5))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


_PROGRAMS = {
    "floor": "import asyncio, json",
    "client": "import mcp_client; mcp_client.connect",
    "remit": "import sys; from orchestrator.cli import main; sys.argv = ['remit', '--help']; main()",
    "session": "import mcp; mcp.ClientSession",
    "sdk": "import mcp; mcp.Client",
}


async def _import(name: str, count: int) -> Figures:
    """Milliseconds of CPU of a fresh process over that of one that does nothing."""

    def run(program: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    run(_PROGRAMS[name])  # so that its bytecode is there
    least = [min(run(program) for _ in range(count)) for program in (_PROGRAMS[name], "pass")]
    return {"cpu": (least[0] - least[1]) * 1e3}


Row = Callable[[str, int], Coroutine[None, None, Figures]]

ROWS: dict[str, Row] = {
    "stdio c=1": _stdio_calls(1),
    "stdio c=16": _stdio_calls(16),
    "stdio c=256": _stdio_calls(256),
    "http json c=16": _http_calls("json", 16),
    "http json c=256": _http_calls("json", 256),
    "http sse c=16": _http_calls("sse", 16),
    "http sse c=256": _http_calls("sse", 256),
    "large stdio": _large_stdio,
    "large http json": _large_http("json"),
    "large http sse": _large_http("sse"),
    "connect": _connect,
    "list": _listing,
    "catalogue": _catalogue,
    "import": _import,
}
"""By name: what is measured of one client, so many times."""


def main() -> None:
    """Measure once and print what was found."""
    logging.disable(logging.CRITICAL)
    row, name, count = sys.argv[1:]
    print(json.dumps(asyncio.run(ROWS[row](name, int(count)))))


if __name__ == "__main__":
    main()
