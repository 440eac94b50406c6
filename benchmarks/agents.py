"""What subagents cost: fresh ones with one call each, parked ones, ten thousand at once, and search.

The server is in the same process here; beside other frameworks and over stdio, `spawning/run.py` measures.
Compare only within one run; CPU time and memory are those of processes of their own.

python benchmarks/agents.py [--quick] [--rows NAME …]
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import policies
from mcp_client.testing import ScriptedServer
from orchestrator import AgentTask, Call, recipe
from orchestrator.agents.model import CallResult, Conversation, RequestGate, ToolSpec, Turn
from orchestrator.broker.builtins import list_capabilities
from orchestrator.catalog.search import Entry, SearchIndex
from orchestrator.core.documents import read_json
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, read_servers
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.ports import NobodyToAsk, RandomIds, SessionPorts, SystemClock
from orchestrator.telemetry.null import NO_TELEMETRY

POLICY = 'policy bench v1 { permit "all" call on any server/* }'
PARALLEL = 16


class Unrecorded:
    """An audit sink that keeps nothing."""

    def append(self, kind: str, fields: object) -> None:
        """Forget one record."""

    def flush(self) -> None:
        """Have nothing to hand on."""


def one_call(task: AgentTask) -> Generator[object, object, object]:
    """One call, and its text as the answer."""
    got = yield Call("echo", "ok")
    return got is not None


def parked(task: AgentTask) -> Generator[object, object, object]:
    """One call that is never answered."""
    yield Call("echo", "wait")


async def session(stack: AsyncExitStack) -> tuple[ParentSession, ScriptedServer]:
    """A session over a server in this process, with its tools admitted."""
    server = ScriptedServer("echo")
    server.add_tool("ok", lambda _: "ok")
    server.add_tool("wait", None)
    document = read_json(json.dumps({"mcpServers": {"echo": {"command": "none"}}}), "bench.json")
    here = Path.cwd()
    source = ServersSource(origin=Origin.PROFILE, project=here, home=here, environ={}, minimum=None)
    made = ParentSession(
        servers=read_servers(document, source).entries,
        policy=policies.load([policies.Source("bench.policy", POLICY)]),
        limits=OrchestratorLimits(agents_max=20_000),
        builtins=(list_capabilities,),
        ports=SessionPorts(
            clock=SystemClock(),
            ids=RandomIds(),
            approver=NobodyToAsk(),
            audit=Unrecorded(),
            telemetry=NO_TELEMETRY,
            emit=lambda _: None,
            digest_arguments=lambda data: str(len(data)),
        ),
        reach=lambda _: server,
    )
    await stack.enter_async_context(made.running())
    for connection in made.servers.values():
        assert connection.listing is not None
        made.admit(connection.listing)
    return made, server


async def side_by_side(work: Callable[[int], Awaitable[None]], count: int) -> float:
    """Do it so many times, PARALLEL at once; return how many a second of CPU."""
    numbers = iter(range(count))

    async def some() -> None:
        for number in numbers:
            await work(number)

    started = time.process_time()
    await asyncio.gather(*(some() for _ in range(PARALLEL)))
    return count / (time.process_time() - started)


async def fresh_ours(count: int) -> float:
    """Fresh agents with one tool call each."""
    async with AsyncExitStack() as stack:
        made, _ = await session(stack)
        model = recipe(one_call)

        async def work(number: int) -> None:
            result = await made.subagent(f"a{number}", role="worker", model=model).run("go")
            assert result.answer is True

        return await side_by_side(work, count)


async def parked_ours(count: int) -> float:
    """Bytes of a thousand agents that wait for a call, one task each."""
    async with AsyncExitStack() as stack:
        made, server = await session(stack)
        model = recipe(parked)
        await made.subagent("first", role="worker", model=model).start("x")
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            await made.subagent(f"a{number}", role="worker", model=model).start("go")
        while len(server.held) < count + 1:  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0)
        gc.collect()
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        made.close()
        return used * 1000 / count


class Thinking:
    """A model that is asked and does not answer."""

    name = "thinking"
    provider = "bench"

    def __init__(self) -> None:
        self.asked = 0

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[Conversation]:
        """Begin an exchange."""
        yield self

    async def next(self, results: Sequence[CallResult]) -> Turn:
        """Wait for ever."""
        self.asked += 1
        await asyncio.Event().wait()
        raise AssertionError


async def many_ours(count: int) -> float:
    """Milliseconds of the one act that closes so many live agents, each at its model."""
    async with AsyncExitStack() as stack:
        made, _ = await session(stack)
        model = Thinking()
        tasks = [
            await made.subagent(f"a{number}", role="worker", model=model).start("go")
            for number in range(count)
        ]
        while model.asked < count:  # noqa: ASYNC110 - counted elsewhere
            await asyncio.sleep(0)
        assert len(made.agents) == count
        started = time.process_time()
        made.close()
        took = time.process_time() - started
        assert not made.agents
        for task in tasks:
            await task.wait()
        return took * 1000


_VERBS = [
    "get",
    "list",
    "create",
    "delete",
    "update",
    "search",
    "read",
    "write",
    "send",
    "move",
    "run",
    "close",
    "export",
]
_THINGS = [
    "file",
    "issue",
    "branch",
    "user",
    "team",
    "channel",
    "event",
    "order",
    "ticket",
    "page",
    "table",
    "query",
    "alert",
]
_WORDS = [
    "open",
    "recent",
    "draft",
    "shared",
    "public",
    "failed",
    "pending",
    "archived",
    "private",
    "running",
    "closed",
]
_EXTRA = [
    "returns",
    "the",
    "matching",
    "items",
    "as",
    "text",
    "with",
    "filters",
    "and",
    "pages",
    "sorted",
    "by",
    "date",
]


def search_ours(count: int) -> float:
    """Milliseconds of the median search over so many tools, within half of them."""
    chance = random.Random(1)
    entries = [
        Entry(
            (f"s{number % 200}", f"{number}"),
            f"{chance.choice(_VERBS)}_{chance.choice(_WORDS)}_{chance.choice(_THINGS)}",
            " ".join(chance.choices(_EXTRA, k=12) + chance.choices(_THINGS, k=3)),
        )
        for number in range(count)
    ]
    index: SearchIndex[tuple[str, str]] = SearchIndex()
    index.update(entries)
    among = index.numbers(entry.key for entry in entries[::2])
    times: list[float] = []
    for _ in range(400):
        query = " ".join((chance.choice(_VERBS), chance.choice(_WORDS), chance.choice(_THINGS)))
        started = time.perf_counter()
        index.search(query, among=among, count=6)
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1000


ROWS: dict[str, tuple[str, Callable[[int], float | Coroutine[Any, Any, float]], int]] = {
    "fresh": ("agents/s of CPU, one call each", fresh_ours, 2_000),
    "parked": ("bytes per 1,000 parked agents", parked_ours, 500),
    "many": ("ms CPU to close 10,000 live agents", many_ours, 10_000),
    "search": ("ms p50 over 10,000 tools", search_ours, 10_000),
}


def measure(row: str, count: int) -> float:
    """Measure one row in this process."""
    result = ROWS[row][1](count)
    return asyncio.run(result) if isinstance(result, Coroutine) else result


def main() -> None:
    """Measure each row in a process of its own, and print medians of the rounds."""
    parser = argparse.ArgumentParser(description="What subagents cost.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, one round")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.cell:
        print(measure(asked.cell[0], int(asked.cell[1])))
        return
    for row in asked.rows:
        title, _, count = ROWS[row]
        count = count // 10 if asked.quick else count
        figures: list[float] = []
        for _ in range(1 if asked.quick else 3):
            command = [sys.executable, __file__, "--cell", row, str(count)]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, text=True, timeout=300, check=True
            )
            figures.append(float(done.stdout))
        print(f"{row:8} {title}: {statistics.median(figures):,.2f}")


if __name__ == "__main__":
    main()
