"""openai-agents: a scripted `Model`, one `MCPServerStdio` whose list of tools is cached, no tracing."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio
from driving import One, main
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

VERSION_OF = ("openai-agents", "mcp")


class Scripted(Model):
    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.turn = 0

    async def get_response(self, *_, **__):
        self.turn += 1
        if self.turn == 1:
            item = ResponseFunctionToolCall(
                arguments="{}", call_id="c1", name=self.tool, type="function_call"
            )
        else:
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            item = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    set_tracing_disabled(True)
    params = {"command": command[0], "args": command[1:]}
    async with MCPServerStdio(
        params=params, cache_tools_list=True, client_session_timeout_seconds=600
    ) as server:

        async def one(number: int, tool: str) -> bool:
            agent = Agent(name=f"a{number}", model=Scripted(tool), mcp_servers=[server])
            return (await Runner.run(agent, "go")).final_output == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
