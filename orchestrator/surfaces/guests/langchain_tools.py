# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as tools of LangChain and LangGraph. Asks no model."""

from __future__ import annotations

from langchain_core.tools import StructuredTool, ToolException

from orchestrator.surfaces.guests.view import GuestTool, SnapshotView

__all__ = ["langchain_tools"]


def langchain_tools(view: SnapshotView) -> list[StructuredTool]:
    """Return what the snapshot has, as tools for `create_agent`. They are async only.

    Raises AuthorityError if it has been taken back.
    """
    return [_tool(view, tool) for tool in view.list()]


def _tool(view: SnapshotView, tool: GuestTool) -> StructuredTool:
    async def call(**arguments: object) -> str:
        answer = await view.answer(tool.name, arguments)
        if answer.failed:  # it becomes a message with the status `error`, which the model reads
            raise ToolException(answer.text)
        return answer.text

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=call,
        handle_tool_error=True,
    )
