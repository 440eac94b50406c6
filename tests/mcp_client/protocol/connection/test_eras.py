"""What the connection with a handshake makes of servers that have none, and of extensions."""

from __future__ import annotations

import pytest

from mcp_client.protocol.connection.legacy import ClientConnection, ConnectionState
from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.events import (
    HandshakeFailed,
    InitializeAnswered,
    NotificationReceived,
    PeerViolation,
)
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.modern.errors import ModernServerError
from mcp_client.protocol.modern.extensions import SKILLS, TASKS

LIMITS = ClientLimits()


def answered(message: dict[str, object], connection: ClientConnection) -> object:
    """What the connection makes of an answer to its `initialize`."""
    request_id = connection.frame_initialize().request_id
    (event,) = connection.receive(encode({"jsonrpc": "2.0", "id": request_id, **message}))
    return event


def result(version: str, capabilities: dict[str, object]) -> dict[str, object]:
    return {"result": {"protocolVersion": version, "capabilities": capabilities}}


def shaken(capabilities: dict[str, object], version: str = "2025-11-25") -> ClientConnection:
    connection = ClientConnection(LIMITS, offers={SKILLS: {}})
    assert isinstance(answered(result(version, capabilities), connection), InitializeAnswered)
    return connection


def test_an_error_that_names_a_version_without_a_handshake_is_told_apart() -> None:
    connection = ClientConnection(LIMITS)

    event = answered({"error": {"code": -32601, "message": "only 2026-07-28"}}, connection)

    assert isinstance(event, HandshakeFailed)
    assert isinstance(event.error, ModernServerError)
    assert not event.error.accepted
    assert connection.state is ConnectionState.CLOSED


def test_a_result_that_names_a_version_without_a_handshake_may_still_be_completed() -> None:
    connection = ClientConnection(LIMITS)

    event = answered(result("2026-07-28", {"tools": {}}), connection)

    assert isinstance(event, HandshakeFailed)
    assert isinstance(event.error, ModernServerError)
    assert event.error.accepted
    assert b"notifications/initialized" in connection.frame_initialized()


def test_nothing_of_such_a_result_is_used() -> None:
    connection = ClientConnection(LIMITS)

    answered(result("2026-07-28", {"tools": {}}), connection)

    with pytest.raises(LocalProtocolError):
        connection.frame_request("tools/list", b"{}")


def test_ids_go_on_from_those_that_were_given_before() -> None:
    connection = ClientConnection(LIMITS, last_id=3)

    assert connection.frame_initialize().request_id == 4
    assert connection.last_id == 4


@pytest.mark.requirement("L-26")
def test_extensions_that_are_on_are_declared_and_no_others() -> None:
    plain = ClientConnection(LIMITS).frame_initialize().frame
    offering = ClientConnection(LIMITS, offers={SKILLS: {}}).frame_initialize().frame

    declared = [
        as_object(
            (as_object((as_object(decode(frame, LIMITS)) or {})["params"]) or {})["capabilities"]
        )
        for frame in (plain, offering)
    ]
    assert declared == [{}, {"extensions": {SKILLS: {}}}]


@pytest.mark.requirement("L-26")
def test_an_extension_that_both_sides_have_is_on() -> None:
    both: dict[str, object] = {"extensions": {SKILLS: {}, TASKS: {}}}
    connection = shaken(both)

    assert connection.extensions == {SKILLS: {}}
    assert connection.frame_request("skills/list", b"{}")
    with pytest.raises(LocalProtocolError):
        connection.frame_request("tasks/update", b"{}")


@pytest.mark.requirement("K-1")
def test_tasks_are_asked_about_as_the_server_declared_them() -> None:
    tasks: dict[str, object] = {"tasks": {"requests": {"tools": {"call": {}}}}}
    connection = shaken(tasks)

    assert connection.frame_request("tasks/get", b"{}")
    with pytest.raises(LocalProtocolError):
        connection.frame_request("tasks/cancel", b"{}")


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ({"tasks": {"requests": {"tools": {"call": {}}}}}, NotificationReceived),
        ({"tasks": {"cancel": {}}}, PeerViolation),
        ({}, PeerViolation),
    ],
)
def test_the_status_of_a_task_may_be_told_where_calls_become_tasks(
    declared: dict[str, object], kind: type[object]
) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {"taskId": "t"}}

    (event,) = shaken(declared).receive(encode(notice))

    assert isinstance(event, kind)


@pytest.mark.requirement("K-1")
def test_an_older_version_has_no_tasks_whatever_it_declares() -> None:
    tasks: dict[str, object] = {"tasks": {"requests": {"tools": {"call": {}}}}}

    with pytest.raises(LocalProtocolError):
        shaken(tasks, "2025-06-18").frame_request("tasks/get", b"{}")
