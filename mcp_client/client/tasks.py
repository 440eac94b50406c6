"""Calls that become tasks: made, asked after, answered, cancelled, each frame under leave of its own."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from mcp_client.client.rounds import answer_inputs, check_owner
from mcp_client.client.surface import Surface
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    LocalProtocolError,
    McpError,
)
from mcp_client.protocol.modern.errors import TaskCancelledError
from mcp_client.protocol.modern.extensions import TASKS
from mcp_client.protocol.surfaces.results import ToolResult, read_tool_result
from mcp_client.protocol.surfaces.tasks import Task, TaskShape, TaskStatus, ToolTasks, read_task
from mcp_client.session import ClientSession

__all__ = ["TaskSurface"]


class TaskSurface(Surface):
    """The part of `Client` that deals with tasks: off unless the `Dialect` turns it on."""

    def __init__(self, session: ClientSession) -> None:
        super().__init__(session)
        self._tool_tasks: Mapping[str, ToolTasks] = {}

    async def begin_task(
        self,
        name: str,
        arguments: Mapping[str, object],
        *,
        keep_seconds: float | None = None,
        guard: SendGuard | None = None,
        seconds: float | None = None,
    ) -> Task:
        """Call a tool as a task of 2025-11-25, and return the task.

        Args:
            name: the raw name of a tool that says it can be called so.
            arguments: JSON values.
            keep_seconds: for how long the server is asked to keep the task; its own choice if None.
            guard: leave to send this one frame; the connection's if None.
            seconds: from now to the task's creation.

        Raises LocalProtocolError if tasks are off, or the server does not make tasks of calls.
        """
        session = self.session
        if not session.dialect.tasks or not session.connection.task_support.tool_calls:
            raise self._off()
        if name not in self._tool_tasks:
            # MCP 2025-11-25: a tool that does not say so must not be called so
            raise self._wrong("the tool was not listed as one that can be called as a task")
        task: dict[str, object] = {}
        if keep_seconds is not None:
            task["ttl"] = int(keep_seconds * 1000)
        params = {"arguments": dict(arguments), "name": name, "task": task}
        result = await self._ask("tools/call", params, guard=guard, seconds=seconds)
        return read_task(
            result, TaskShape.CORE, session.limits, session.bounds, owner=session.owner
        )

    async def get_task(self, task: Task, *, guard: SendGuard | None = None) -> Task:
        """Return where a task stands now."""
        self._check_task(task)
        result = await self._ask("tasks/get", {"taskId": task.id}, guard=guard)
        session = self.session
        return read_task(
            result,
            task.shape,
            session.limits,
            session.bounds,
            owner=session.owner,
            expected=task.id,
        )

    async def update_task(
        self, task: Task, answers: Mapping[str, object], *, guard: SendGuard | None = None
    ) -> None:
        """Answer questions that a task of the extension has. The server may take them one by one."""
        self._check_task(task)
        if task.shape is not TaskShape.EXTENSION or not answers.keys() <= task.requests.keys():
            raise LocalProtocolError(
                "only questions that a task has are answered", server=self.server, stage="send"
            )
        params = {"taskId": task.id, "inputResponses": dict(answers)}
        await self._ask("tasks/update", params, guard=guard)

    async def cancel_task(self, task: Task, *, guard: SendGuard | None = None) -> None:
        """Ask the server to stop a task. Whether it does is its own choice."""
        self._check_task(task)
        await self._ask("tasks/cancel", {"taskId": task.id}, guard=guard)

    async def task_result(
        self, task: Task, *, guard: SendGuard | None = None, seconds: float | None = None
    ) -> ToolResult:
        """Return what a task came to.

        Of the extension it is part of a task that is completed; in 2025-11-25 it is waited for.
        Raises TaskCancelledError, what the task failed with, or LocalProtocolError for a task of
        the extension that has not ended.
        """
        self._check_task(task)
        if task.status is TaskStatus.CANCELLED:
            raise TaskCancelledError(
                "the task was cancelled",
                server=self.server,
                stage="receive",
                delivery=Delivery.ANSWERED,
            )
        limits = self.session.limits
        if task.shape is TaskShape.CORE:
            result = await self._ask(
                "tasks/result", {"taskId": task.id}, guard=guard, seconds=seconds
            )
            return read_tool_result(result, limits, server=self.server)
        if task.error is not None:
            raise task.error
        if task.result is None:
            if task.status.is_final:
                raise self._broken("a task that has ended has a result or an error")
            raise LocalProtocolError("the task has not ended", server=self.server, stage="send")
        return read_tool_result(task.result, limits, server=self.server)

    async def follow_task(self, task: Task, *, seconds: float | None = None) -> ToolResult:
        """Ask after a task until it has ended, under the connection's own guard; return its result.

        Its questions are answered by the handlers, each once. If the deadline passes, a question
        is not answered, or the waiting is cancelled, the server is asked to stop the task.

        Args:
            task: the task.
            seconds: from now to its end; `task_seconds_max` if None.
        """
        bounds = self.session.bounds
        deadline = bounds.task_seconds_max if seconds is None else seconds
        try:
            with anyio.move_on_after(deadline):
                return await self._follow(task, deadline)
            raise CallTimeoutError(
                "the task did not end in time",
                server=self.server,
                stage="wait",
                delivery=Delivery.ANSWERED,
            )
        except BaseException:
            self._stop(task)
            raise

    async def _follow(self, task: Task, seconds: float) -> ToolResult:
        answered: set[str] = set()
        while not task.status.is_final:
            if task.status is TaskStatus.INPUT_REQUIRED:
                if task.shape is TaskShape.CORE:
                    # 2025-11-25: the server asks while the result is being waited for
                    return await self.task_result(task, seconds=seconds)
                await self._answer(task, answered)
            await anyio.sleep(task.poll_seconds)
            task = await self.get_task(task)
        return await self.task_result(task, seconds=seconds)

    async def _answer(self, task: Task, answered: set[str]) -> None:
        """Answer what was not answered yet: a server may list a question until it has taken that."""
        fresh = {key: each for key, each in task.requests.items() if key not in answered}
        if not fresh:
            return
        answered.update(fresh)
        declared = self.session.connection.negotiated
        await self.update_task(task, await answer_inputs(self.session, fresh, declared))

    def _stop(self, task: Task) -> None:
        """Ask the server to stop, without waiting for its answer."""
        session = self.session
        try:
            session.start(
                "tasks/cancel", self._encode({"taskId": task.id}), guard=session.cancel_guard
            )
        except McpError:
            return  # the connection is over, or the server cannot cancel: nothing else can be done

    def _check_task(self, task: Task) -> None:
        check_owner(self.session, task.owner)
        extended = TASKS in self.session.connection.extensions
        usable = extended if task.shape is TaskShape.EXTENSION else self.session.dialect.tasks
        if not usable:
            raise self._off()

    def _off(self) -> LocalProtocolError:
        return LocalProtocolError(
            "tasks are off, or the server has none", server=self.server, stage="send"
        )
