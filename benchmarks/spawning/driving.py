"""What every framework does alike: fresh agents with one call each, and parked ones. Knows none of them.

A framework's driver has `agents(command)`, an asynchronous context over one connected server; it yields
`one(number, tool)`, which makes a fresh agent with a scripted model, lets it call the tool once, and
returns whether the agent came to its end. Standard library only.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

SERVER = Path(__file__).with_name("server.py")
PARALLEL = 16
WARM_UP = 160
"""Agents before those that are counted: what the first ones load for all is not what an agent costs. With
remit that is the library that signs the head of its log, 8 ms with the first thousand records."""
PARKING_SECONDS_MAX = 100

One = Callable[[int, str], Coroutine[Any, Any, bool]]


class Peer(Protocol):
    """A framework's driver."""

    VERSION_OF: tuple[str, ...]

    def agents(self, command: list[str]) -> AbstractAsyncContextManager[One]:
        """Connect to the server, and yield what makes one agent and runs it."""
        ...


async def fresh(one: One, count: int) -> float:
    """Return how many agents are made and run in a second of this process's CPU, 16 at once."""
    await side_by_side(one, WARM_UP)
    started = time.process_time()
    await side_by_side(one, count)
    return count / (time.process_time() - started)


async def side_by_side(one: One, count: int) -> None:
    """Run so many agents, PARALLEL at a time. Raises where one has not come to its end."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            if not await one(number, "ok"):
                raise SystemExit(f"agent {number} has no result")

    await asyncio.gather(*(some() for _ in range(PARALLEL)))


async def parked(one: One, count: int, counted: Path) -> float:
    """Return the bytes that Python holds for 1,000 agents, each in a call that is not answered."""
    await one(-1, "ok")
    tasks = [asyncio.create_task(one(-2, "wait"))]
    await until(counted, 1, tasks)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tasks += [asyncio.create_task(one(number, "wait")) for number in range(count)]
    await until(counted, 1 + count, tasks)
    gc.collect()
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=5)
    return used * 1000 / count


async def until(counted: Path, count: int, tasks: list[asyncio.Task[bool]]) -> None:
    """Wait until so many calls have come to the server. Raises TimeoutError, and what ended a task."""
    async with asyncio.timeout(PARKING_SECONDS_MAX):
        while not counted.exists() or counted.stat().st_size < count:
            for task in tasks:
                if task.done():
                    raise SystemExit(f"an agent has ended that should wait: {task.exception()!r}")
            await asyncio.sleep(0.05)


async def measure(peer: Peer, row: str, count: int, folder: Path) -> float:
    """Measure one row."""
    counted = folder / "counted"
    async with peer.agents([sys.executable, str(SERVER), str(counted)]) as one:
        return await (fresh(one, count) if row == "fresh" else parked(one, count, counted))


def main(peer: Peer) -> None:
    """Measure what the command line says (ROW COUNT), and print it as JSON."""
    row, count = sys.argv[1], int(sys.argv[2])
    versions = {name: importlib.metadata.version(name) for name in peer.VERSION_OF}
    with tempfile.TemporaryDirectory(prefix="spawning.") as folder:
        figure = asyncio.run(measure(peer, row, count, Path(folder)))
        print(json.dumps({"versions": versions, "figure": figure}), flush=True)
