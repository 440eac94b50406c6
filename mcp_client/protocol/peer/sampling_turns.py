"""The order of uses and results of tools in a sampling request; it looks at nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_client.protocol.surfaces.prompts import Role

__all__ = ["fault_of_turns"]

Turn = tuple[Role, Sequence[Mapping[str, object]]]


def fault_of_turns(turns: Sequence[Turn]) -> str:
    """Return what is wrong with the order of messages; empty if nothing is.

    MCP 2025-11-25, sampling: a message with results of tools is the user's and holds nothing else,
    and every use of a tool is answered in the message after it, before anything else is said.
    """
    asked: set[object] = set()
    for role, blocks in turns:
        uses = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        results = [block.get("toolUseId") for block in blocks if block.get("type") == "tool_result"]
        if results and (role is not Role.USER or len(results) < len(blocks)):
            return "a message with results of tools holds nothing else"
        if uses and role is not Role.ASSISTANT:
            return "only the assistant uses tools"
        if len(set(uses)) < len(uses) or len(set(results)) < len(results):
            return "an id of a use of a tool stands twice"
        if set(results) != asked:
            return "uses of tools and their results do not belong together"
        asked = set(uses)
    return "a use of a tool has no result" if asked else ""
