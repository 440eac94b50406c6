"""openai-agents: a scripted `Model`, one `MCPServerStdio` whose list of tools is cached, no tracing."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from driving import One, main

from benchmarks.scripted.openai_agents import Scripted
from benchmarks.scripted.script import Script

VERSION_OF = ("openai-agents", "mcp")


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    set_tracing_disabled(True)
    params = {"command": command[0], "args": command[1:]}
    async with MCPServerStdio(
        params=params, cache_tools_list=True, client_session_timeout_seconds=600
    ) as server:

        async def one(number: int, tool: str) -> bool:
            agent = Agent(name=f"a{number}", model=Scripted(Script((tool,))), mcp_servers=[server])
            return (await Runner.run(agent, "go")).final_output == "done"

        yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
