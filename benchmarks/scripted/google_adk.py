"""A scripted `BaseLlm` of google-adk."""

from __future__ import annotations

from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    script: object

    async def generate_content_async(self, llm_request, **_):
        name = await self.script.next()
        arguments = {"request": "go"} if name == "child" else {}
        part = (
            types.Part.from_function_call(name=name, args=arguments)
            if name
            else types.Part(text="done")
        )
        yield LlmResponse(content=types.Content(role="model", parts=[part]))
