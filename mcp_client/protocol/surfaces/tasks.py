"""Tasks in both shapes, 2025-11-25 and the extension: read, bounded, told apart; it polls nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from mcp_client.protocol.errors import Delivery, McpError, PeerError, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.mrtr import InputRequest, read_input_requests
from mcp_client.protocol.owners import NOBODY, Owner
from mcp_client.protocol.texts import cut_text

__all__ = [
    "RELATED_TASK",
    "TASKS_VERSION",
    "Task",
    "TaskCreatedError",
    "TaskShape",
    "TaskStatus",
    "TaskSupport",
    "ToolTasks",
    "poll_seconds",
    "read_task",
    "read_tool_tasks",
    "task_request_allowed",
]

TASKS_VERSION: Final = "2025-11-25"
"""The one version with a handshake that has tasks, as an experiment."""
RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The member of `_meta` that names the task which a message is about."""

_NOTHING: Final[Mapping[str, object]] = {}

_TTL_MAX: Final = 2**53
"""Milliseconds: what a float holds exactly, and longer than anything lasts."""


class TaskShape(Enum):
    """Whose messages a task speaks."""

    CORE = "core"
    """2025-11-25: asked for with each call; the result is fetched with `tasks/result`."""
    EXTENSION = "extension"
    """The extension: the server decides; result and questions come with `tasks/get`."""


class TaskStatus(Enum):
    """Where a task stands."""

    WORKING = "working"
    INPUT_REQUIRED = "input_required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True where nothing will change any more."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED)


class ToolTasks(Enum):
    """What a tool says about being called as a task (2025-11-25, `execution.taskSupport`)."""

    FORBIDDEN = "forbidden"
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSupport:
    """What a server of 2025-11-25 declared about tasks."""

    cancel: bool = False
    tool_calls: bool = False

    @classmethod
    def parse(cls, capabilities: Mapping[str, object], *, version: str) -> TaskSupport:
        """Read declared capabilities. What is malformed counts as not declared."""
        tasks = as_object(capabilities.get("tasks"))
        if tasks is None or version != TASKS_VERSION:
            return cls()
        requests = as_object(tasks.get("requests")) or _NOTHING
        tools = as_object(requests.get("tools")) or _NOTHING
        return cls(
            cancel=as_object(tasks.get("cancel")) is not None,
            tool_calls=as_object(tools.get("call")) is not None,
        )


def task_request_allowed(method: str, support: TaskSupport) -> bool:
    """Return whether a server of 2025-11-25 declared what a request about tasks needs."""
    match method:
        case "tasks/get" | "tasks/result":
            return support.tool_calls
        case "tasks/cancel":
            return support.cancel
        case _:
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task as its server described it last: untrusted, and bounded.

    Attributes:
        id: the server's name for it: a handle, and on some servers all that protects it.
        owner: who alone may hear of the id.
        shape: whose messages it speaks.
        status: where it stands.
        message: what the server says about that; empty if nothing.
        poll_seconds: how long to wait before asking again, within our bounds.
        ttl_seconds: how long the server keeps it from its creation; None if it does not say.
        requests: its questions, if it needs input (the extension).
        result: what the call returned, if it is completed (the extension).
        error: what the call failed with, if it failed (the extension).
    """

    id: str = field(repr=False)
    owner: Owner = NOBODY
    shape: TaskShape
    status: TaskStatus
    message: str = ""
    poll_seconds: float
    ttl_seconds: float | None = None
    requests: Mapping[str, InputRequest] = field(
        default_factory=dict[str, InputRequest], hash=False
    )
    result: Mapping[str, object] | None = field(default=None, hash=False, repr=False)
    error: PeerError | None = field(default=None, hash=False, repr=False)

    @property
    def server(self) -> str:
        """The host's label of the server."""
        return self.owner.server


class TaskCreatedError(McpError):
    """The server made a task of a call, and whoever called gave leave for one frame only.

    Attributes:
        task: what to poll.
    """

    def __init__(self, task: Task, *, server: str = "") -> None:
        super().__init__(
            "the server made a task of the call",
            server=server,
            stage="receive",
            delivery=Delivery.ANSWERED,
        )
        self.task = task


def read_task(
    result: object,
    shape: TaskShape,
    limits: ClientLimits,
    bounds: ModernLimits,
    *,
    owner: Owner = NOBODY,
    expected: str = "",
) -> Task:
    """Read a task. Raises RemoteProtocolError if it is malformed, or not the one that was expected.

    Args:
        result: the result that holds it, as decoded.
        shape: whose messages it speaks.
        limits: the bounds of the connection.
        bounds: those of tasks.
        owner: whose task it is.
        expected: the id that it must have; empty for a new one.
    """
    server = owner.server
    members = as_object(result) or _NOTHING
    if shape is TaskShape.CORE:
        members = as_object(members.get("task", members)) or _NOTHING
    task_id, message = members.get("taskId"), members.get("statusMessage")
    if not isinstance(task_id, str) or not task_id or len(task_id) > bounds.task_id_chars_max:
        raise _broken("a task has an id within bounds", server)
    if expected and task_id != expected:
        raise _broken("the server answered about another task", server)
    try:
        status = TaskStatus(members.get("status"))
    except ValueError:
        raise _broken("a task is in a state that is not known", server) from None
    in_core = shape is TaskShape.CORE
    ttl = members.get("ttl" if in_core else "ttlMs")
    wait = members.get("pollInterval" if in_core else "pollIntervalMs")
    task = Task(
        id=task_id,
        owner=owner,
        shape=shape,
        status=status,
        message=cut_text(message, limits.peer_message_chars_max)
        if isinstance(message, str)
        else "",
        poll_seconds=poll_seconds(wait, bounds),
        ttl_seconds=min(ttl, _TTL_MAX) / 1000 if type(ttl) is int and ttl >= 0 else None,
    )
    return task if in_core else _with_details(task, members, limits, bounds, server)


def poll_seconds(milliseconds: object, bounds: ModernLimits) -> float:
    """Return how long to wait before asking again, whatever a server says."""
    if type(milliseconds) is not int:
        return bounds.task_poll_seconds
    # compared before dividing: a server may name a number that no float holds
    most = int(bounds.task_poll_seconds_max * 1000)
    return max(bounds.task_poll_seconds_min, min(milliseconds, most) / 1000)


def read_tool_tasks(definition: Mapping[str, object]) -> ToolTasks:
    """Return what a tool's definition says; what is malformed counts as forbidden."""
    execution = as_object(definition.get("execution")) or _NOTHING
    try:
        return ToolTasks(execution.get("taskSupport"))
    except ValueError:
        return ToolTasks.FORBIDDEN


def _with_details(
    task: Task,
    members: Mapping[str, object],
    limits: ClientLimits,
    bounds: ModernLimits,
    server: str,
) -> Task:
    """Add what the extension sends along with a state; the first answer of a call has none of it."""
    requests: Mapping[str, InputRequest] = {}
    result: Mapping[str, object] | None = None
    error: PeerError | None = None
    if task.status is TaskStatus.INPUT_REQUIRED and "inputRequests" in members:
        requests = read_input_requests(members["inputRequests"], bounds, server=server)
    if task.status is TaskStatus.COMPLETED:
        result = as_object(members.get("result"))
    if task.status is TaskStatus.FAILED:
        error = _read_error(members.get("error"), limits, server)
    return replace(task, requests=requests, result=result, error=error)


def _read_error(value: object, limits: ClientLimits, server: str) -> PeerError | None:
    members = as_object(value) or _NOTHING
    code, message = members.get("code"), members.get("message")
    if type(code) is not int or not isinstance(message, str):
        return None
    return PeerError(
        code=code,
        peer_message=cut_text(message, limits.peer_message_chars_max),
        data=members.get("data"),
        server=server,
    )


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
