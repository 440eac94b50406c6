"""pydantic-ai: a `FunctionModel`, one `MCPToolset` for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import One, main
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

from benchmarks.scripted.pydantic_ai_ import model_of
from benchmarks.scripted.script import Script

VERSION_OF = ("pydantic-ai-slim", "fastmcp-slim", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    toolset = MCPToolset(StdioTransport(command=command[0], args=command[1:]))
    async with toolset:

        async def one(number: int, tool: str) -> bool:
            agent = Agent(model_of(Script((tool,))), name=f"a{number}", toolsets=[toolset])
            return (await agent.run("go")).output == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
