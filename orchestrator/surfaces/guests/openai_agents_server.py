# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownMemberType=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as an MCP server of the OpenAI Agents SDK, without a transport. Asks no model."""

from __future__ import annotations

from typing import Any

import mcp_types
from agents.mcp import MCPServer

from orchestrator.surfaces.guests.gateway import called
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["SnapshotServer"]


class SnapshotServer(MCPServer):
    """The tools of one snapshot: `Agent(..., mcp_servers=[SnapshotServer(view)])`."""

    def __init__(self, view: SnapshotView) -> None:
        super().__init__()
        self._view = view

    @property
    def name(self) -> str:
        """The agent's path."""
        return f"remit:{self._view.agent}"

    async def connect(self) -> None:
        """Do nothing: the session is connected already."""

    async def cleanup(self) -> None:
        """Do nothing: whoever made the view closes it."""

    async def list_tools(
        self, run_context: object = None, agent: object = None
    ) -> list[mcp_types.Tool]:
        """Return what the snapshot has. Raises AuthorityError if it has been taken back."""
        return [
            mcp_types.Tool(
                name=tool.name, description=tool.description, input_schema=tool.input_schema
            )
            for tool in self._view.list()
        ]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> mcp_types.CallToolResult:
        """Make one call. What was refused or has failed is a result that is an error."""
        return await called(self._view, tool_name, arguments or {})

    async def list_prompts(self) -> mcp_types.ListPromptsResult:
        """Return none: a prompt is for a person to choose."""
        return mcp_types.ListPromptsResult(prompts=[])

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None
    ) -> mcp_types.GetPromptResult:
        """Raise LookupError: none is listed."""
        raise LookupError(f"there is no prompt {name!r}")
