"""Groups of exceptions at the border: one cause is raised as itself, cancelled meanwhile or not."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from orchestrator.core.groups import ungrouped


class OursError(Exception):
    """What a block fails with."""


async def fails() -> None:
    raise OursError


async def test_one_cause_is_raised_as_itself() -> None:
    with pytest.raises(OursError), ungrouped():
        async with anyio.create_task_group() as group:
            group.start_soon(fails)


async def test_what_fails_while_it_is_cancelled_is_raised_as_itself() -> None:
    async def fail_at_the_end() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OursError

    async def block() -> None:
        with anyio.CancelScope() as scope, ungrouped():
            async with anyio.create_task_group() as group:
                group.start_soon(fail_at_the_end)
                group.start_soon(anyio.sleep_forever)
                await anyio.lowlevel.checkpoint()
                scope.cancel()

    with pytest.raises(OursError):
        await block()


async def test_several_causes_stay_a_group() -> None:
    async def block() -> None:
        with ungrouped():
            async with anyio.create_task_group() as group:
                group.start_soon(fails)
                group.start_soon(fails)

    with pytest.raises(ExceptionGroup) as caught:
        await block()

    assert len(caught.value.exceptions) == 2


async def test_a_cancellation_alone_reaches_its_scope() -> None:
    with anyio.CancelScope() as scope, ungrouped():
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.sleep_forever)
            scope.cancel()

    assert scope.cancelled_caught
