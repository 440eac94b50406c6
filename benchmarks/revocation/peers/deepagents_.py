"""deepagents with langchain-mcp-adapters: a scripted chat model, the list of tools, `connections`, subagents."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from deepagents import create_deep_agent
from driving import Hands, Script, Stage, main
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from sdk_login import login_to

VERSION_OF = ("deepagents", "langchain-mcp-adapters", "langgraph", "mcp")
NAMED = {"child": ("task", {"description": "go", "subagent_type": "child"})}


class Scripted(BaseChatModel):
    script: object

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **_):
        return self

    def _generate(self, *_, **__):
        raise NotImplementedError

    async def _agenerate(self, messages, stop=None, run_manager=None, **_):
        name = await self.script.next()
        message = AIMessage("done")
        if name:
            name, arguments = NAMED.get(name, (name, {}))
            call = {"name": name, "args": arguments, "id": f"c{self.script.turn}"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


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
