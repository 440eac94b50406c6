"""langchain: `create_agent` (langgraph) with a scripted chat model; tools of one session, listed once."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driving import One, main
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

VERSION_OF = ("langchain", "langgraph", "langchain-mcp-adapters", "mcp")


class Scripted(BaseChatModel):
    tool: str
    turn: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, *_, **__):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **_):
        self.turn += 1
        message = AIMessage("done")
        if self.turn == 1:
            message = AIMessage("", tool_calls=[{"name": self.tool, "args": {}, "id": "c1"}])
        return ChatResult(generations=[ChatGeneration(message=message)])


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    server = {"transport": "stdio", "command": command[0], "args": command[1:]}
    client = MultiServerMCPClient({"s": server})
    async with client.session("s") as session:
        tools = await load_mcp_tools(session)

        async def one(number: int, tool: str) -> bool:
            agent = create_agent(model=Scripted(tool=tool), tools=list(tools))
            ended = await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})
            return ended["messages"][-1].content == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
