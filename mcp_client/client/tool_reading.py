"""Tools as one connection can use them: header marks where there are headers, tasks where they are on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.http.headers import HeaderMark, HeaderMarkError, read_header_marks
from mcp_client.protocol.jsonrpc import as_object, decode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.tasks import ToolTasks, read_tool_tasks
from mcp_client.protocol.surfaces.tools import Tool, read_tool
from mcp_client.session import ClientSession

__all__ = ["ToolReader"]

_MARK: Final = b'"x-mcp-header"'
_EXECUTION: Final = b'"execution"'


class ToolReader:
    """Reads one listing.

    Attributes:
        marks: the arguments that headers mirror, by tool.
        tasks: what tools say about being called as a task, where it is not `FORBIDDEN`.
    """

    def __init__(self, session: ClientSession) -> None:
        self.marks: dict[str, Sequence[HeaderMark]] = {}
        self.tasks: dict[str, ToolTasks] = {}
        is_modern = isinstance(session.connection, ModernConnection)
        self._reads_marks = is_modern and session.carries_headers
        self._reads_tasks = not is_modern
        self._has_tasks = session.dialect.tasks and session.connection.task_support.tool_calls

    def read(self, definition: object, limits: ClientLimits) -> Tool | Quarantined:
        """Read one element of `tools`."""
        tool = read_tool(definition, limits)
        if isinstance(tool, Quarantined):
            return tool
        reason = ""
        if self._reads_marks and _MARK in tool.input_schema:
            reason = self._read_marks(tool, limits)
        if self._reads_tasks and _EXECUTION in tool.definition:
            reason = reason or self._read_tasks(tool, limits)
        return Quarantined(tool.name, reason) if reason else tool

    def _read_marks(self, tool: Tool, limits: ClientLimits) -> str:
        schema = as_object(decode(tool.input_schema, limits)) or {}
        try:
            marks = read_header_marks(schema)
        except HeaderMarkError as error:
            # MCP 2026-07-28, Streamable HTTP: such a tool is left out, and the others kept
            return str(error)
        if marks:
            self.marks[tool.name] = marks
        return ""

    def _read_tasks(self, tool: Tool, limits: ClientLimits) -> str:
        said = read_tool_tasks(as_object(decode(tool.definition, limits)) or {})
        if said is ToolTasks.REQUIRED and not self._has_tasks:
            return "it can only be called as a task, and tasks are off"
        if said is not ToolTasks.FORBIDDEN and self._has_tasks:
            self.tasks[tool.name] = said
        return ""
