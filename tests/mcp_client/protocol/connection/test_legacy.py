from __future__ import annotations

import importlib.metadata
from collections.abc import Callable

import pytest

from mcp_client.protocol.connection.legacy import (
    INITIALIZE_ID,
    TRANSITIONS,
    ClientConnection,
    ConnectionState,
    Step,
)
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import (
    HandshakeError,
    LocalProtocolError,
    UnsupportedVersionError,
)
from mcp_client.protocol.events import (
    Event,
    HandshakeFailed,
    InitializeAnswered,
    NotificationReceived,
    PeerViolation,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.versions import CLIENT_VERSION, SUPPORTED_VERSIONS

LIMITS = ClientLimits()
ALL_CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}


def answer(
    version: object = "2025-11-25", capabilities: object = ALL_CAPABILITIES, **more: object
) -> bytes:
    result = {"protocolVersion": version, "capabilities": capabilities, **more}
    return encode({"jsonrpc": "2.0", "id": INITIALIZE_ID, "result": result})


def ready(version: str = "2025-11-25", capabilities: object = ALL_CAPABILITIES) -> ClientConnection:
    connection = ClientConnection(LIMITS, server="s")
    connection.frame_initialize()
    connection.receive(answer(version, capabilities))
    return connection


def only(events: tuple[Event, ...]) -> Event:
    assert len(events) == 1
    return events[0]


# ----------------------------------------------------------------------------------------- states


def reach(state: ConnectionState) -> ClientConnection:
    connection = ClientConnection(LIMITS)
    if state is not ConnectionState.NEW:
        connection.frame_initialize()
    if state is ConnectionState.READY:
        connection.receive(answer())
    if state is ConnectionState.CLOSED:
        connection.close()
    return connection


ASKED: dict[Step, Callable[[ClientConnection], object]] = {
    Step.INITIALIZE: lambda c: c.frame_initialize(),
    Step.ANNOUNCE: lambda c: c.frame_initialized(),
    Step.REQUEST: lambda c: c.frame_request("ping", b"{}"),
    Step.CANCEL: lambda c: c.frame_cancelled(1),
    Step.NOTIFY: lambda c: c.frame_notification("notifications/roots/list_changed"),
    Step.ANSWER: lambda c: c.frame_answer(1, {}),
    Step.CLOSE: lambda c: c.close(),
}


@pytest.mark.requirement("L-2")
@pytest.mark.parametrize("state", ConnectionState)
@pytest.mark.parametrize("step", ASKED)
def test_what_the_table_has_not_is_an_error_and_changes_nothing(
    state: ConnectionState, step: Step
) -> None:
    connection = reach(state)
    following = TRANSITIONS.get((state, step))

    if following is None:
        with pytest.raises(LocalProtocolError):
            ASKED[step](connection)
    else:
        ASKED[step](connection)

    assert connection.state is (following or state)


@pytest.mark.parametrize("state", [ConnectionState.NEW, ConnectionState.CLOSED])
def test_nothing_is_taken_before_the_beginning_or_after_the_end(state: ConnectionState) -> None:
    assert reach(state).receive(b'{"jsonrpc":"2.0","id":1,"result":{}}') == ()


# -------------------------------------------------------------------------------------- handshake


@pytest.mark.requirement("L-1")
@pytest.mark.requirement("S-2")
def test_the_first_request_is_initialize_at_the_newest_version() -> None:
    request = ClientConnection(LIMITS).frame_initialize()
    request_id, frame = request.request_id, request.frame

    assert decode(frame, LIMITS) == {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "remit", "version": CLIENT_VERSION},
        },
    }


@pytest.mark.requirement("L-4")
def test_nothing_is_declared_that_the_version_asked_for_does_not_know() -> None:
    declared = ClientCapabilities(
        roots=True, sampling=True, sampling_tools=True, elicitation_form=True, elicitation_url=True
    )

    frame = ClientConnection(LIMITS, declared=declared).frame_initialize(("2024-11-05",)).frame

    params = as_object((as_object(decode(frame, LIMITS)) or {})["params"]) or {}
    assert params["capabilities"] == {"roots": {"listChanged": True}, "sampling": {}}


def test_the_client_names_the_version_of_its_distribution() -> None:
    assert importlib.metadata.version("remit") == CLIENT_VERSION


@pytest.mark.requirement("S-2")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_each_supported_version_is_taken_when_the_server_answers_with_it(version: str) -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(answer(version)))

    assert isinstance(event, InitializeAnswered)
    assert connection.protocol_version == version
    assert connection.state is ConnectionState.READY


def test_the_table_of_versions_is_the_one_that_the_tests_go_through() -> None:
    assert SUPPORTED_VERSIONS == ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


@pytest.mark.requirement("L-3")
@pytest.mark.requirement("S-42")
@pytest.mark.parametrize("version", ["2027-01-01", "2024-10-07", "1.0", "", "x" * 10_000])
def test_any_other_version_ends_the_connection(version: str) -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(answer(version)))

    assert isinstance(event, HandshakeFailed)
    assert isinstance(event.error, UnsupportedVersionError)
    assert event.error.offered[:10] == version[:10]
    assert len(event.error.offered) <= LIMITS.name_chars_max
    assert connection.state is ConnectionState.CLOSED


@pytest.mark.parametrize(
    "frame",
    [
        encode({"jsonrpc": "2.0", "id": 1, "result": []}),
        encode({"jsonrpc": "2.0", "id": 1, "result": {"capabilities": {}}}),
        answer(version=20251125),
        answer(capabilities=None),
        answer(capabilities=[]),
        encode({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "s3cr3t"}}),
        encode({"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}),
        encode({"jsonrpc": "2.0", "id": 1}),
    ],
)
def test_an_answer_to_initialize_that_cannot_be_used_ends_the_connection(frame: bytes) -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(frame))

    assert isinstance(event, HandshakeFailed)
    assert isinstance(event.error, HandshakeError)
    assert "s3cr3t" not in str(event.error)
    assert connection.state is ConnectionState.CLOSED


@pytest.mark.requirement("J-9")
def test_unknown_members_of_the_answer_do_no_harm() -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(answer(capabilities={"future": [1]}, novel={"a": 1})))

    assert isinstance(event, InitializeAnswered)


@pytest.mark.requirement("L-8")
def test_what_the_server_says_of_itself_is_kept_within_bounds() -> None:
    limits = ClientLimits(name_chars_max=10, instructions_chars_max=20)
    connection = ClientConnection(limits)
    connection.frame_initialize()

    connection.receive(answer(serverInfo={"name": "n" * 11, "version": 3}, instructions="i" * 21))

    assert len(connection.server_info.name) == 10
    assert connection.server_info.version == ""
    assert len(connection.instructions) == 20
    assert connection.instructions.endswith("cut]")


@pytest.mark.requirement("F-53")
def test_a_ping_during_the_handshake_is_an_event_and_can_be_answered() -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(b'{"jsonrpc":"2.0","id":"p","method":"ping"}'))

    assert isinstance(event, RequestReceived)
    assert decode(connection.frame_answer(event.request_id, {}), LIMITS) == {
        "jsonrpc": "2.0",
        "id": "p",
        "result": {},
    }


def test_an_answer_to_another_id_does_not_end_the_handshake() -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(b'{"jsonrpc":"2.0","id":"1","result":{}}'))

    assert event == ResponseReceived("1", {})
    assert connection.state is ConnectionState.INITIALIZING


# --------------------------------------------------------------------------------------- requests


def test_params_go_out_as_the_bytes_that_they_are() -> None:
    params = b'{"arguments":{"z":1,"a":"\xc3\xa9"},"name":"t"}'

    request = ready().frame_request("tools/call", params)

    request_id, frame = request.request_id, request.frame

    assert frame == b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (
        request_id,
        params,
    )


@pytest.mark.requirement("J-2")
def test_no_id_is_given_twice() -> None:
    connection = ready()

    ids = [connection.frame_request("ping", b"{}").request_id for _ in range(500)]

    assert len({INITIALIZE_ID, *ids}) == 501


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (b"{}", {"_meta": {"progressToken": 2}}),
        (b'{"name":"t"}', {"_meta": {"progressToken": 2}, "name": "t"}),
        (
            b'{"arguments":{"_meta":1},"name":"t"}',
            {"_meta": {"progressToken": 2}, "arguments": {"_meta": 1}, "name": "t"},
        ),
    ],
)
def test_a_progress_token_is_spliced_in_front_of_the_params(
    params: bytes, expected: object
) -> None:
    frame = ready().frame_request("tools/call", params, with_progress=True).frame

    assert (as_object(decode(frame, LIMITS)) or {})["params"] == expected


@pytest.mark.parametrize("params", [b'{"_meta":{},"name":"t"}', b'{"\\u005fmeta":{}}'])
def test_params_with_a_meta_of_their_own_cannot_ask_for_progress(params: bytes) -> None:
    with pytest.raises(LocalProtocolError, match="_meta"):
        ready().frame_request("tools/call", params, with_progress=True)


@pytest.mark.requirement("T-1")
@pytest.mark.parametrize("params", [b"", b"[]", b"{", b'{}\n{"jsonrpc":"2.0"}', b'{"a":\n1}', b"1"])
def test_params_that_are_no_object_on_one_line_are_refused(params: bytes) -> None:
    connection = ready()
    with pytest.raises(LocalProtocolError):
        connection.frame_request("tools/call", params)

    assert connection.last_id == INITIALIZE_ID


METHODS = [
    ("tools/list", "tools"),
    ("tools/call", "tools"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resources"),
    ("resources/read", "resources"),
    ("resources/subscribe", "resources"),
    ("prompts/list", "prompts"),
    ("prompts/get", "prompts"),
    ("completion/complete", "completions"),
    ("logging/setLevel", "logging"),
]


@pytest.mark.requirement("L-4")
@pytest.mark.parametrize(("method", "capability"), METHODS)
def test_a_method_goes_out_only_if_the_server_declared_what_it_needs(
    method: str, capability: str
) -> None:
    others = {name: value for name, value in ALL_CAPABILITIES.items() if name != capability}
    with pytest.raises(LocalProtocolError, match="declared"):
        ready(capabilities=others).frame_request(method, b"{}")

    assert ready().frame_request(method, b"{}").request_id == INITIALIZE_ID + 1


@pytest.mark.parametrize("method", ["initialize", "tools/evil", 'ping","x":"', "", "tasks/get"])
def test_a_method_that_is_in_no_table_never_goes_out(method: str) -> None:
    with pytest.raises(LocalProtocolError):
        ready().frame_request(method, b"{}")


def test_completion_needs_no_capability_at_the_version_that_has_none_for_it() -> None:
    connection = ready("2024-11-05", {})

    assert connection.frame_request("completion/complete", b"{}").frame


def test_a_cancellation_names_the_request_and_the_reason() -> None:
    assert decode(ready().frame_cancelled(7, "late"), LIMITS) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7, "reason": "late"},
    }


# --------------------------------------------------------------------------------------- messages


@pytest.mark.requirement("L-4")
@pytest.mark.requirement("S-42")
@pytest.mark.parametrize(
    ("method", "without"),
    [
        ("notifications/tools/list_changed", {"tools": {}}),
        ("notifications/tools/list_changed", {"tools": {"listChanged": "true"}}),
        ("notifications/resources/list_changed", {"resources": {"subscribe": True}}),
        ("notifications/resources/updated", {"resources": {"listChanged": True}}),
        ("notifications/prompts/list_changed", {"prompts": {"listChanged": 1}}),
        ("notifications/message", {"tools": {}}),
        ("notifications/elicitation/complete", ALL_CAPABILITIES),
        ("notifications/unknown", ALL_CAPABILITIES),
    ],
)
def test_a_notification_that_was_not_declared_is_only_a_violation(
    method: str, without: object
) -> None:
    frame = encode({"jsonrpc": "2.0", "method": method})

    event = only(ready(capabilities=without).receive(frame))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.UNDECLARED_NOTIFICATION


@pytest.mark.parametrize(
    "method",
    [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/prompts/list_changed",
        "notifications/message",
        "notifications/progress",
        "notifications/cancelled",
    ],
)
def test_a_notification_that_was_declared_is_an_event(method: str) -> None:
    event = only(ready().receive(encode({"jsonrpc": "2.0", "method": method})))

    assert event == NotificationReceived(method, {})


BATCH = (
    b'[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"method":"ping"},'
    b'{"jsonrpc":"2.0","method":"notifications/unknown"},4]'
)


@pytest.mark.requirement("J-5")
def test_a_batch_is_taken_message_by_message_at_the_version_that_has_batches() -> None:
    events = ready("2025-03-26").receive(BATCH)

    assert [type(event) for event in events] == [
        ResponseReceived,
        RequestReceived,
        PeerViolation,
        PeerViolation,
    ]


@pytest.mark.requirement("J-5")
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2024-11-05"])
def test_at_every_other_version_a_batch_is_one_violation(version: str) -> None:
    event = only(ready(version).receive(BATCH))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.BATCH


@pytest.mark.requirement("J-5")
def test_the_answer_to_initialize_cannot_come_in_a_batch() -> None:
    connection = ClientConnection(LIMITS)
    connection.frame_initialize()

    event = only(connection.receive(b"[" + answer("2025-03-26") + b"]"))

    assert isinstance(event, PeerViolation)
    assert connection.state is ConnectionState.INITIALIZING


ANSWERED: dict[str, object] = {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.parametrize("count", [0, LIMITS.batch_messages_max + 1])
def test_an_empty_batch_and_one_over_the_bound_are_violations(count: int) -> None:
    frame = encode([ANSWERED] * count)

    event = only(ready("2025-03-26").receive(frame))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.BATCH


def test_a_batch_of_the_most_messages_is_taken() -> None:
    frame = encode([ANSWERED] * LIMITS.batch_messages_max)

    assert len(ready("2025-03-26").receive(frame)) == LIMITS.batch_messages_max
