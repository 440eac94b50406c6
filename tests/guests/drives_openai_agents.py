# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""An agent of the OpenAI Agents SDK as a guest: its own runner, and a model that asks for one call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.mcp import MCPServerStdio
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from orchestrator import AuthorityError
from orchestrator.surfaces.guests.openai_agents_server import SnapshotServer
from tests.guests.profile import GATEWAY, booked, environment
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]


class OneCall(Model):
    """Asks for one call, then says what it was told. Revokes before it does, if it is to."""

    def __init__(self, arguments: dict[str, int], revokes: Stage | None = None) -> None:
        self._arguments = arguments
        self._revokes = revokes
        self.shown: list[str] = []

    async def get_response(self, **asked: Any) -> ModelResponse:
        items = asked["input"]
        self.shown = [tool.name for tool in asked["tools"]]
        told = [
            item["output"]
            for item in (items if isinstance(items, list) else [])
            if item.get("type") == "function_call_output"
        ]
        if told:
            text = ResponseOutputText(type="output_text", annotations=[], text=str(told[0]))
            said = ResponseOutputMessage(
                id="m1", type="message", role="assistant", status="completed", content=[text]
            )
            return ModelResponse(output=[said], usage=Usage(), response_id=None)
        if self._revokes is not None:
            self._revokes.revoke()
        call = ResponseFunctionToolCall(
            type="function_call", call_id="c1", name=BOOK, arguments=json.dumps(self._arguments)
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError


async def asked(stage: Stage, model: OneCall) -> str:
    agent = Agent(name="a", model=model, mcp_servers=[SnapshotServer(stage.view)])
    result = await Runner.run(agent, "Book it.", run_config=RunConfig(tracing_disabled=True))
    return str(result.final_output)


async def test_the_allowed_call(stage: Stage):
    model = OneCall(ALLOWED)
    said = await asked(stage, model)

    assert (model.shown, len(stage.booked)) == ([BOOK], 1)
    assert WORTH in said


async def test_the_denied_call(stage: Stage):
    said = await asked(stage, OneCall(DENIED))

    assert stage.booked == []
    assert "reason: no_permit, delivery: not_sent" in said


async def test_the_revoked_call(stage: Stage):
    with pytest.raises(AuthorityError):  # the call is refused, then the tools cannot be listed
        await asked(stage, OneCall(ALLOWED, stage))

    assert (stage.booked, stage.kinds.count("refused")) == ([], 1)


async def test_the_gateway_is_an_mcp_server_like_any_other(gateway_home: Path):
    command = {
        "command": sys.executable,
        "args": [*GATEWAY, "scout"],
        "env": environment(gateway_home),
        "cwd": str(gateway_home),
    }
    said: list[str] = []
    async with MCPServerStdio(params=command, client_session_timeout_seconds=40) as server:
        for arguments in (ALLOWED, DENIED):
            model = OneCall(arguments)
            agent = Agent(name="a", model=model, mcp_servers=[server])
            config = RunConfig(tracing_disabled=True)
            result = await Runner.run(agent, "Book it.", run_config=config)
            said.append(str(result.final_output))

    assert WORTH in said[0]
    assert "reason: no_permit, delivery: not_sent" in said[1]
    assert booked(gateway_home) == 1
