# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownParameterType=false
# The framework is there only in its own environment: `python tests/guests/run.py`.
"""The Claude Agent SDK's in-process server as a guest, before a client in memory, as the SDK has one."""

from __future__ import annotations

import pytest
from claude_agent_sdk import ClaudeAgentOptions
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from orchestrator.surfaces.guests.answering import CONTENT_KEY, ERROR_KEY
from orchestrator.surfaces.guests.claude_agent_server import claude_server
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage

pytestmark = [pytest.mark.guests, pytest.mark.subprocess]


def client_of(stage: Stage) -> Client:
    options = ClaudeAgentOptions(mcp_servers={"remit": claude_server(stage.view)})
    return Client(options.mcp_servers["remit"]["instance"])


async def test_the_allowed_call(stage: Stage):
    async with client_of(stage) as client:
        listed = await client.list_tools()
        result = await client.call_tool(BOOK, ALLOWED)

    assert [tool.name for tool in listed.tools] == [BOOK]
    assert (result.content[0].model_dump()["text"], len(stage.booked)) == (WORTH, 1)
    assert result.meta is not None
    assert result.meta[CONTENT_KEY]["authority"] == "none"


async def test_the_denied_call(stage: Stage):
    async with client_of(stage) as client:
        result = await client.call_tool(BOOK, DENIED)

    assert (result.is_error, stage.booked) == (True, [])
    assert result.meta is not None
    assert result.meta[ERROR_KEY]["reason"] == "no_permit"


async def test_the_revoked_call(stage: Stage):
    async with client_of(stage) as client:
        stage.revoke()
        with pytest.raises(MCPError) as refused:
            await client.call_tool(BOOK, ALLOWED)

    assert stage.booked == []
    assert refused.value.data[ERROR_KEY]["reason"] == "agent_cancelled"
