"""A server that sets out to outlive its host does not, and holds up no close: host and all are real."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc
import pytest

from tests.mcp_client.stdio.harness import BARE, is_alive, until_dead

pytestmark = pytest.mark.subprocess

SERVERS = Path(__file__).parents[2] / "servers"
ESCAPING = (*BARE[:-1], str(SERVERS / "escaping.py"))
CLOSE_MILLISECONDS_MAX = 2 * 100 + 1000 + 1000
"""Twice the patience of the harness's limits and a second; the rest is for a busy machine."""


@pytest.fixture
def anyio_backend() -> str:
    """What ends processes stands outside of the loop: one loop is enough for it."""
    return "asyncio"


@dataclass
class RunningHost:
    """A host in a process of its own."""

    process: anyio.abc.Process
    word: str
    children_left = -1

    @property
    def pid(self) -> int:
        return self.process.pid

    async def lines(self, count: int) -> list[bytes]:
        """The next lines that it prints."""
        assert self.process.stdout is not None
        printed = b""
        with anyio.fail_after(30):
            while printed.count(b"\n") < count:
                printed += await self.process.stdout.receive()
        return printed.splitlines()

    async def go(self) -> None:
        """Have the server do what it is for."""
        assert self.process.stdin is not None
        await self.process.stdin.send(b"x\n")
        assert await self.lines(1) == [b"done"]

    async def close(self) -> int:
        """Close the connection; how long that took, in milliseconds."""
        assert self.process.stdin is not None
        await self.process.stdin.aclose()
        took, self.children_left = map(int, (await self.lines(1))[0].split())
        return took

    def survivors(self) -> list[int]:
        """The processes of the server that are alive, found by what stands in their command."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.pid:
                with contextlib.suppress(OSError):
                    if self.word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
        return [pid for pid in found if is_alive(pid)]


@asynccontextmanager
async def a_host(way: str, *, how: str = "hardened", lines: int = 1) -> AsyncGenerator[RunningHost]:
    word = f"escape-{way}-{os.getpid()}-{os.urandom(4).hex()}"
    program = [sys.executable, str(SERVERS / "host.py"), how, str(lines), *ESCAPING, way, word]
    process = await anyio.open_process(program, stderr=None, start_new_session=True)
    host = RunningHost(process, word)
    try:
        yield host
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        for pid in host.survivors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def test_a_server_that_kills_supervisor_and_keeper_is_dead_at_once_with_all_its_processes() -> (
    None
):
    async with a_host("kill") as host:
        (escaped,) = map(int, await host.lines(1))
        await host.go()
        await until_dead([escaped])
        assert host.survivors() == []


async def test_a_host_whose_supervisor_and_keeper_were_killed_keeps_no_zombie() -> None:
    async with a_host("kill") as host:
        (escaped,) = map(int, await host.lines(1))
        await host.go()
        await until_dead([escaped])
        await host.close()
        assert host.children_left == 0


@pytest.mark.parametrize("how", ["plain", "hardened"])
@pytest.mark.parametrize("way", ["stop", "stop-again"])
async def test_a_server_that_stops_supervisor_and_keeper_holds_up_no_close_and_is_dead(
    way: str, how: str
) -> None:
    async with a_host(way, how=how) as host:
        await host.lines(1)
        await host.go()
        assert await host.close() <= CLOSE_MILLISECONDS_MAX
        assert host.survivors() == []


@pytest.mark.parametrize("how", ["plain", "hardened"])
@pytest.mark.parametrize("way", ["stop-kill", "kill-stop"])
async def test_a_server_that_stops_the_one_and_kills_the_other_is_dead_without_a_close(
    way: str, how: str
) -> None:
    async with a_host(way, how=how) as host:
        (escaped,) = map(int, await host.lines(1))
        await host.go()
        await until_dead([escaped])
        await host.close()
        assert host.survivors() == []


@pytest.mark.parametrize("how", ["plain", "hardened"])
@pytest.mark.parametrize("way", ["comets", "rebirth"])
async def test_processes_that_multiply_while_they_are_killed_are_all_dead_after_a_close(
    way: str, how: str
) -> None:
    async with a_host(way, how=how) as host:
        assert await host.lines(1) == [b"done"]
        assert await host.close() <= CLOSE_MILLISECONDS_MAX
        assert host.survivors() == []


async def test_an_orphan_that_a_hardened_host_started_itself_is_left_alone() -> None:
    async with a_host("kill", how="forks-hardened", lines=1) as host:
        forked, escaped = map(int, await host.lines(2))
        try:
            await host.go()
            await until_dead([escaped])
            await host.close()
            assert (is_alive(forked), host.children_left) == (True, 1)
        finally:
            os.kill(forked, signal.SIGKILL)
