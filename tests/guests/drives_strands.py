# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""Strands' tools as guests; what they yield last is the result that its agents read."""

from __future__ import annotations

from typing import Any

import pytest
from strands.tools.registry import ToolRegistry

from orchestrator import AuthorityError
from orchestrator.surfaces.guests.strands_tools import strands_tools
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]


async def called(
    stage: Stage, arguments: dict[str, int], *, revoked: bool = False
) -> dict[str, Any]:
    registry = ToolRegistry()
    assert registry.process_tools(list(strands_tools(stage.view))) == [BOOK]
    tool = registry.registry[BOOK]
    if revoked:
        stage.revoke()
    use = {"toolUseId": "c1", "name": BOOK, "input": arguments}
    return [event async for event in tool.stream(use, {})][-1]


async def test_the_allowed_call(stage: Stage):
    result = await called(stage, ALLOWED)

    assert (result["status"], result["toolUseId"], len(stage.booked)) == ("success", "c1", 1)
    assert WORTH in result["content"][0]["text"]


async def test_the_denied_call(stage: Stage):
    result = await called(stage, DENIED)

    assert (result["status"], stage.booked) == ("error", [])
    assert "reason: no_permit, delivery: not_sent" in result["content"][0]["text"]


async def test_the_revoked_call(stage: Stage):
    result = await called(stage, ALLOWED, revoked=True)

    assert (result["status"], stage.booked) == ("error", [])
    assert "agent_cancelled" in result["content"][0]["text"]
    with pytest.raises(AuthorityError):
        strands_tools(stage.view)
