"""How far a call has come: asked for by who listens, told in numbers alone, and not for ever."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mcp_client.testing import ScriptedServer
from orchestrator.agents.calling import PROGRESS_SECONDS
from orchestrator.agents.events import CallProgressed
from orchestrator.core.errors import DenyReason
from tests.orchestrator.broker.stage import Stage, calling, recipe, staged, wish


class Heard:
    """Who listens to the progress of one call."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None]] = []

    def __call__(self, done: float, total: float | None) -> None:
        self.told.append((done, total))


WAITS = "from orchestrator import Call\ndef main(task):\n    yield Call('files', 'wait')\n"


def asked_for(server: ScriptedServer) -> list[object]:
    """The tokens under which progress was asked for, one for each call."""
    calls = [json.loads(item.frame) for item in server.frames if b'"tools/call"' in item.frame]
    return [call["params"].get("_meta", {}).get("progressToken") for call in calls]


async def held(stage: Stage) -> None:
    await stage.files.until(lambda: stage.files.held)


@pytest.mark.requirement("S-5")
async def test_who_listens_is_told_how_far_a_call_has_come() -> None:
    heard = Heard()
    async with staged() as stage, calling(stage.agent().view, "files/wait") as call:
        call.call = replace(call.call, progress=heard)
        await held(stage)
        request = stage.files.held[0]
        request.progress(1, 4)
        request.progress(2.5, message="words of the server")
        request.progress(2.5)  # no step ahead
        request.answer("done")
        await call.answered()
        request.progress(3)
        await stage.settled()

    assert heard.told == [(1, 4), (2.5, None)]


async def test_where_nobody_listens_no_progress_is_asked_for() -> None:
    async with staged() as stage:
        await stage.agent().view.call(wish("files/ok"))
        told = replace(wish("files/ok"), progress=Heard())
        await stage.agent("other").view.call(told)

        first, second = asked_for(stage.files)
        assert first is None
        assert isinstance(second, int)


async def test_nothing_is_told_of_a_call_whose_authority_has_gone() -> None:
    heard = Heard()
    async with staged() as stage, calling(stage.agent().view, "files/wait") as call:
        call.call = replace(call.call, progress=heard)
        await held(stage)
        stage.session.cancel_agent("worker")
        stage.files.held[0].progress(1)
        refused = await call.refused()

    assert refused.reason is DenyReason.AGENT_CANCELLED
    assert heard.told == []


async def test_an_agents_listener_is_told_only_so_often() -> None:
    async with staged() as stage:
        agent = stage.agent(model=recipe(WAITS))
        task = await agent.start("wait")
        await held(stage)
        request = stage.files.held[0]
        for done in range(1, 100):
            request.progress(done, 100)
        stage.clock.time += PROGRESS_SECONDS
        request.progress(100, 100)
        request.answer("done")
        await task.result()

    told = [event for event in stage.events if isinstance(event, CallProgressed)]
    assert [(each.done, each.total, each.number) for each in told] == [(1, 100, 1), (100, 100, 1)]
