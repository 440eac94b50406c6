"""google-adk: a scripted `BaseLlm`; one `McpToolset` whose tools are listed once for all."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from driving import One, main
from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.genai import types
from mcp import StdioServerParameters

from benchmarks.scripted.google_adk import Scripted
from benchmarks.scripted.script import Script

VERSION_OF = ("google-adk", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    toolset = McpToolset(
        connection_params=StdioConnectionParams(
            server_params=StdioServerParameters(command=command[0], args=command[1:]), timeout=600
        )
    )
    tools = await toolset.get_tools()

    async def one(number: int, tool: str) -> bool:
        agent = LlmAgent(
            name="a", model=Scripted(model="s", script=Script((tool,))), tools=list(tools)
        )
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
