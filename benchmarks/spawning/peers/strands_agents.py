"""strands-agents: a scripted `Model`; one `MCPClient` whose tools are listed once for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driving import One, main
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.models import Model
from strands.tools.mcp import MCPClient

VERSION_OF = ("strands-agents", "mcp")


class Scripted(Model):
    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.turn = 0

    def update_config(self, **_) -> None:
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, *_, **__):
        self.turn += 1
        first = self.turn == 1
        yield {"messageStart": {"role": "assistant"}}
        if first:
            use = {"toolUseId": "t1", "name": self.tool}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if first else "end_turn"}}


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    client = MCPClient(
        lambda: stdio_client(StdioServerParameters(command=command[0], args=command[1:]))
    )
    with client:
        tools = client.list_tools_sync()

        async def one(number: int, tool: str) -> bool:
            agent = Agent(
                name=f"a{number}", model=Scripted(tool), tools=list(tools), callback_handler=None
            )
            return str(await agent.invoke_async("go")).strip() == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
