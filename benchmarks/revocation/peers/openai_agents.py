"""openai-agents: a scripted `Model`, `tool_filter`, `agent.mcp_servers`, agents as tools."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from driving import Hands, Script, Stage, main
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from sdk_login import login_to

VERSION_OF = ("openai-agents", "mcp")


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *_, **__):
        name = await self.script.next()
        if name:
            arguments = '{"input": "go"}' if name == "child" else "{}"
            item = ResponseFunctionToolCall(
                arguments=arguments,
                call_id=f"c{self.script.turn}",
                name=name,
                type="function_call",
            )
        else:
            text = ResponseOutputText(annotations=[], text="done", type="output_text")
            item = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_, **__):
        raise NotImplementedError


def server_of(stage: Stage, allowed: set[str]) -> MCPServerStdio:
    command, *args = stage.command
    return MCPServerStdio(
        params={"command": command, "args": args},
        tool_filter=lambda _, tool: tool.name in allowed,
    )


async def act(stage: Stage, script: Script, hands: Hands) -> None:
    allowed = {"act", "slow"}
    async with server_of(stage, allowed) as server:
        agent = Agent(name="a", model=Scripted(script), mcp_servers=[server])
        hands.withdraw = allowed.clear
        hands.remove = lambda: agent.mcp_servers.remove(server)
        await Runner.run(agent, "go")


async def logged_in(url: str, script: Script, hands: Hands) -> None:
    login, kept = login_to(url)
    async with MCPServerStreamableHttp(params={"url": url, "auth": login}) as server:
        hands.log_out = kept.forget
        await Runner.run(Agent(name="a", model=Scripted(script), mcp_servers=[server]), "go")


async def nested(stage: Stage, parent: Script, child: Script) -> None:
    async with server_of(stage, {"act", "slow"}) as server:
        inner = Agent(name="c", model=Scripted(child), mcp_servers=[server])
        tool = inner.as_tool(tool_name="child", tool_description="works")
        await Runner.run(Agent(name="p", model=Scripted(parent), tools=[tool]), "go")


if __name__ == "__main__":
    set_tracing_disabled(True)
    main(sys.modules[__name__])
