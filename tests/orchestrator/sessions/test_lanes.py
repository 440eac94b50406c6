"""Caps of a server: calls at a time, and calls a minute; who waits has been given nothing yet."""

from __future__ import annotations

import anyio
import pytest

from orchestrator.core.errors import ConfigError, DenyReason
from orchestrator.sessions.lanes import WAITING_MAX, ServerCap
from orchestrator.testing import elapse, run_seeded
from tests.orchestrator.broker.stage import Calling, refusal, staged, until, wish


async def test_one_call_more_than_a_server_takes_at_a_time_waits():
    async with staged(caps={"files": ServerCap(parallel=1)}) as stage:
        view = stage.agent().view
        first, second = Calling(view, wish("files/wait")), Calling(view, wish("files/ok"))
        async with anyio.create_task_group() as group:
            group.start_soon(first.run)
            await until(lambda: stage.files.held)
            group.start_soon(second.run)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            assert len(stage.audit.fields("decision")) == 1
            stage.files.held[0].answer({"content": []})
            assert (await second.answered()).text == "ok"


@pytest.mark.requirement("I1")
async def test_what_was_taken_back_while_a_call_waited_is_not_sent():
    async with staged(caps={"files": ServerCap(parallel=1)}) as stage:
        worker, other = stage.agent(), stage.agent("other")
        first, second = (
            Calling(other.view, wish("files/wait")),
            Calling(worker.view, wish("files/ok")),
        )
        async with anyio.create_task_group() as group:
            group.start_soon(first.run)
            await until(lambda: stage.files.held)
            group.start_soon(second.run)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
            stage.session.cancel_agent("worker")
            stage.files.held[0].answer({"content": []})

            assert (await second.refused()).reason is DenyReason.AGENT_CANCELLED


async def test_one_call_more_than_may_wait_is_refused():
    async with staged(caps={"files": ServerCap(parallel=1)}) as stage:
        view = stage.agent().view
        async with anyio.create_task_group() as group:
            group.start_soon(Calling(view, wish("files/wait")).run)
            await until(lambda: stage.files.held)
            for _ in range(WAITING_MAX):
                group.start_soon(Calling(view, wish("files/ok")).run)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            assert (await refusal(view, "files/ok")).reason is DenyReason.BUDGET_SPENT
            group.cancel_scope.cancel()


@pytest.mark.sim
def test_calls_of_a_minute_are_spread_over_it():
    async def main() -> float:
        async with staged(caps={"files": ServerCap(per_minute=30)}) as stage:
            view = stage.agent().view
            began = anyio.current_time()
            for _ in range(3):
                await view.call(wish("files/ok"))
            took = anyio.current_time() - began
            await elapse(0)
            return took

    assert run_seeded(1, main) == pytest.approx(4.0)


@pytest.mark.parametrize("cap", [{"parallel": 0}, {"per_minute": -1}])
def test_a_cap_below_one_is_none(cap: dict[str, int]):
    with pytest.raises(ConfigError):
        ServerCap(**cap)
