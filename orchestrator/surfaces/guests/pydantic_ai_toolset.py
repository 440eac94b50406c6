"""A snapshot as a toolset of pydantic-ai: its agent's calls are a guest's. Asks no model."""

from __future__ import annotations

from typing import Any, Final

from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.tools import AgentDepsT, RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["SnapshotToolset"]

_AS_IT_IS: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))
"""The server validates its arguments; here they only have to be an object."""


class SnapshotToolset(AbstractToolset[AgentDepsT]):
    """The tools of one snapshot: `Agent(model, toolsets=[SnapshotToolset(view)])`."""

    def __init__(self, view: SnapshotView) -> None:
        self._view = view

    @property
    def id(self) -> str:
        """The agent's path."""
        return f"remit:{self._view.agent}"

    async def get_tools(self, ctx: RunContext[AgentDepsT]) -> dict[str, ToolsetTool[AgentDepsT]]:
        """Return what the snapshot has. Raises AuthorityError if it has been taken back."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.description,
                    parameters_json_schema=tool.input_schema,
                    strict=False,
                ),
                max_retries=0,
                args_validator=_AS_IT_IS,
            )
            for tool in self._view.list()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[AgentDepsT],
        tool: ToolsetTool[AgentDepsT],
    ) -> str:
        """Make one call. What was refused or has failed is a failed result, which the model reads."""
        answer = await self._view.answer(name, tool_args, call_id=ctx.tool_call_id or "")
        if answer.failed:
            raise ToolFailed(answer.text)
        return answer.text
