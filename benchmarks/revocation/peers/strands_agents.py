"""strands-agents: a scripted `Model`, `tool_filters`, the agent's registry, an agent as a tool."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import Hands, Script, Stage, main
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from sdk_login import login_to
from strands import Agent, tool
from strands.tools.mcp import MCPClient

from benchmarks.scripted.strands_agents import Scripted

VERSION_OF = ("strands-agents", "mcp")


def client_of(stage: Stage, allowed: set[str]) -> MCPClient:
    command, *args = stage.command
    return MCPClient(
        lambda: stdio_client(StdioServerParameters(command=command, args=args)),
        tool_filters={"allowed": [lambda tool: tool.mcp_tool.name in allowed]},
    )


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    allowed = {"act", "slow"}
    client = client_of(stage, allowed)
    agent = Agent(model=Scripted(script), tools=[client], callback_handler=None)
    hands.withdraw = allowed.clear
    hands.remove = lambda: [agent.tool_registry.registry.pop(name) for name in ("act", "slow")]
    await agent.invoke_async("go")


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    client = MCPClient(
        lambda: streamable_http_client(url, http_client=create_mcp_http_client(auth=login))
    )
    agent = Agent(model=Scripted(script), tools=[client], callback_handler=None)
    hands.log_out = kept.forget
    await agent.invoke_async("go")


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    client = client_of(stage, {"act", "slow"})
    inner = Agent(model=Scripted(child), tools=[client], callback_handler=None)

    @tool(name="child")
    async def run_child() -> str:
        """Works."""
        return str(await inner.invoke_async("go"))

    outer = Agent(model=Scripted(parent), tools=[run_child], callback_handler=None)
    await outer.invoke_async("go")


if __name__ == "__main__":
    main(sys.modules[__name__])
