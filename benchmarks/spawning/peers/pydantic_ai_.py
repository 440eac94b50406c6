"""pydantic-ai: a `FunctionModel`, one `MCPToolset` for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driving import One, main
from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

VERSION_OF = ("pydantic-ai-slim", "fastmcp-slim", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    toolset = MCPToolset(StdioTransport(command=command[0], args=command[1:]))
    async with toolset:

        async def one(number: int, tool: str) -> bool:
            async def answer(messages, _info) -> ModelResponse:
                first = len(messages) == 1
                return ModelResponse(parts=[ToolCallPart(tool, {}) if first else TextPart("done")])

            agent = Agent(FunctionModel(answer), name=f"a{number}", toolsets=[toolset])
            return (await agent.run("go")).output == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
