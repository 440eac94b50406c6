from __future__ import annotations

import pytest

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import LocalProtocolError, PeerError, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object, decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.meta import with_meta
from mcp_client.protocol.modern.errors import (
    HeaderMismatchError,
    MissingCapabilityError,
    VersionRefusedError,
)
from mcp_client.protocol.modern.extensions import SKILLS, TASKS, in_common, read_extensions
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import (
    RequestMeta,
    ResultType,
    capability_members,
    lowered,
    name_in,
    names_modern,
    read_discover,
    read_result_type,
    refine_error,
)

LIMITS = ClientLimits()
BOUNDS = ModernLimits()
EVERYTHING = ClientCapabilities(
    roots=True, sampling=True, sampling_tools=True, elicitation_form=True, elicitation_url=True
)


def discovered(**changes: object) -> dict[str, object]:
    return {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "public",
        **changes,
    }


# ------------------------------------------------------------------------------------ requests


@pytest.mark.requirement("L-20")
def test_a_request_says_its_version_its_capabilities_and_who_sends_it() -> None:
    meta = RequestMeta(capabilities={"roots": {}})

    params = as_object(decode(with_meta(b'{"name":"x"}', meta.members(), LIMITS), LIMITS))

    assert params is not None
    assert params["name"] == "x"
    assert params["_meta"] == {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "io.modelcontextprotocol/clientInfo": {"name": "remit", "version": "0.1.0"},
    }


def test_a_log_level_is_said_where_there_is_one() -> None:
    meta = RequestMeta(log_level=LogLevel.NOTICE)

    assert b'"io.modelcontextprotocol/logLevel":"notice"' in meta.members()


def test_the_callers_members_stay_byte_for_byte() -> None:
    params = b'{"arguments":{"x":1.50},"name":"tool"}'

    assert with_meta(params, b'"a":1', LIMITS, token=7) == (
        b'{"_meta":{"a":1,"progressToken":7},"arguments":{"x":1.50},"name":"tool"}'
    )


def test_params_without_members_become_meta_alone() -> None:
    assert with_meta(b"{}", b'"a":1', LIMITS) == b'{"_meta":{"a":1}}'


@pytest.mark.parametrize(
    "params", [b'{"_meta":{}}', rb'{"_\u006deta":{}}', b'{"a":1,"_meta":{"progressToken":1}}']
)
def test_params_with_a_meta_of_their_own_are_refused(params: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        with_meta(params, b'"a":1', LIMITS)


def test_the_letters_of_meta_further_inside_are_no_meta() -> None:
    params = b'{"arguments":{"_meta":1}}'

    assert with_meta(params, b'"a":1', LIMITS).endswith(b',"arguments":{"_meta":1}}')


def test_roots_are_declared_without_a_change_that_nobody_hears_of() -> None:
    members = capability_members(EVERYTHING, {TASKS: {}})

    assert members == {
        "roots": {},
        "sampling": {"tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "extensions": {TASKS: {}},
    }


@pytest.mark.requirement("L-28")
def test_a_request_declares_less_than_its_connection_and_never_more() -> None:
    ours = ClientCapabilities(roots=True, elicitation_form=True)

    assert lowered(ours, ClientCapabilities(roots=True)) == ClientCapabilities(roots=True)
    assert lowered(ours, EVERYTHING) == ours


# ------------------------------------------------------------------------------------- results


@pytest.mark.requirement("J-6")
def test_a_result_without_a_type_is_complete() -> None:
    assert read_result_type("tools/call", {"content": []}, {}) is ResultType.COMPLETE


@pytest.mark.requirement("J-6")
@pytest.mark.parametrize("said", ["unheard-of", "", None, 1, True, ["complete"], "Complete"])
def test_a_result_of_a_type_that_nobody_negotiated_fails_the_call(said: object) -> None:
    with pytest.raises(RemoteProtocolError):
        read_result_type("tools/call", {"resultType": said}, {TASKS: {}})


@pytest.mark.requirement("J-6")
@pytest.mark.parametrize("result", [None, [], "complete"])
def test_a_result_that_is_no_object_fails_the_call(result: object) -> None:
    with pytest.raises(RemoteProtocolError):
        read_result_type("tools/call", result, {})


@pytest.mark.requirement("C-30")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_calls_prompts_and_reads_may_need_input(method: str) -> None:
    assert read_result_type(method, {"resultType": "input_required"}, {}) is (
        ResultType.INPUT_REQUIRED
    )


@pytest.mark.requirement("C-30")
@pytest.mark.parametrize(
    "method", ["tools/list", "server/discover", "completion/complete", "tasks/get", "skills/get"]
)
def test_no_other_request_may_need_input(method: str) -> None:
    with pytest.raises(RemoteProtocolError):
        read_result_type(method, {"resultType": "input_required"}, {TASKS: {}})


@pytest.mark.requirement("K-2")
def test_a_task_is_a_result_of_calls_alone_and_only_where_both_sides_have_tasks() -> None:
    result = {"resultType": "task"}

    assert read_result_type("tools/call", result, {TASKS: {}}) is ResultType.TASK
    with pytest.raises(RemoteProtocolError):
        read_result_type("prompts/get", result, {TASKS: {}})
    with pytest.raises(RemoteProtocolError):
        read_result_type("tools/call", result, {SKILLS: {}})


# ------------------------------------------------------------------------------------ discover


@pytest.mark.requirement("L-21")
def test_a_server_says_what_it_speaks_has_and_is() -> None:
    result = discovered(
        instructions="read me",
        capabilities={"tools": {}, "extensions": {TASKS: {}}},
        _meta={"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    )

    found = read_discover(result, LIMITS, BOUNDS)

    assert found.versions == ("2026-07-28",)
    assert found.extensions == {TASKS: {}}
    assert found.instructions == "read me"
    assert found.info == {"name": "s", "version": "1"}


@pytest.mark.parametrize(
    "changes",
    [
        {"supportedVersions": None},
        {"supportedVersions": "2026-07-28"},
        {"supportedVersions": [20260728]},
        {"supportedVersions": ["x" * 257]},
        {"supportedVersions": ["2026-07-28"] * (BOUNDS.supported_versions_max + 1)},
        {"capabilities": []},
        {"resultType": "input_required"},
        {"resultType": "task"},
    ],
)
def test_a_description_that_is_none_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(RemoteProtocolError):
        read_discover(discovered(**changes), LIMITS, BOUNDS)


@pytest.mark.requirement("S-19")
def test_instructions_over_their_bound_are_cut() -> None:
    found = read_discover(discovered(instructions="x" * 20_000), LIMITS, BOUNDS)

    assert len(found.instructions) == LIMITS.instructions_chars_max


# ------------------------------------------------------------------------------------- errors


def refined(code: int, data: object) -> PeerError:
    error = PeerError(code=code, peer_message="no", data=data, server="s")
    return refine_error(error, LIMITS, BOUNDS)


@pytest.mark.requirement("J-7")
def test_a_header_mismatch_is_told_from_other_errors() -> None:
    assert isinstance(refined(-32020, None), HeaderMismatchError)


@pytest.mark.requirement("J-7")
def test_a_missing_capability_is_named() -> None:
    error = refined(-32021, {"requiredCapabilities": {"elicitation": {}}})

    assert isinstance(error, MissingCapabilityError)
    assert error.required == {"elicitation": {}}


@pytest.mark.requirement("L-22")
@pytest.mark.requirement("J-7")
def test_a_refused_version_comes_with_those_that_are_spoken() -> None:
    error = refined(-32022, {"supported": ["2026-07-28", "2025-11-25"], "requested": "x"})

    assert isinstance(error, VersionRefusedError)
    assert error.supported == ("2026-07-28", "2025-11-25")
    assert error.server == "s"


@pytest.mark.parametrize("data", [None, {}, {"supported": 1}, {"supported": [1]}, []])
def test_a_refused_version_without_others_names_none(data: object) -> None:
    error = refined(-32022, data)

    assert isinstance(error, VersionRefusedError)
    assert error.supported == ()


@pytest.mark.requirement("J-7")
def test_any_other_error_stays_what_it_was() -> None:
    assert type(refined(-32602, None)) is PeerError


# --------------------------------------------------------------------------------- extensions


@pytest.mark.requirement("L-26")
def test_only_what_both_sides_declared_is_on_with_the_servers_settings() -> None:
    theirs = read_extensions(
        {"extensions": {SKILLS: {"directoryRead": True}, "com.example/x": {}}}, BOUNDS
    )

    assert in_common({SKILLS: {}, TASKS: {}}, theirs) == {SKILLS: {"directoryRead": True}}


@pytest.mark.parametrize(
    "declared",
    [
        {"noprefix": {}},
        {"a/": {}},
        {"/x": {}},
        {"1a/x": {}},
        {"a../x": {}},
        {"com.example/x": None},
        {"com.example/x": True},
        {"com.example/" + "x" * 300: {}},
    ],
)
def test_what_is_no_extension_counts_as_not_declared(declared: object) -> None:
    assert read_extensions({"extensions": declared}, BOUNDS) == {}


@pytest.mark.parametrize("declared", [None, [], "x"])
def test_extensions_that_are_no_object_are_none(declared: object) -> None:
    assert read_extensions({"extensions": declared}, BOUNDS) == {}


def test_a_server_with_more_extensions_than_the_bound_has_none() -> None:
    names: dict[str, object] = {f"com.example/x{n}": {} for n in range(BOUNDS.extensions_max + 1)}

    assert read_extensions({"extensions": names}, BOUNDS) == {}


def test_what_a_request_says_is_in_canonical_form() -> None:
    members = RequestMeta(capabilities={"sampling": {}, "roots": {}}).members()

    assert encode(decode(b"{" + members + b"}", LIMITS)) == b"{" + members + b"}"


# ------------------------------------------------------------------------------------ eras


def error(code: int, message: str = "no", data: object = None) -> PeerError:
    return PeerError(code=code, peer_message=message, data=data)


@pytest.mark.parametrize(
    "answer",
    [
        error(-32022, data={"supported": ["2026-07-28"], "requested": "2025-11-25"}),
        error(-32022),
        error(-32020, "Missing MCP-Protocol-Version header"),
        error(-32021),
        error(-32601, "unknown method; this server speaks 2026-07-28"),
        error(-32600, data={"supported": ["2026-07-28"]}),
    ],
)
def test_what_only_a_modern_server_says_is_recognized(answer: PeerError) -> None:
    assert names_modern(answer.code, answer.peer_message, answer.data)


@pytest.mark.parametrize(
    "answer",
    [
        error(-32601, "method not found"),
        error(-32602, "unsupported version", {"supported": ["2025-06-18"]}),
        error(-32000, data=["2026-07-28"]),
        error(-32602, data={"supported": "2026-07-28"}),
        error(-32602, "x" * 5_000 + "2026-07-28"),
    ],
)
def test_what_any_server_may_say_is_not_taken_for_it(answer: PeerError) -> None:
    assert not names_modern(answer.code, answer.peer_message, answer.data)


@pytest.mark.requirement("N-2")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "t"}, "t"),
        ("prompts/get", {"name": "p"}, "p"),
        ("resources/read", {"uri": "u:"}, "u:"),
        ("tasks/get", {"taskId": "i"}, "i"),
        ("tasks/update", {"taskId": "i"}, "i"),
        ("tasks/cancel", {"taskId": "i"}, "i"),
        ("tools/list", {"name": "t"}, ""),
        ("tools/call", {"name": 1}, ""),
    ],
)
def test_a_header_says_what_a_request_is_about(
    method: str, params: dict[str, object], name: str
) -> None:
    assert name_in(method, params) == name
