"""A scripted chat client of agent-framework."""

from __future__ import annotations

from agent_framework import (
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
)

from benchmarks.scripted.script import Script


class Scripted(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script

    def _inner_get_response(self, *, messages, stream, options, **_):
        return self._answer()

    async def _answer(self) -> ChatResponse:
        name = await self.script.next()
        if name:
            arguments = {"task": "go"} if name == "child" else {}
            content = Content.from_function_call(
                call_id=f"c{self.script.turn}", name=name, arguments=arguments
            )
        else:
            content = Content.from_text("done")
        return ChatResponse(messages=[Message(role="assistant", contents=[content])])
