"""pydantic-ai as a guest: what its agent calls is decided, and what was refused reaches its model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from orchestrator import AuthorityError, DenyReason
from orchestrator.surfaces.guests.pydantic_ai_toolset import SnapshotToolset
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage, open_stage

pytestmark = pytest.mark.subprocess


@pytest.fixture
def anyio_backend() -> str:
    """The framework runs on asyncio."""
    return "asyncio"


class Caller:
    """A model that calls the tool once, and answers with what it was told."""

    def __init__(self, arguments: Mapping[str, object], before: Stage | None = None) -> None:
        self._arguments = dict(arguments)
        self._before = before
        self.shown: list[str] = []
        self.returned: list[ToolReturnPart] = []

    async def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.shown = [tool.name for tool in info.function_tools]
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        self.returned = [part for part in last.parts if isinstance(part, ToolReturnPart)]
        if self.returned:
            return ModelResponse(parts=[TextPart("done")])
        if self._before is not None:  # it thought for a while, and meanwhile:
            self._before.revoke()
        return ModelResponse(parts=[ToolCallPart(BOOK, self._arguments, "c1")])


async def asked(stage: Stage, model: Caller) -> str:
    agent = Agent(FunctionModel(model.respond), toolsets=[SnapshotToolset(stage.view)])
    return (await agent.run("Book it.")).output


async def test_an_allowed_call_reaches_the_server_and_its_result_is_marked(tmp_path: Path):
    model = Caller(ALLOWED)
    async with open_stage(tmp_path) as stage:
        answer = await asked(stage, model)

        assert (answer, model.shown, len(stage.booked)) == ("done", [BOOK], 1)
    (part,) = model.returned
    assert part.outcome == "success"
    assert str(part.content).startswith("<untrusted boundary=")
    assert WORTH in str(part.content)


async def test_a_denied_call_reaches_nothing_and_the_model_reads_why(tmp_path: Path):
    model = Caller(DENIED)
    async with open_stage(tmp_path) as stage:
        await asked(stage, model)

        assert stage.booked == []
    (part,) = model.returned
    assert part.outcome == "failed"
    assert "reason: no_permit, delivery: not_sent" in str(part.content)


async def test_a_call_of_a_snapshot_that_was_revoked_meanwhile_reaches_nothing(tmp_path: Path):
    async with open_stage(tmp_path) as stage:
        with pytest.raises(AuthorityError) as ended:
            await asked(stage, Caller(ALLOWED, stage))

        # the call was refused, and then the tools could not even be listed for the next request
        assert ended.value.reason is DenyReason.AGENT_CANCELLED
        assert (stage.booked, stage.kinds.count("refused")) == ([], 1)


async def test_a_revoked_snapshot_shows_a_model_nothing(tmp_path: Path):
    model = Caller(ALLOWED)
    async with open_stage(tmp_path) as stage:
        stage.revoke()
        with pytest.raises(AuthorityError):
            await asked(stage, model)

    assert model.shown == []
