"""strands-agents: a scripted `Model`; one `MCPClient` whose tools are listed once for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import One, main
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.tools.mcp import MCPClient

from benchmarks.scripted.script import Script
from benchmarks.scripted.strands_agents import Scripted

VERSION_OF = ("strands-agents", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    client = MCPClient(
        lambda: stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    )
    with client:
        tools = client.list_tools_sync()

        async def one(number: int, tool: str) -> bool:
            agent = Agent(
                name=f"a{number}",
                model=Scripted(Script((tool,))),
                tools=list(tools),
                callback_handler=None,
            )
            return str(await agent.invoke_async("go")).strip() == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
