"""A scripted `FunctionModel` of pydantic-ai."""

from __future__ import annotations

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from benchmarks.scripted.script import Script


def model_of(script: Script) -> FunctionModel:
    async def answer(_messages, _info) -> ModelResponse:
        name = await script.next()
        return ModelResponse(parts=[ToolCallPart(name, {}) if name else TextPart("done")])

    return FunctionModel(answer)
