"""A scripted `Model` of strands-agents."""

from __future__ import annotations

from strands.models import Model

from benchmarks.scripted.script import Script


class Scripted(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    def update_config(self, **_) -> None:
        pass

    def get_config(self):
        return {}

    def structured_output(self, *_, **__):
        raise NotImplementedError

    async def stream(self, *_, **__):
        name = await self.script.next()
        yield {"messageStart": {"role": "assistant"}}
        if name:
            use = {"toolUseId": f"t{self.script.turn}", "name": name}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}}}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if name else "end_turn"}}
