"""google-adk: a scripted `BaseLlm`, `tool_filter`, `agent.tools`, `AgentTool`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import Hands, Script, Stage, main
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.mcp_tool import (
    McpToolset,
    StdioConnectionParams,
    StreamableHTTPConnectionParams,
)
from google.genai import types
from mcp import StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client
from sdk_login import login_to

from benchmarks.scripted.google_adk import Scripted

VERSION_OF = ("google-adk", "mcp")


def toolset_of(stage: Stage, allowed: set[str]) -> McpToolset:
    command, *args = stage.command
    return McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(command=command, args=args)
        ),
        tool_filter=lambda tool, _context=None: tool.name in allowed,
    )


async def run(agent: LlmAgent) -> None:
    runner = InMemoryRunner(agent=agent, app_name="a")
    session = await runner.session_service.create_session(app_name="a", user_id="u")
    words = types.Content(role="user", parts=[types.Part(text="go")])
    async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=words):
        pass


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    allowed = {"act", "slow"}
    toolset = toolset_of(stage, allowed)
    agent = LlmAgent(name="a", model=Scripted(model="s", script=script), tools=[toolset])
    hands.withdraw = allowed.clear
    hands.remove = lambda: agent.tools.remove(toolset)
    await run(agent)
    await toolset.close()


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)

    def client(headers=None, timeout=None, auth=None):
        return create_mcp_http_client(headers=headers, timeout=timeout, auth=login)

    toolset = McpToolset(
        connection_params=StreamableHTTPConnectionParams(url=url, httpx_client_factory=client)
    )
    hands.log_out = kept.forget
    await run(LlmAgent(name="a", model=Scripted(model="s", script=script), tools=[toolset]))
    await toolset.close()


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    toolset = toolset_of(stage, {"act", "slow"})
    inner = LlmAgent(name="child", model=Scripted(model="s", script=child), tools=[toolset])
    outer = LlmAgent(
        name="p", model=Scripted(model="s", script=parent), tools=[AgentTool(agent=inner)]
    )
    await run(outer)


if __name__ == "__main__":
    main(sys.modules[__name__])
