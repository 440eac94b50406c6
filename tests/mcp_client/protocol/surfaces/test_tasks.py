from __future__ import annotations

import pytest

from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.mrtr import InputKind, InputRequest
from mcp_client.protocol.surfaces.tasks import (
    Task,
    TaskShape,
    TaskStatus,
    TaskSupport,
    ToolTasks,
    poll_seconds,
    read_task,
    read_tool_tasks,
    task_request_allowed,
)

LIMITS = ClientLimits()
BOUNDS = ModernLimits()
WHOLE: dict[str, object] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}


def core(**changes: object) -> Task:
    task = {
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 60_000,
        "pollInterval": 2_000,
        **changes,
    }
    return read_task({"task": task}, TaskShape.CORE, LIMITS, BOUNDS)


def extension(expected: str = "", /, **changes: object) -> Task:
    task = {
        "resultType": "task",
        "taskId": "t",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttlMs": None,
        "pollIntervalMs": 2_000,
        **changes,
    }
    return read_task(task, TaskShape.EXTENSION, LIMITS, BOUNDS, expected=expected)


@pytest.mark.requirement("K-1")
def test_a_task_of_2025_is_read() -> None:
    task = core(statusMessage="halfway")

    assert task == Task(
        id="t",
        shape=TaskShape.CORE,
        status=TaskStatus.WORKING,
        message="halfway",
        poll_seconds=2.0,
        ttl_seconds=60.0,
    )


def test_a_later_state_of_2025_stands_in_the_result_itself() -> None:
    result = {"taskId": "t", "status": "completed", "ttl": None}

    task = read_task(result, TaskShape.CORE, LIMITS, BOUNDS, expected="t")

    assert task.status is TaskStatus.COMPLETED
    assert task.ttl_seconds is None


@pytest.mark.requirement("K-2")
def test_a_task_of_the_extension_is_read() -> None:
    assert extension() == Task(
        id="t",
        shape=TaskShape.EXTENSION,
        status=TaskStatus.WORKING,
        poll_seconds=2.0,
        ttl_seconds=None,
    )


@pytest.mark.requirement("K-2")
def test_a_completed_task_brings_its_result() -> None:
    assert extension(status="completed", result={"content": []}).result == {"content": []}


@pytest.mark.requirement("K-2")
def test_a_failed_task_brings_its_error() -> None:
    error = extension(status="failed", error={"code": -32603, "message": "no"}).error

    assert error is not None
    assert (error.code, error.peer_message) == (-32603, "no")


@pytest.mark.parametrize("error", [None, [], {"code": "x", "message": "no"}, {"code": 1}])
def test_a_failed_task_without_a_usable_error_has_none(error: object) -> None:
    assert extension(status="failed", error=error).error is None


@pytest.mark.requirement("K-2")
def test_a_task_that_needs_input_brings_its_questions() -> None:
    task = extension(status="input_required", inputRequests={"k": {"method": "roots/list"}})

    assert task.requests == {"k": InputRequest(InputKind.ROOTS)}


@pytest.mark.parametrize(
    "changes",
    [
        {"taskId": None},
        {"taskId": ""},
        {"taskId": 1},
        {"taskId": "x" * (BOUNDS.task_id_chars_max + 1)},
        {"status": "done"},
        {"status": None},
        {"status": ["working"]},
        {"status": "input_required", "inputRequests": []},
    ],
)
def test_what_is_no_task_breaks_the_protocol(changes: dict[str, object]) -> None:
    with pytest.raises(RemoteProtocolError):
        extension(**changes)


def test_an_answer_about_another_task_breaks_the_protocol() -> None:
    with pytest.raises(RemoteProtocolError):
        extension("u")


@pytest.mark.parametrize("result", [None, [], {}, {"task": []}])
def test_what_holds_no_task_breaks_the_protocol(result: object) -> None:
    with pytest.raises(RemoteProtocolError):
        read_task(result, TaskShape.CORE, LIMITS, BOUNDS)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (2_000, 2.0),
        (0, BOUNDS.task_poll_seconds_min),
        (-5, BOUNDS.task_poll_seconds_min),
        (10**300, BOUNDS.task_poll_seconds_max),
        (None, BOUNDS.task_poll_seconds),
        ("1", BOUNDS.task_poll_seconds),
        (True, BOUNDS.task_poll_seconds),
    ],
)
def test_however_eager_or_slow_a_server_is_the_wait_has_bounds(
    said: object, seconds: float
) -> None:
    assert poll_seconds(said, BOUNDS) == seconds


def test_a_status_is_final_or_not() -> None:
    final = {status for status in TaskStatus if status.is_final}

    assert final == {TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED}


def test_a_long_message_is_cut() -> None:
    assert len(extension(statusMessage="x" * 10_000).message) == LIMITS.peer_message_chars_max


@pytest.mark.requirement("K-1")
def test_a_server_declares_what_it_makes_tasks_of() -> None:
    support = TaskSupport.parse({"tasks": WHOLE}, version="2025-11-25")

    assert support == TaskSupport(cancel=True, tool_calls=True)


@pytest.mark.requirement("K-1")
@pytest.mark.parametrize("version", ["2025-06-18", "2024-11-05", "2026-07-28"])
def test_no_other_version_has_tasks_of_2025(version: str) -> None:
    assert TaskSupport.parse({"tasks": WHOLE}, version=version) == TaskSupport()


@pytest.mark.parametrize("tasks", [None, True, [], {"requests": {"tools": {"call": True}}}])
def test_what_is_malformed_is_not_declared(tasks: object) -> None:
    assert not TaskSupport.parse({"tasks": tasks}, version="2025-11-25").tool_calls


@pytest.mark.requirement("K-1")
@pytest.mark.parametrize("said", list(ToolTasks))
def test_a_tool_says_whether_it_is_called_as_a_task(said: ToolTasks) -> None:
    assert read_tool_tasks({"execution": {"taskSupport": said.value}}) is said


@pytest.mark.parametrize("execution", [None, {}, [], {"taskSupport": 1}, {"taskSupport": "x"}])
def test_a_tool_that_says_nothing_usable_is_not_called_as_a_task(execution: object) -> None:
    assert read_tool_tasks({"execution": execution}) is ToolTasks.FORBIDDEN


@pytest.mark.requirement("K-1")
@pytest.mark.parametrize(
    ("method", "support", "allowed"),
    [
        ("tasks/get", TaskSupport(tool_calls=True), True),
        ("tasks/result", TaskSupport(tool_calls=True), True),
        ("tasks/cancel", TaskSupport(tool_calls=True), False),
        ("tasks/cancel", TaskSupport(cancel=True), True),
        ("tasks/get", TaskSupport(), False),
        ("tasks/update", TaskSupport(cancel=True, tool_calls=True), False),
        ("tasks/list", TaskSupport(cancel=True, tool_calls=True), False),
    ],
)
def test_a_server_is_asked_about_tasks_only_as_it_declared(
    method: str, support: TaskSupport, allowed: bool
) -> None:
    assert task_request_allowed(method, support) is allowed
