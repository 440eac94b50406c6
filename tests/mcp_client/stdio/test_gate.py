"""Invariants I1, I2 and I3 on real pipes: authority is taken back before every step there is."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client.net.reactor import Reactor
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio.transport import PIPE_BYTES
from tests.mcp_client.stdio.harness import (
    BARE,
    Connection,
    Guard,
    SteppedReactor,
    Ticket,
    opened,
)

pytestmark = pytest.mark.subprocess

COUNTING = Path(__file__).parents[2] / "servers" / "counting.py"
SIZES = {"10 B": 10, "60 KB": 60_000, "7 MiB": 7 * 1024 * 1024}
STEPS = 16
"""Steps before which authority is taken back: the frame is begun or refused well before the last."""


class Bench:
    """A connection to a server that reads only when it is told to."""

    def __init__(self, connection: Connection, reactor: SteppedReactor, commands: int) -> None:
        self.connection = connection
        self.reactor = reactor
        self._commands = commands
        self._read = 0

    async def line(self) -> tuple[int, bytes]:
        """Have the server read one line; return its length and its beginning."""
        os.write(self._commands, b"r")
        report = await self.connection.sink.frame(self._read)
        self._read += 1
        length, _, beginning = report.partition(b" ")
        return int(length), beginning

    async def fill(self, filling: str) -> int:
        """Bring the pipe into a state; return the number of lines that are on their way."""
        match filling:
            case "empty":
                return 0
            case "full":
                size = PIPE_BYTES - 1  # and the newline: no room for a byte of the next frame
            case _:
                size = PIPE_BYTES + PIPE_BYTES // 2  # half of a frame waits in front of the next
        ticket = self.connection.send(b"f" * size)
        with anyio.fail_after(30):
            while not ticket.bytes_sent:
                await anyio.lowlevel.checkpoint()
        return 1


@asynccontextmanager
async def a_bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    fifo = tmp_path / "commands"
    os.mkfifo(fifo)
    reactors: list[SteppedReactor] = []

    def wrap(reactor: Reactor) -> Reactor:
        reactors.append(SteppedReactor(reactor))
        return reactors[0]

    command = (*BARE[:-1], str(COUNTING), str(fifo))
    async with opened(*command, wrap=wrap) as connection:
        commands = os.open(fifo, os.O_RDWR)
        try:
            yield Bench(connection, reactors[0], commands)
        finally:
            os.close(commands)


async def revoke_before_step(
    bench: Bench, filling: str, size: int, revoke_at: int
) -> tuple[bool, list[tuple[int, bytes]], Ticket]:
    """Send a frame and take its leave back before one step; return what came of it."""
    lines = await bench.fill(filling)
    guard = Guard()
    begun_by_then: list[bool] = []
    steps = 0

    def before_step() -> None:
        nonlocal steps
        if steps == revoke_at:
            begun_by_then.append(ticket.bytes_sent > 0)
            guard.revoked = True
        steps += 1

    ticket = bench.connection.send(b"t" * size, guard)
    bench.reactor.before_step = before_step
    bench.connection.send(b"last")
    received = [await bench.line() for _ in range(lines + 1)]
    if received[-1] != (4, b"last"):
        received.append(await bench.line())
    bench.reactor.before_step = lambda: None
    begun = begun_by_then[0] if begun_by_then else ticket.bytes_sent > 0
    return begun, [line for line in received if line[1] == b"tttt"], ticket


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I3")
@pytest.mark.parametrize("filling", ["empty", "full", "half a frame waiting"])
@pytest.mark.parametrize("size", list(SIZES.values()), ids=list(SIZES))
async def test_no_frame_begins_after_its_leave_was_taken_back_before_any_step(
    tmp_path: Path, filling: str, size: int
) -> None:
    limits = ClientLimits()
    assert size < limits.frame_bytes_max
    outcomes: list[bool] = []
    async with a_bench(tmp_path) as bench:
        for revoke_at in range(STEPS):
            begun, arrived, ticket = await revoke_before_step(bench, filling, size, revoke_at)
            assert arrived == ([(size, b"tttt")] if begun else []), f"step {revoke_at}"
            assert ticket.end == ("written" if begun else "refused"), f"step {revoke_at}"
            outcomes.append(begun)
    # the injection covers both sides of the first byte
    assert set(outcomes) == {False, True}


@pytest.mark.requirement("I1")
async def test_no_frame_begins_after_its_leave_was_taken_back_at_any_tick(tmp_path: Path) -> None:
    outcomes: list[bool] = []
    async with a_bench(tmp_path) as bench:
        for tick in range(STEPS):
            guard = Guard()
            begun: list[bool] = []
            ticket = bench.connection.send(b"t" * 10, guard)

            def revoke(
                left: int, guard: Guard = guard, ticket: Ticket = ticket, begun: list[bool] = begun
            ) -> None:
                if left:
                    bench.connection.reactor.soon(revoke, left - 1)
                else:
                    begun.append(ticket.bytes_sent > 0)
                    guard.revoked = True

            revoke(tick)
            bench.connection.send(b"last")
            line = await bench.line()
            assert line == ((10, b"tttt") if begun[:1] != [False] else (4, b"last")), f"tick {tick}"
            if line[1] == b"tttt":
                await bench.line()
            outcomes.append(ticket.bytes_sent > 0)
    assert set(outcomes) == {False, True}


@pytest.mark.requirement("I1")
async def test_a_frame_that_found_the_pipe_full_is_checked_again_when_there_is_room(
    tmp_path: Path,
) -> None:
    async with a_bench(tmp_path) as bench:
        await bench.fill("full")
        guard = Guard()
        ticket = bench.connection.send(b"t" * 10, guard)
        bench.connection.send(b"last")
        for _ in range(10):  # it has been tried by now, and there was no room
            await anyio.lowlevel.checkpoint()
        guard.revoked = True
        lines = [await bench.line(), await bench.line()]
        assert (lines[1], ticket.end) == ((4, b"last"), "refused")


@pytest.mark.requirement("I2")
async def test_once_a_begun_frame_is_written_no_byte_of_its_kind_follows(tmp_path: Path) -> None:
    async with a_bench(tmp_path) as bench:
        guard = Guard()
        begun = bench.connection.send(b"t" * SIZES["7 MiB"], guard)
        waiting = bench.connection.send(b"t" * 10, guard)
        with anyio.fail_after(30):
            while not begun.bytes_sent:
                await anyio.lowlevel.checkpoint()
        guard.revoked = True
        first = await bench.line()
        with anyio.fail_after(30):
            await begun.ended.wait()
            await waiting.ended.wait()
        bench.connection.send(b"last")
        assert (first[0], await bench.line()) == (SIZES["7 MiB"], (4, b"last"))


@pytest.mark.requirement("I2")
@pytest.mark.requirement("I3")
async def test_after_a_close_within_a_frame_the_peer_sees_the_end_and_no_further_byte(
    tmp_path: Path,
) -> None:
    report = tmp_path / "report"
    counting = (
        "import os, sys; os.read(os.open(sys.argv[1], os.O_RDONLY), 1); count = 0\n"
        "while data := os.read(0, 1 << 16): count += len(data)\n"
        "open(sys.argv[2], 'w').write(str(count))"
    )
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    go = os.open(fifo, os.O_RDWR)
    limits = ClientLimits(close_seconds_max=2.0)
    async with opened(*BARE, counting, str(fifo), str(report), limits=limits) as connection:
        ticket = connection.send(b"t" * SIZES["7 MiB"])
        with anyio.fail_after(30):
            while not ticket.bytes_sent:
                await anyio.lowlevel.checkpoint()
            async with anyio.create_task_group() as closing:
                closing.start_soon(connection.transport.close)
                await ticket.ended.wait()
                os.write(go, b"g")
    os.close(go)
    taken = ticket.bytes_sent
    assert (ticket.end, int(report.read_text())) == ("lost", taken)
