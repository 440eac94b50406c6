"""A scripted chat model of langchain, for whatever is built on it."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

NAMED = {"child": ("task", {"description": "go", "subagent_type": "child"})}
"""What deepagents calls the tool that hands work to its subagent `child`."""


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
