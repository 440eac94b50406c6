# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as tools of Microsoft's Agent Framework. Asks no model."""

from __future__ import annotations

from agent_framework import FunctionTool

from orchestrator.surfaces.guests.view import GuestTool, SnapshotView

__all__ = ["agent_framework_tools"]


def agent_framework_tools(view: SnapshotView) -> list[FunctionTool]:
    """Return what the snapshot has: `Agent(client, tools=agent_framework_tools(view))`.

    Raises AuthorityError if it has been taken back.
    """
    return [_tool(view, tool) for tool in view.list()]


def _tool(view: SnapshotView, tool: GuestTool) -> FunctionTool:
    async def call(**arguments: object) -> str:
        # An exception would reach the model without its text, and it would try again. What was
        # refused stays so, in the text, in the events and on record.
        return (await view.answer(tool.name, arguments)).text

    return FunctionTool(
        name=tool.name, description=tool.description, func=call, input_model=tool.input_schema
    )
