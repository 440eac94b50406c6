"""pydantic-ai: `FunctionModel`, `toolset.filtered`, a dynamic toolset, a tool that runs another agent."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import Hands, Script, Stage, main
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from sdk_login import login_to

from benchmarks.scripted.pydantic_ai_ import model_of

VERSION_OF = ("pydantic-ai-slim", "fastmcp-slim", "mcp")


def toolset_of(stage: Stage) -> MCPToolset:
    command, *args = stage.command
    return MCPToolset(StdioTransport(command=command, args=args))


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    allowed, servers = {"act", "slow"}, [toolset_of(stage)]
    agent = Agent(model_of(script))

    @agent.toolset
    def offered(_):
        return servers[0].filtered(lambda _, tool: tool.name in allowed) if servers else None

    hands.withdraw = allowed.clear
    hands.remove = servers.clear
    async with servers[0]:
        await agent.run("go")


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    toolset = MCPToolset(StreamableHttpTransport(url, auth=login))
    agent = Agent(model_of(script), toolsets=[toolset])
    hands.log_out = kept.forget
    async with toolset:
        await agent.run("go")


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    inner = Agent(model_of(child), toolsets=[toolset_of(stage)])
    outer = Agent(model_of(parent))

    @outer.tool_plain(name="child")
    async def run_child() -> str:
        return (await inner.run("go")).output

    await outer.run("go")


if __name__ == "__main__":
    main(sys.modules[__name__])
