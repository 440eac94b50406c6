"""Tasks end with their block, and what the block raises comes out as it is."""

from __future__ import annotations

import anyio
import pytest

from mcp_client.net.groups import tasks_of_block


async def test_a_task_ends_with_the_block() -> None:
    ended = anyio.Event()

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(30):
        async with tasks_of_block() as group:
            group.start_soon(work)
            await anyio.wait_all_tasks_blocked()

    assert ended.is_set()


async def test_what_the_block_raises_is_in_no_group() -> None:
    async def fail() -> None:
        async with tasks_of_block() as group:
            group.start_soon(anyio.sleep_forever)
            await anyio.wait_all_tasks_blocked()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await fail()


async def test_a_cancellation_from_outside_goes_on_outside() -> None:
    with anyio.CancelScope() as scope:
        async with tasks_of_block():
            scope.cancel()
            await anyio.sleep_forever()

    assert scope.cancelled_caught


async def test_a_block_that_its_own_tasks_cancel_ends_as_if_it_was_left() -> None:
    reached = False
    with anyio.fail_after(30):
        async with tasks_of_block() as group:
            group.cancel_scope.cancel()
            await anyio.sleep_forever()
        reached = True

    assert reached
