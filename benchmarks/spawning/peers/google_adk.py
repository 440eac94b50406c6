"""google-adk: a scripted `BaseLlm`; one `McpToolset` whose tools are listed once for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from driving import One, main
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters

VERSION_OF = ("google-adk", "mcp")


class Scripted(BaseLlm):
    tool: str
    turn: int = 0

    async def generate_content_async(self, llm_request, **_):
        self.turn += 1
        part = (
            types.Part.from_function_call(name=self.tool, args={})
            if self.turn == 1
            else types.Part(text="done")
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    toolset = McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(command=command[0], args=command[1:]), timeout=600
        )
    )
    tools = await toolset.get_tools()

    async def one(number: int, tool: str) -> bool:
        agent = LlmAgent(name="a", model=Scripted(model="s", tool=tool), tools=list(tools))
        runner = InMemoryRunner(agent=agent, app_name="a")
        session = await runner.session_service.create_session(app_name="a", user_id="u")
        words = types.Content(role="user", parts=[types.Part(text="go")])
        last = None
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=words):
            last = event
        return last is not None and last.content.parts[0].text == "done"

    yield one
    await toolset.close()


if __name__ == "__main__":
    main(sys.modules[__name__])
