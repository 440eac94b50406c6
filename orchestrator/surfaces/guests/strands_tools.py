# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as tools of Strands Agents. Asks no model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, cast

from strands.types.tools import AgentTool, ToolResult, ToolSpec, ToolUse

from orchestrator.surfaces.guests.view import GuestTool, SnapshotView

__all__ = ["SnapshotTool", "strands_tools"]


def strands_tools(view: SnapshotView) -> list[AgentTool]:
    """Return what the snapshot has: `Agent(..., tools=strands_tools(view))`, run by `invoke_async`.

    Raises AuthorityError if it has been taken back.
    """
    return [SnapshotTool(view, tool) for tool in view.list()]


class SnapshotTool(AgentTool):
    """One tool of a snapshot."""

    def __init__(self, view: SnapshotView, tool: GuestTool) -> None:
        super().__init__()
        self._view = view
        self._tool = tool

    @property
    def tool_name(self) -> str:
        """The name that the model calls."""
        return self._tool.name

    @property
    def tool_type(self) -> str:
        """What kind of tool it is, for displays."""
        return "remit"

    @property
    def tool_spec(self) -> ToolSpec:
        """The tool as the model is shown it."""
        return ToolSpec(
            name=self._tool.name,
            description=self._tool.description,
            inputSchema={"json": self._tool.input_schema},
        )

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **kwargs: object
    ) -> AsyncGenerator[ToolResult]:
        """Make one call, and yield its result; what was refused or has failed is one of status `error`."""
        use = cast("str", tool_use["toolUseId"])
        arguments = cast("dict[str, object]", tool_use["input"])
        answer = await self._view.answer(self._tool.name, arguments, call_id=use)
        status = "error" if answer.failed else "success"
        yield ToolResult(toolUseId=use, status=status, content=[{"text": answer.text}])
