"""Frames that had begun when their call ended: every receipt waits for them, whatever ended it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client.testing import ScriptedServer
from orchestrator.core.limits import OrchestratorLimits
from tests.orchestrator.broker.stage import Stage, calling, staged, until

BIG = {"path": "x" * 200}


def sent_bytes(server: ScriptedServer) -> int:
    return sum(len(write.data) for write in server.wire.writes)


@asynccontextmanager
async def half_written_and_given_up(drain_seconds: float) -> AsyncGenerator[tuple[Stage, int]]:
    """A frame of which 40 bytes have left, and whose caller is gone."""
    async with staged(limits=OrchestratorLimits(drain_seconds_max=drain_seconds)) as stage:
        before = sent_bytes(stage.files)
        stage.files.wire.block(after_bytes=40)
        with anyio.CancelScope() as caller:
            async with anyio.create_task_group() as group:
                group.start_soon(_call, stage)
                await until(lambda: sent_bytes(stage.files) >= before + 40)
                caller.cancel()
        yield stage, before + 40


async def _call(stage: Stage) -> None:
    async with calling(stage.agent().view, "files/read", BIG):
        await anyio.sleep_forever()


@pytest.mark.requirement("I2")
async def test_a_receipt_waits_for_a_frame_whose_caller_is_gone() -> None:
    async with half_written_and_given_up(drain_seconds=5.0) as (stage, _):
        stage.files.wire.unblock()

        receipt = await stage.session.cancel_agent("worker")

        left = sent_bytes(stage.files)
        assert (receipt.stopped, receipt.drained, receipt.aborted) == (0, 1, 0)
        await stage.settled()
        assert stage.files.frames[-2].frame.endswith(b"}")
        assert left > 40


@pytest.mark.requirement("I2")
async def test_no_byte_follows_the_receipt_of_a_frame_that_could_not_be_finished() -> None:
    async with half_written_and_given_up(drain_seconds=0.01) as (stage, left):
        receipt = await stage.session.cancel_agent("worker")

        stage.files.wire.unblock()
        await anyio.wait_all_tasks_blocked()
        assert (receipt.drained, receipt.aborted) == (0, 1)
        assert sent_bytes(stage.files) == left


@pytest.mark.requirement("I2")
async def test_a_second_receipt_waits_for_what_the_first_act_found_half_written() -> None:
    async with half_written_and_given_up(drain_seconds=0.01) as (stage, _):
        stage.session.cancel_agent("worker")

        receipt = await stage.session.close()

        assert receipt.aborted == 1


async def test_a_frame_that_was_finished_is_in_no_later_receipt() -> None:
    async with half_written_and_given_up(drain_seconds=5.0) as (stage, _):
        stage.files.wire.unblock()
        await stage.settled()

        receipt = await stage.session.cancel_agent("worker")

        assert (receipt.drained, receipt.aborted) == (0, 0)
