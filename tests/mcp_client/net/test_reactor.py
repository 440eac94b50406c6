"""The reactor behaves alike on asyncio and on trio."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Iterator
from typing import Never

import anyio
import pytest

from mcp_client.net.reactor import Reactor, Waiter, open_reactor


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe2(os.O_NONBLOCK)
    yield reader, writer
    os.close(reader)
    os.close(writer)


async def turns(reactor: Reactor, count: int) -> None:
    """Let the loop go round a few times."""
    for _ in range(count):
        turned: Waiter[None] = reactor.waiter()
        reactor.soon(turned.set_result, None)
        await turned
        await anyio.lowlevel.checkpoint()


async def test_what_is_asked_for_soon_runs_in_order_and_not_at_once() -> None:
    async with open_reactor() as reactor:
        ran: list[int] = []
        done: Waiter[str] = reactor.waiter()
        reactor.soon(ran.append, 1)
        reactor.soon(ran.append, 2)
        reactor.soon(done.set_result, "end")
        assert ran == []
        with anyio.fail_after(30):
            assert await done == "end"
        assert ran == [1, 2]


async def test_what_is_asked_for_within_a_step_runs_in_a_later_one() -> None:
    async with open_reactor() as reactor:
        ran: list[str] = []
        done: Waiter[None] = reactor.waiter()

        def first() -> None:
            reactor.soon(second)
            ran.append("first")

        def second() -> None:
            ran.append("second")
            done.set_result(None)

        reactor.soon(first)
        with anyio.fail_after(30):
            await done
        assert ran == ["first", "second"]


async def test_timers_run_in_the_order_of_their_times() -> None:
    async with open_reactor() as reactor:
        ran: list[str] = []
        done: Waiter[None] = reactor.waiter()
        now = reactor.now()
        reactor.at(now + 0.02, lambda: done.set_result(None))
        reactor.at(now + 0.01, lambda: ran.append("second"))
        reactor.at(now - 1, lambda: ran.append("first"))
        with anyio.fail_after(30):
            await done
        assert ran == ["first", "second"]
        assert reactor.now() >= now + 0.02


async def test_a_cancelled_timer_never_runs() -> None:
    async with open_reactor() as reactor:
        ran: list[str] = []
        done: Waiter[None] = reactor.waiter()
        timer = reactor.at(reactor.now() + 0.01, lambda: ran.append("cancelled"))
        reactor.at(reactor.now() + 0.02, lambda: done.set_result(None))
        timer.cancel()
        with anyio.fail_after(30):
            await done
        timer.cancel()
        assert ran == []


async def test_a_waiter_that_was_settled_before_returns_at_once() -> None:
    async with open_reactor() as reactor:
        waiter: Waiter[int] = reactor.waiter()
        assert not waiter.done()
        waiter.set_result(3)
        assert waiter.done()
        assert await waiter == 3


async def test_a_waiter_raises_the_error_that_it_was_settled_with() -> None:
    async with open_reactor() as reactor:
        waiter: Waiter[None] = reactor.waiter()
        reactor.soon(waiter.set_exception, KeyError("gone"))
        with anyio.fail_after(30), pytest.raises(KeyError, match="gone"):
            await waiter


@pytest.mark.requirement("I26")
async def test_a_waiter_whose_task_was_cancelled_is_done() -> None:
    async with open_reactor() as reactor:
        waiter: Waiter[int] = reactor.waiter()
        with anyio.CancelScope() as scope:
            reactor.soon(scope.cancel)
            await waiter
        assert scope.cancelled_caught
        assert waiter.done()


async def test_functions_still_run_while_the_block_is_being_cancelled() -> None:
    ran: list[str] = []
    with anyio.CancelScope() as scope:
        async with open_reactor() as reactor:
            scope.cancel()
            with anyio.CancelScope(shield=True), anyio.fail_after(30):
                done: Waiter[None] = reactor.waiter()
                reactor.soon(done.set_result, None)
                await done
                ran.append("closed")
    assert ran == ["closed"]


async def test_an_error_of_the_block_comes_out_as_it_is() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_reactor():
            raise KeyError("mine")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_function_that_raises_is_logged_and_stops_no_other(
    caplog: pytest.LogCaptureFixture, backend: str
) -> None:
    def fail() -> Never:
        raise ValueError("broken")

    async def use() -> None:
        async with open_reactor() as reactor:
            done: Waiter[None] = reactor.waiter()
            reactor.soon(fail)
            reactor.soon(done.set_result, None)
            with anyio.fail_after(30):
                await done

    with caplog.at_level(logging.ERROR):
        anyio.run(use, backend=backend)
    assert "ValueError: broken" in caplog.text


async def test_a_readable_descriptor_is_told_until_it_is_unwatched(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    async with open_reactor() as reactor:
        got: list[bytes] = []
        done: Waiter[None] = reactor.waiter()

        def readable() -> None:
            got.append(os.read(reader, 1))
            if len(got) == 3:
                reactor.unwatch_read(reader)
                done.set_result(None)

        os.write(writer, b"abcdef")
        reactor.watch_read(reader, readable)
        with anyio.fail_after(30):
            await done
        await turns(reactor, 3)
        assert got == [b"a", b"b", b"c"]


async def test_a_full_pipe_is_told_when_there_is_room(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    async with open_reactor() as reactor:
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x" * 65536)
        told: list[str] = []
        room: Waiter[None] = reactor.waiter()

        def writable() -> None:
            told.append("room")
            reactor.unwatch_write(writer)
            room.set_result(None)

        reactor.watch_write(writer, writable)
        await turns(reactor, 3)
        assert told == []
        os.read(reader, 1 << 20)
        with anyio.fail_after(30):
            await room
        assert told == ["room"]


async def test_a_descriptor_can_be_watched_again_in_the_step_of_its_unwatching(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    async with open_reactor() as reactor:
        told: list[str] = []
        done: Waiter[None] = reactor.waiter()

        def second() -> None:
            told.append("second")
            reactor.unwatch_read(reader)
            done.set_result(None)

        reactor.watch_read(reader, lambda: told.append("first"))
        reactor.unwatch_read(reader)
        reactor.watch_read(reader, second)
        os.write(writer, b"x")
        with anyio.fail_after(30):
            await done
        assert told == ["second"]


async def test_both_directions_of_one_descriptor_are_watched_apart() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        async with open_reactor() as reactor:
            readable: Waiter[None] = reactor.waiter()
            writable: Waiter[None] = reactor.waiter()

            def on_readable() -> None:
                reactor.unwatch_read(ours.fileno())
                readable.set_result(None)

            def on_writable() -> None:
                reactor.unwatch_write(ours.fileno())
                writable.set_result(None)

            reactor.watch_read(ours.fileno(), on_readable)
            reactor.watch_write(ours.fileno(), on_writable)
            with anyio.fail_after(30):
                await writable
                assert not readable.done()
                theirs.send(b"x")
                await readable


async def test_a_closing_descriptor_is_told_nothing_more_and_its_number_can_be_used_again() -> None:
    async with open_reactor() as reactor:
        told: list[str] = []
        reader, writer = os.pipe2(os.O_NONBLOCK)
        reactor.watch_read(reader, lambda: told.append("old"))
        await turns(reactor, 2)
        reactor.closing(reader)
        os.close(reader)
        os.close(writer)
        again, writer = os.pipe2(os.O_NONBLOCK)
        assert again == reader
        done: Waiter[None] = reactor.waiter()

        def new() -> None:
            told.append("new")
            reactor.closing(again)
            done.set_result(None)

        reactor.watch_read(again, new)
        os.write(writer, b"x")
        with anyio.fail_after(30):
            await done
        os.close(again)
        os.close(writer)
        assert told == ["new"]


async def test_unwatching_what_is_not_watched_is_harmless(pipe: tuple[int, int]) -> None:
    async with open_reactor() as reactor:
        reactor.unwatch_read(pipe[0])
        reactor.unwatch_write(pipe[1])


class LoopWithoutDescriptors(asyncio.SelectorEventLoop):
    """As a simulation has it."""

    def add_reader(self, fd: object, callback: object, *args: object) -> Never:
        raise NotImplementedError

    def add_writer(self, fd: object, callback: object, *args: object) -> Never:
        raise NotImplementedError


def test_a_loop_without_descriptors_has_all_the_rest() -> None:
    async def use() -> int:
        async with open_reactor() as reactor:
            with pytest.raises(NotImplementedError):
                reactor.watch_read(0, lambda: None)
            waiter: Waiter[int] = reactor.waiter()
            reactor.at(reactor.now(), lambda: waiter.set_result(1))
            return await waiter

    with asyncio.Runner(loop_factory=LoopWithoutDescriptors) as runner:
        assert runner.run(use()) == 1
