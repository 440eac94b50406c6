"""A scripted `Model` of openai-agents."""

from __future__ import annotations

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from benchmarks.scripted.script import Script


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
