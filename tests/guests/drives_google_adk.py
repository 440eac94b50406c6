# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""An agent of Google's ADK as a guest: its own runner, and a model that asks for one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from orchestrator import AuthorityError
from orchestrator.surfaces.guests.google_adk_toolset import SnapshotToolset
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

# the framework warns of its own experimental parts
pytestmark = [
    pytest.mark.guests,
    pytest.mark.subprocess,
    pytest.mark.filterwarnings("default"),
]


class OneCall(BaseLlm):
    """Asks for one call, then ends. Revokes before it does, if it is to."""

    model: str = "one-call"
    arguments: dict[str, int]
    revokes: Any = None
    shown: list[str] = []  # noqa: RUF012
    told: list[Any] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        self.shown[:] = list(llm_request.tools_dict)
        parts = [part for content in llm_request.contents for part in content.parts or []]
        self.told[:] = [part.function_response.response for part in parts if part.function_response]
        if self.told:
            part = types.Part(text="done")
        else:
            if self.revokes is not None:
                self.revokes.revoke()
            part = types.Part(function_call=types.FunctionCall(name=BOOK, args=self.arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def asked(stage: Stage, model: OneCall) -> dict[str, str]:
    agent = LlmAgent(name="a", model=model, tools=[SnapshotToolset(stage.view)])
    runner = InMemoryRunner(agent=agent, app_name="guests")
    session = await runner.session_service.create_session(app_name="guests", user_id="u")
    asking = types.Content(role="user", parts=[types.Part(text="Book it.")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=asking):
        pass
    return model.told[0]


async def test_the_allowed_call(stage: Stage):
    model = OneCall(arguments=ALLOWED, shown=[], told=[])
    told = await asked(stage, model)

    assert (model.shown, len(stage.booked)) == ([BOOK], 1)
    assert WORTH in told["result"]


async def test_the_denied_call(stage: Stage):
    told = await asked(stage, OneCall(arguments=DENIED, shown=[], told=[]))

    assert stage.booked == []
    assert "reason: no_permit, delivery: not_sent" in told["error"]


async def test_the_revoked_call(stage: Stage):
    told = await asked(stage, OneCall(arguments=ALLOWED, revokes=stage, shown=[], told=[]))

    assert stage.booked == []
    assert "agent_cancelled" in told["error"]
    with pytest.raises(AuthorityError):
        await SnapshotToolset(stage.view).get_tools()
