"""Tools: list them, call one; their descriptions and hints decide nothing here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from mcp_client.client.changes import Changes
from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.items import Quarantined
from mcp_client.protocol.jsonrpc import encode
from mcp_client.protocol.progress import Progress
from mcp_client.protocol.results import ToolResult, read_tool_result
from mcp_client.protocol.tools import Tool, read_tool
from mcp_client.session import ClientSession, ask

__all__ = ["ToolListing", "ToolSurface"]


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of one server, in its own order, and those that cannot be used."""

    tools: tuple[Tool, ...]
    quarantined: tuple[Quarantined, ...]


class ToolSurface(Surface):
    """The part of `Client` that deals with tools."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__(session)
        self._tools_changed = Changes(session)

    async def list_tools(self) -> ToolListing:
        """Return all tools of the server, page by page. Empty if it has declared none.

        A tool that is malformed, over a bound, or listed twice with different definitions is
        quarantined; the others are not affected. Raises RemoteProtocolError if the pages have no
        end, turn in a circle, or hold more than `tools_max` or `listing_bytes_max`.
        """
        session = self.session
        if not session.connection.capabilities.tools:
            return ToolListing((), ())
        found = await self._list(
            "tools/list",
            "tools",
            read_tool,
            lambda tool: tool.name,
            count_max=session.limits.tools_max,
        )
        return ToolListing(found.items, found.quarantined)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Call a tool and return its checked result; a tool's own failure is a result.

        Args:
            name: the raw name of the tool.
            arguments: JSON values. The server alone validates them against its schema.
            guard: leave to send this one frame; the connection's if None.
            seconds: see `ClientSession.start`.
            on_progress: see `ClientSession.start`.
        """
        session = self.session
        if not isinstance(arguments, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise LocalProtocolError("arguments are an object", server=session.server, stage="send")
        params = encode(
            {"arguments": dict(arguments), "name": name}, depth_max=session.limits.nesting_depth_max
        )
        result = await ask(
            session, "tools/call", params, guard=guard, seconds=seconds, on_progress=on_progress
        )
        return read_tool_result(result, session.limits, server=session.server)

    def tool_changes(self) -> AsyncIterator[None]:
        """Return an iterator that goes on each time that the tools have to be listed again.

        Changes told while its consumer is busy come as one. It ends with the connection.
        """
        return self._tools_changed

    async def wait_tools_changed(self) -> None:
        """Wait until the server has told of changed tools since the last time, or is gone."""
        await self._tools_changed.wait()
