"""A client alone in its process calls a tool of a hostile server and says what that cost it.

    python measuring.py stdio PROGRAM WAY
    python measuring.py http|sse URL

It prints the outcome of the call, the rise of its peak memory since just before, and the most CPU
time that any step of the loop took: between two turns of a task that does nothing.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel

from mcp_client.client import HttpKind, HttpSpec, ServerSpec, connect
from mcp_client.ports import UNGUARDED
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.limits import ClientLimits


def peak_kib() -> int:
    """The most memory that was resident since it was last forgotten."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise AssertionError("no VmHWM")


def forget_peak() -> None:
    """Begin anew with the memory that is resident now (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5", "ascii")


class Pauses:
    """Watches the loop. Other processes' work does not count: only CPU time of this one does."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        before = time.process_time()
        while True:
            await anyio.lowlevel.checkpoint()
            now = time.process_time()
            self.longest = max(self.longest, now - before)
            before = now


async def main() -> None:
    kind, where, *way = sys.argv[1:]
    source = (
        ServerSpec(name="s", command=sys.executable, args=("-I", "-S", where, *way))
        if kind == "stdio"
        else HttpSpec(
            name="s", url=where, kind=HttpKind("sse" if kind == "sse" else "streamable-http")
        )
    )
    limits = ClientLimits(close_seconds_max=0.1, request_seconds_max=5)
    outcome, pauses = "answered", Pauses()
    async with connect(source, guard=UNGUARDED, limits=limits) as client:
        with suppress(McpError):
            await client.ping()
        # what was loaded for the first call is not what the bad one costs
        forget_peak()
        start = peak_kib()
        async with anyio.create_task_group() as group:
            group.start_soon(pauses.watch)
            await anyio.lowlevel.checkpoint()
            try:
                await client.call_tool("any", {})
            except McpError as error:
                outcome = type(error).__name__
            group.cancel_scope.cancel()
        rise = peak_kib() - start
    found = {"outcome": outcome, "rise_mib": rise / 1024, "pause_ms": pauses.longest * 1000}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    anyio.run(main)
