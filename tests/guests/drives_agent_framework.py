# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""Agent Framework's tools as guests. A refusal is a text there: it keeps an exception's from the model."""

from __future__ import annotations

import pytest

from orchestrator import AuthorityError
from orchestrator.surfaces.guests.agent_framework_tools import agent_framework_tools
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]


async def called(stage: Stage, arguments: dict[str, int], *, revoked: bool = False) -> str:
    (tool,) = agent_framework_tools(stage.view)
    assert (tool.name, tool.parameters()["type"]) == (BOOK, "object")
    if revoked:
        stage.revoke()
    (content,) = await tool.invoke(arguments=arguments)
    return str(content.text)


async def test_the_allowed_call(stage: Stage):
    text = await called(stage, ALLOWED)

    assert WORTH in text
    assert len(stage.booked) == 1


async def test_the_denied_call(stage: Stage):
    text = await called(stage, DENIED)

    assert "reason: no_permit, delivery: not_sent" in text
    assert stage.booked == []


async def test_the_revoked_call(stage: Stage):
    text = await called(stage, ALLOWED, revoked=True)

    assert "agent_cancelled" in text
    assert stage.booked == []
    with pytest.raises(AuthorityError):
        agent_framework_tools(stage.view)
