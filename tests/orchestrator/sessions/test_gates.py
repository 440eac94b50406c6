"""A step's gate among the asks of a session: a yes, a no, and nobody who said anything are three answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import pytest

from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.asks import Ask, AskDesk, AskKind
from orchestrator.sessions.ports import NobodyToAsk

STEP = AgentId("publisher")
DIGEST = "d" * 64


async def answered(desk: AskDesk, act: Callable[[Ask], Awaitable[None]]) -> bool | None:
    """Return what a step is told while somebody looks and does this with its ask."""
    told: list[bool | None] = []

    async def step() -> None:
        told.append(await desk.gate(STEP, "Publish it?", DIGEST))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(step)
            while not desk.open:
                await anyio.lowlevel.checkpoint()
            (ask,) = desk.open
            assert (ask.kind, ask.agent, ask.digest) == (AskKind.GATE, STEP, DIGEST)
            assert ask.question == "Publish it?"
            await act(ask)
    assert desk.open == ()
    return told[0]


@pytest.fixture
def desk() -> AskDesk:
    made = AskDesk(NobodyToAsk(), OrchestratorLimits())
    made.attend_all()
    return made


async def test_a_yes_is_for_this_gate_and_for_once(desk: AskDesk):
    async def act(ask: Ask) -> None:
        with pytest.raises(ConfigError, match="passed once"):
            await ask.allow_for_session()
        with pytest.raises(ConfigError):
            await ask.allow_always("permit")
        with pytest.raises(ConfigError):
            await ask.answer("yes")
        assert ask.open
        await ask.allow_once()
        with pytest.raises(ConfigError):
            await ask.allow_once()

    assert await answered(desk, act) is True


async def test_a_no_is_a_no(desk: AskDesk):
    assert await answered(desk, Ask.deny) is False


async def test_who_stops_looking_has_said_nothing(desk: AskDesk):
    async def leave(_: Ask) -> None:
        desk.leave_all()

    assert await answered(desk, leave) is None


async def test_where_nobody_looks_nobody_is_asked(desk: AskDesk):
    desk.leave_all()

    assert not desk.attends(STEP)
    assert await desk.gate(STEP, "Publish it?", DIGEST) is None
