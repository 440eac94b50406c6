# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""LangChain's tools as guests; what they return are the messages that its agents read."""

from __future__ import annotations

import pytest
from langchain_core.messages import ToolMessage

from orchestrator import AuthorityError
from orchestrator.surfaces.guests.langchain_tools import langchain_tools
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]


async def called(stage: Stage, arguments: dict[str, int], *, revoked: bool = False) -> ToolMessage:
    (tool,) = langchain_tools(stage.view)
    assert tool.tool_call_schema["properties"].keys() == {"step", "turn"}
    if revoked:
        stage.revoke()
    return await tool.ainvoke({"type": "tool_call", "name": BOOK, "id": "c1", "args": arguments})


async def test_the_allowed_call(stage: Stage):
    message = await called(stage, ALLOWED)

    assert (message.status, len(stage.booked)) == ("success", 1)
    assert message.content.startswith("<untrusted boundary=")
    assert WORTH in message.content


async def test_the_denied_call(stage: Stage):
    message = await called(stage, DENIED)

    assert (message.status, stage.booked) == ("error", [])
    assert "reason: no_permit, delivery: not_sent" in message.content


async def test_the_revoked_call(stage: Stage):
    message = await called(stage, ALLOWED, revoked=True)

    assert (message.status, stage.booked) == ("error", [])
    assert "agent_cancelled" in message.content
    with pytest.raises(AuthorityError):
        langchain_tools(stage.view)
