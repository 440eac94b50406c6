"""Tools: list them, call one; their descriptions and hints decide nothing here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from mcp_client.client.changes import Changes
from mcp_client.client.rounds import Exchange, answer_inputs, check_owner, run_exchange
from mcp_client.client.tasks import TaskSurface
from mcp_client.client.tool_reading import ToolReader
from mcp_client.ports import SendGuard
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.modern.errors import HeaderMismatchError
from mcp_client.protocol.modern.mrtr import InputRequired
from mcp_client.protocol.progress import Progress
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.results import ToolResult, read_tool_result
from mcp_client.protocol.surfaces.tasks import Task, TaskCreatedError, ToolTasks
from mcp_client.protocol.surfaces.tools import Tool, named_params
from mcp_client.session import ClientSession

__all__ = ["ToolListing", "ToolSurface"]


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of one server, in its own order, and those that cannot be used."""

    tools: tuple[Tool, ...]
    quarantined: tuple[Quarantined, ...]


class ToolSurface(TaskSurface):
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
        reader = ToolReader(session)
        found = await self._list(
            "tools/list",
            "tools",
            reader.read,
            lambda tool: tool.name,
            count_max=session.limits.tools_max,
        )
        session.mirror.learn(reader.marks)
        self._tool_tasks = reader.tasks
        return ToolListing(found.items, found.quarantined)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        declares: ClientCapabilities | None = None,
    ) -> ToolResult:
        """Call a tool and return its checked result; a tool's own failure is a result.

        Args:
            name: the raw name of the tool.
            arguments: JSON values. The server alone validates them against its schema.
            guard: leave to send this one frame; the connection's if None.
            seconds: see `ClientSession.start`.
            on_progress: see `ClientSession.start`.
            declares: see `ClientSession.start`.

        With a guard, whatever takes further frames is the caller's: InputRequiredError if the
        server has questions, TaskCreatedError if the call became a task, HeaderMismatchError if
        the tools have changed. Without one all that goes on under the connection's own guard.
        """
        if not isinstance(arguments, dict | Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._wrong("arguments are an object")
        if self._tool_tasks.get(name) is ToolTasks.REQUIRED:
            if guard is not None:
                raise self._wrong("this tool is called as a task only: see begin_task")
            return await self.follow_task(await self.begin_task(name, arguments), seconds=seconds)
        params = named_params(name, self._encode(dict(arguments), within=1))
        how = Exchange(guard=guard, seconds=seconds, on_progress=on_progress, declares=declares)
        try:
            outcome = await run_exchange(self.session, "tools/call", params, how)
        except HeaderMismatchError:
            if guard is not None:
                raise
            # MCP 2026-07-28, Streamable HTTP: the tools have changed, and with them their headers
            self.session.recall.drop("tools/list")
            await self.list_tools()
            outcome = await run_exchange(self.session, "tools/call", params, how)
        if isinstance(outcome, Task):
            return await self._outcome(outcome, how)
        return read_tool_result(outcome, self.session.limits, server=self.server)

    async def continue_call(
        self,
        required: InputRequired,
        answers: Mapping[str, object],
        *,
        guard: SendGuard | None = None,
        seconds: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
    ) -> ToolResult:
        """Go on with `call_tool` where the server had questions: a request of its own, decided anew.

        Args:
            required: what InputRequiredError brought.
            answers: a result for every question, by the server's names; `answer_inputs` makes them.
            guard: leave to send this one frame; the connection's if None.
            seconds: see `ClientSession.start`.
            on_progress: see `ClientSession.start`.
        """
        how = Exchange(guard=guard, seconds=seconds, on_progress=on_progress)
        outcome = await self._continue("tools/call", required, answers, how)
        return await self._outcome(outcome, how)

    async def answer_inputs(self, required: InputRequired) -> Mapping[str, object]:
        """Return the handlers' answers to a server's questions. Nothing is sent.

        Raises InputRefusedError if one was not answered: the request then ends here. Raises
        LocalProtocolError for the questions of another server, configuration or login.
        """
        check_owner(self.session, required.owner)
        return await answer_inputs(self.session, required.requests, required.declared)

    async def _outcome(self, outcome: object, how: Exchange) -> ToolResult:
        if isinstance(outcome, Task):
            if how.guard is not None:
                raise TaskCreatedError(outcome, server=self.server)
            return await self.follow_task(outcome)
        return read_tool_result(outcome, self.session.limits, server=self.server)

    def tool_changes(self) -> AsyncIterator[None]:
        """Return an iterator that goes on each time that the tools have to be listed again.

        Changes told while its consumer is busy come as one. It ends with the connection.
        """
        return self._tools_changed

    async def wait_tools_changed(self) -> None:
        """Wait until the server has told of changed tools since the last time, or is gone."""
        await self._tools_changed.wait()
