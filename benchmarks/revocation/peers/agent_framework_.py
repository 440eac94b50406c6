"""agent-framework: a scripted chat client, `allowed_tools`, `agent.mcp_tools`, a tool that runs an agent."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from agent_framework import (
    Agent,
    MCPStdioTool,
    MCPStreamableHTTPTool,
)
from driving import Hands, Script, Stage, main
from mcp.client.streamable_http import create_mcp_http_client
from sdk_login import login_to

from benchmarks.scripted.agent_framework_ import Scripted

VERSION_OF = ("agent-framework-core", "mcp")


def server_of(stage: Stage) -> MCPStdioTool:
    command, *args = stage.command
    return MCPStdioTool(name="s", command=command, args=args, allowed_tools=["act", "slow"])


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    async with server_of(stage) as server:
        agent = Agent(client=Scripted(script), name="a", tools=[server])

        def withdraw() -> None:
            server.allowed_tools = []

        hands.withdraw = withdraw
        hands.remove = lambda: agent.mcp_tools.remove(server)
        await agent.run("go")


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    client = create_mcp_http_client(auth=login)
    async with MCPStreamableHTTPTool(name="s", url=url, http_client=client) as server:
        hands.log_out = kept.forget
        await Agent(client=Scripted(script), name="a", tools=[server]).run("go")


async def nested(stage: Stage, parent: Script, child_script: Script) -> None:
    async with server_of(stage) as server:
        inner = Agent(client=Scripted(child_script), name="child", tools=[server])

        async def child(task: str) -> str:
            """Works."""
            return (await inner.run(task)).text

        outer = Agent(client=Scripted(parent), name="p", tools=[child])
        await outer.run("go")


if __name__ == "__main__":
    main(sys.modules[__name__])
