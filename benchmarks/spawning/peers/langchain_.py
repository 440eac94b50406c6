"""langchain: `create_agent` (langgraph) with a scripted chat model; tools of one session, listed once."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import One, main
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

from benchmarks.scripted.langchain_ import Scripted
from benchmarks.scripted.script import Script

VERSION_OF = ("langchain", "langgraph", "langchain-mcp-adapters", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    server = {"transport": "stdio", "command": command[0], "args": command[1:]}
    client = MultiServerMCPClient({"s": server})
    async with client.session("s") as session:
        tools = await load_mcp_tools(session)

        async def one(number: int, tool: str) -> bool:
            agent = create_agent(model=Scripted(script=Script((tool,))), tools=list(tools))
            ended = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})
            return ended["messages"][-1].content == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
