"""agent-framework: a scripted chat client, one `MCPStdioTool` for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from agent_framework import (
    Agent,
    MCPStdioTool,
)
from driving import One, main

from benchmarks.scripted.agent_framework_ import Scripted
from benchmarks.scripted.script import Script

VERSION_OF = ("agent-framework-core", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    async with MCPStdioTool(name="s", command=command[0], args=command[1:]) as server:

        async def one(number: int, tool: str) -> bool:
            agent = Agent(client=Scripted(Script((tool,))), name=f"a{number}", tools=[server])
            return (await agent.run("go")).text == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
