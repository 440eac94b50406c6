"""openai-agents: a scripted `Model`, `tool_filter`, `agent.mcp_servers`, agents as tools."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from driving import Hands, Script, Stage, main
from sdk_login import login_to

from benchmarks.scripted.openai_agents import Scripted

VERSION_OF = ("openai-agents", "mcp")


def server_of(stage: Stage, allowed: set[str]) -> MCPServerStdio:
    command, *args = stage.command
    return MCPServerStdio(
        params={"command": command, "args": args},
        tool_filter=lambda _, tool: tool.name in allowed,
    )


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    allowed = {"act", "slow"}
    async with server_of(stage, allowed) as server:
        agent = Agent(name="a", model=Scripted(script), mcp_servers=[server])
        hands.withdraw = allowed.clear
        hands.remove = lambda: agent.mcp_servers.remove(server)
        await Runner.run(agent, "go")


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    async with MCPServerStreamableHttp(params={"url": url, "auth": login}) as server:
        hands.log_out = kept.forget
        await Runner.run(Agent(name="a", model=Scripted(script), mcp_servers=[server]), "go")


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    async with server_of(stage, {"act", "slow"}) as server:
        inner = Agent(name="c", model=Scripted(child), mcp_servers=[server])
        tool = inner.as_tool(tool_name="child", tool_description="works")
        await Runner.run(Agent(name="p", model=Scripted(parent), tools=[tool]), "go")


if __name__ == "__main__":
    set_tracing_disabled(True)
    main(sys.modules[__name__])
