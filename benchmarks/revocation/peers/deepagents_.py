"""deepagents with langchain-mcp-adapters: a scripted chat model, the list of tools, `connections`, subagents."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[3]))

from deepagents import create_deep_agent
from driving import Hands, Script, Stage, main
from langchain_mcp_adapters.client import MultiServerMCPClient
from sdk_login import login_to

from benchmarks.scripted.langchain_ import Scripted

VERSION_OF = ("deepagents", "langchain-mcp-adapters", "langgraph", "mcp")


def client_of(stage: Stage) -> MultiServerMCPClient:
    command, *args = stage.command
    return MultiServerMCPClient({"s": {"transport": "stdio", "command": command, "args": args}})


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    client = client_of(stage)
    tools = await client.get_tools()
    agent = create_deep_agent(model=Scripted(script=script), tools=tools)
    hands.withdraw = tools.clear
    hands.remove = client.connections.clear
    await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    client = MultiServerMCPClient(
        {"s": {"transport": "streamable_http", "url": url, "auth": login}}
    )
    tools = await client.get_tools()
    hands.log_out = kept.forget
    agent = create_deep_agent(model=Scripted(script=script), tools=tools)
    await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    inner = {
        "name": "child",
        "description": "works",
        "system_prompt": "work",
        "tools": await client_of(stage).get_tools(),
        "model": Scripted(script=child),
    }
    agent = create_deep_agent(model=Scripted(script=parent), tools=[], subagents=[inner])
    await agent.ainvoke({"messages": [{"role": "user", "content": "go"}]})


if __name__ == "__main__":
    main(sys.modules[__name__])
