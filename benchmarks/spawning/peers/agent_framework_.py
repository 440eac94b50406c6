"""agent-framework: a scripted chat client, one `MCPStdioTool` for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    MCPStdioTool,
    Message,
)
from driving import One, main

VERSION_OF = ("agent-framework-core", "mcp")


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, tool: str) -> None:
        super().__init__()
        self.tool = tool
        self.turn = 0

    def _inner_get_response(self, *, messages, stream, options, **_):
        return self._answer()

    async def _answer(self) -> ChatResponse:
        self.turn += 1
        if self.turn == 1:
            content = Content.from_function_call(call_id="c1", name=self.tool, arguments={})
        else:
            content = Content.from_text("done")
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    async with MCPStdioTool(name="s", command=command[0], args=command[1:]) as server:

        async def one(number: int, tool: str) -> bool:
            agent = Agent(client=Scripted(tool), name=f"a{number}", tools=[server])
            return (await agent.run("go")).text == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
