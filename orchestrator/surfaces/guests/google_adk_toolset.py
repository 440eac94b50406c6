# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as a toolset of Google's Agent Development Kit. Asks no model."""

from __future__ import annotations

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai.types import FunctionDeclaration

from orchestrator.surfaces.guests.view import GuestTool, SnapshotView

__all__ = ["SnapshotTool", "SnapshotToolset"]


class SnapshotTool(BaseTool):
    """One tool of a snapshot."""

    def __init__(self, view: SnapshotView, tool: GuestTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._view = view
        self._tool = tool

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self._tool.name,
            description=self._tool.description,
            parameters_json_schema=self._tool.input_schema,
        )

    async def run_async(self, *, args: dict[str, object], tool_context: object) -> dict[str, str]:
        """Make one call. What was refused or has failed stands under `error`, which the model reads."""
        answer = await self._view.answer(self._tool.name, args)
        return {"error" if answer.failed else "result": answer.text}


class SnapshotToolset(BaseToolset):
    """The tools of one snapshot: `LlmAgent(..., tools=[SnapshotToolset(view)])`."""

    def __init__(self, view: SnapshotView) -> None:
        super().__init__()
        self._view = view

    async def get_tools(self, readonly_context: object = None) -> list[BaseTool]:
        """Return what the snapshot has. Raises AuthorityError if it has been taken back."""
        return [SnapshotTool(self._view, tool) for tool in self._view.list()]

    async def close(self) -> None:
        """Do nothing: whoever made the view closes it."""
