from __future__ import annotations

from collections.abc import Callable

import pytest

from mcp_client.protocol.connection.modern import (
    MODERN_TRANSITIONS,
    ModernConnection,
    ModernEvent,
    ModernState,
    ModernStep,
)
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    PeerViolation,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.modern.extensions import SKILLS, TASKS
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import read_discover
from mcp_client.protocol.modern.subscriptions import (
    ACKNOWLEDGED,
    SubscriptionAcknowledged,
    SubscriptionEnded,
    SubscriptionFilter,
)
from tests.mcp_client.wire_schema import faults

SCHEMA = "2026-07-28/schema.json"
LIMITS = ClientLimits()
BOUNDS = ModernLimits()
DECLARED = ClientCapabilities(roots=True, sampling=True, elicitation_form=True)
TOOLS_CHANGED = "notifications/tools/list_changed"
EVERYTHING = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
    "extensions": {TASKS: {}, SKILLS: {"directoryRead": True}},
}


def new(bounds: ModernLimits = BOUNDS, *, last_id: int = 0) -> ModernConnection:
    return ModernConnection(
        LIMITS,
        bounds,
        server="s",
        last_id=last_id,
        declares=DECLARED,
        offers={TASKS: {}, SKILLS: {}},
    )


def ready(capabilities: object = EVERYTHING, bounds: ModernLimits = BOUNDS) -> ModernConnection:
    connection = new(bounds)
    connection.frame_discover()
    result = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "instructions": "read me",
        "ttlMs": 0,
        "cacheScope": "public",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "1"}},
    }
    connection.accept(read_discover(result, LIMITS, BOUNDS), "2026-07-28")
    return connection


def message(frame: bytes) -> dict[str, object]:
    return dict(as_object(decode(frame, LIMITS)) or {})


def meta(frame: bytes) -> dict[str, object]:
    params = as_object(message(frame)["params"]) or {}
    return dict(as_object(params["_meta"]) or {})


def notice(method: str, **params: object) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def stamped(method: str, request_id: int, **params: object) -> bytes:
    stamp = {"io.modelcontextprotocol/subscriptionId": request_id}
    return notice(method, _meta=stamp, **params)


def only(events: tuple[ModernEvent, ...]) -> ModernEvent:
    assert len(events) == 1
    return events[0]


# -------------------------------------------------------------------------------------- states


def reach(state: ModernState) -> ModernConnection:
    connection = ready() if state is ModernState.READY else new()
    if state is ModernState.CLOSED:
        connection.close()
    return connection


ASKED: dict[ModernStep, Callable[[ModernConnection], object]] = {
    ModernStep.DISCOVER: lambda c: c.frame_discover(),
    ModernStep.REQUEST: lambda c: c.frame_request("tools/list", b"{}"),
    ModernStep.CANCEL: lambda c: c.frame_cancelled(1),
    ModernStep.CLOSE: lambda c: c.close(),
}


@pytest.mark.parametrize("state", ModernState)
@pytest.mark.parametrize("step", ASKED)
def test_what_the_table_has_not_is_an_error_and_changes_nothing(
    state: ModernState, step: ModernStep
) -> None:
    connection = reach(state)
    following = MODERN_TRANSITIONS.get((state, step))

    if following is None:
        with pytest.raises(LocalProtocolError):
            ASKED[step](connection)
    else:
        ASKED[step](connection)

    assert connection.state is (following or state)


def test_nothing_is_taken_after_the_end() -> None:
    assert reach(ModernState.CLOSED).receive(b'{"jsonrpc":"2.0","id":1,"result":{}}') == ()


def test_ids_go_on_from_those_that_were_given_before() -> None:
    connection = new(last_id=7)

    assert connection.frame_discover().request_id == 8
    assert connection.last_id == 8


def test_what_the_server_said_of_itself_is_kept() -> None:
    connection = ready()

    assert connection.instructions == "read me"
    assert connection.server_info.name == "n"
    assert connection.capabilities.tools_list_changed


# ------------------------------------------------------------------------------------ requests

REQUESTS: dict[str, tuple[str, dict[str, object]]] = {
    "tools/list": ("ListToolsRequest", {}),
    "tools/call": ("CallToolRequest", {"name": "t", "arguments": {}}),
    "resources/list": ("ListResourcesRequest", {"cursor": ""}),
    "resources/templates/list": ("ListResourceTemplatesRequest", {}),
    "resources/read": ("ReadResourceRequest", {"uri": "file:///a"}),
    "prompts/list": ("ListPromptsRequest", {}),
    "prompts/get": ("GetPromptRequest", {"name": "p"}),
    "completion/complete": (
        "CompleteRequest",
        {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    ),
}


@pytest.mark.requirement("L-20")
@pytest.mark.parametrize("method", REQUESTS)
def test_every_request_is_as_the_schema_has_it(method: str) -> None:
    definition, params = REQUESTS[method]

    frame = (
        ready()
        .frame_request(method, encode(params), with_progress=True, log_level=LogLevel.INFO)
        .frame
    )

    assert faults(SCHEMA, definition, message(frame)) == []
    assert faults(SCHEMA, "JSONRPCRequest", message(frame)) == []


@pytest.mark.requirement("L-21")
def test_the_question_what_a_server_speaks_is_as_the_schema_has_it() -> None:
    assert faults(SCHEMA, "DiscoverRequest", message(new().frame_discover().frame)) == []


@pytest.mark.requirement("F-40")
def test_the_request_for_notices_is_as_the_schema_has_it() -> None:
    wanted = SubscriptionFilter(tools_list_changed=True, resources=frozenset({"file:///a"}))

    frame = ready().frame_listen(wanted).frame

    assert faults(SCHEMA, "SubscriptionsListenRequest", message(frame)) == []


@pytest.mark.requirement("T-5")
def test_a_cancellation_is_as_the_schema_has_it() -> None:
    frame = ready().frame_cancelled(1, "why")

    assert faults(SCHEMA, "CancelledNotification", message(frame)) == []


def test_the_check_against_the_schema_can_fail() -> None:
    broken = message(new().frame_discover().frame)
    broken["params"] = None

    assert faults(SCHEMA, "DiscoverRequest", broken)


@pytest.mark.requirement("L-20")
def test_a_request_declares_what_its_connection_declares() -> None:
    said = meta(ready().frame_request("tools/list", b"{}").frame)

    assert said["io.modelcontextprotocol/clientCapabilities"] == {
        "roots": {},
        "sampling": {},
        "elicitation": {"form": {}},
        "extensions": {TASKS: {}, SKILLS: {}},
    }


@pytest.mark.requirement("L-28")
def test_a_request_may_declare_less_and_the_next_is_not_affected() -> None:
    connection = ready()

    lower = meta(connection.frame_request("tools/list", b"{}", declares=ClientCapabilities()).frame)
    then = meta(connection.frame_request("tools/list", b"{}").frame)

    assert lower["io.modelcontextprotocol/clientCapabilities"] == {
        "extensions": {TASKS: {}, SKILLS: {}}
    }
    assert then != lower


@pytest.mark.requirement("L-28")
def test_a_request_cannot_declare_more_than_its_connection() -> None:
    more = ClientCapabilities(elicitation_url=True, sampling_tools=True, sampling=True)

    said = meta(ready().frame_request("tools/list", b"{}", declares=more).frame)

    declared = as_object(said["io.modelcontextprotocol/clientCapabilities"]) or {}
    assert declared["sampling"] == {}
    assert "elicitation" not in declared


def test_the_token_of_progress_is_the_id() -> None:
    request = ready().frame_request("tools/list", b"{}", with_progress=True)
    request_id, frame = request.request_id, request.frame

    assert meta(frame)["progressToken"] == request_id


@pytest.mark.parametrize(
    "method",
    [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "tasks/result",
        "tasks/list",
        "no/such",
    ],
)
def test_what_this_version_no_longer_has_is_not_sent(method: str) -> None:
    with pytest.raises(LocalProtocolError):
        ready().frame_request(method, b"{}")


@pytest.mark.requirement("L-26")
@pytest.mark.parametrize(
    "method",
    [*REQUESTS, "tasks/get", "tasks/update", "tasks/cancel", "skills/list", "skills/get"],
)
def test_what_the_server_did_not_declare_is_not_sent(method: str) -> None:
    with pytest.raises(LocalProtocolError):
        ready({}).frame_request(method, b"{}")


@pytest.mark.requirement("L-26")
def test_an_extension_that_we_do_not_offer_is_off_whatever_the_server_declares() -> None:
    connection = ModernConnection(LIMITS, BOUNDS)
    connection.frame_discover()
    result = {"supportedVersions": ["2026-07-28"], "capabilities": EVERYTHING}
    connection.accept(read_discover(result, LIMITS, BOUNDS), "2026-07-28")

    assert connection.extensions == {}
    with pytest.raises(LocalProtocolError):
        connection.frame_request("tasks/get", b"{}")


@pytest.mark.parametrize("params", [b"[]", b"", b'{"a":\n1}'])
def test_params_are_one_object_on_one_line(params: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        ready().frame_request("tools/list", params)


def test_a_request_that_was_refused_uses_up_no_id() -> None:
    connection = ready()
    before = connection.last_id

    with pytest.raises(LocalProtocolError):
        connection.frame_request("tools/list", b'{"_meta":{}}')

    assert connection.last_id == before


@pytest.mark.requirement("J-6")
def test_a_result_is_checked_against_what_was_negotiated() -> None:
    ready().check_result("tools/call", {"resultType": "task"})
    with pytest.raises(RemoteProtocolError):
        ready({"tools": {}}).check_result("tools/call", {"resultType": "task"})


# ------------------------------------------------------------------------------------ receiving


def test_answers_are_answers() -> None:
    connection = ready()

    result = only(connection.receive(b'{"jsonrpc":"2.0","id":2,"result":{}}'))
    error = only(
        connection.receive(b'{"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"x"}}')
    )

    assert result == ResponseReceived(2, {})
    assert isinstance(error, ErrorReceived)


@pytest.mark.requirement("T-4")
@pytest.mark.parametrize("method", ["ping", "roots/list", "elicitation/create"])
def test_a_request_of_the_server_breaks_the_protocol_and_is_not_answered(method: str) -> None:
    frame = encode({"jsonrpc": "2.0", "id": 1, "method": method})

    event = only(ready().receive(frame))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.REQUEST


@pytest.mark.requirement("J-5")
def test_an_array_is_no_message() -> None:
    event = only(ready().receive(b'[{"jsonrpc":"2.0","id":1,"result":{}}]'))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.BATCH


def test_noise_is_noise() -> None:
    event = only(ready().receive(b"hello"))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.NOT_JSON


@pytest.mark.requirement("F-42")
@pytest.mark.parametrize(
    "method",
    [TOOLS_CHANGED, "notifications/resources/updated", "notifications/message", ACKNOWLEDGED],
)
def test_a_notice_that_nobody_asked_for_is_not_delivered(method: str) -> None:
    event = only(ready().receive(notice(method)))

    assert isinstance(event, PeerViolation)
    assert event.kind is Violation.UNDECLARED_NOTIFICATION


@pytest.mark.requirement("F-40")
def test_a_stream_is_acknowledged_then_delivers_then_ends() -> None:
    connection = ready()
    stream = connection.frame_listen(SubscriptionFilter(tools_list_changed=True)).request_id

    granted = only(
        connection.receive(stamped(ACKNOWLEDGED, stream, notifications={"toolsListChanged": True}))
    )
    told = only(connection.receive(stamped(TOOLS_CHANGED, stream)))
    ended = only(connection.receive(notice("notifications/cancelled", requestId=stream)))

    assert granted == SubscriptionAcknowledged(stream, SubscriptionFilter(tools_list_changed=True))
    assert isinstance(told, NotificationReceived)
    assert ended == SubscriptionEnded(stream)


def test_log_messages_come_once_a_request_asked_for_them() -> None:
    connection = ready()
    connection.frame_request("tools/list", b"{}", log_level=LogLevel.DEBUG)

    event = only(connection.receive(notice("notifications/message", level="info", data="x")))

    assert isinstance(event, NotificationReceived)


def test_progress_is_for_the_session_to_judge() -> None:
    event = only(ready().receive(notice("notifications/progress", progressToken=9, progress=1)))

    assert isinstance(event, NotificationReceived)


@pytest.mark.parametrize("extra", [0, 1])
def test_a_connection_has_streams_up_to_a_bound(extra: int) -> None:
    connection = ready(bounds=ModernLimits(subscriptions_max=2))
    for _ in range(1 + extra):
        connection.frame_listen(SubscriptionFilter())

    if extra:
        with pytest.raises(LocalProtocolError):
            connection.frame_listen(SubscriptionFilter())
    else:
        connection.frame_listen(SubscriptionFilter())


@pytest.mark.parametrize(
    "wanted",
    [
        SubscriptionFilter(resources=frozenset({"a:", "b:", "c:"})),
        SubscriptionFilter(resources=frozenset({"a:", "b:"}), tasks=frozenset({"t"})),
    ],
)
def test_a_stream_is_about_things_up_to_a_bound(wanted: SubscriptionFilter) -> None:
    connection = ready(bounds=ModernLimits(subscribed_resources_max=2))

    with pytest.raises(LocalProtocolError):
        connection.frame_listen(wanted)
