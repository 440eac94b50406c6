from __future__ import annotations

from typing import Any

import pytest

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.sampling import (
    ModelPreferences,
    SamplingRequest,
    SamplingResult,
    read_sampling,
    sampling_result,
)
from mcp_client.protocol.surfaces.prompts import Role
from mcp_client.protocol.texts import CUT_MARK

LIMITS = ClientLimits()
TEXT: dict[str, Any] = {"type": "text", "text": "hi"}
USE: dict[str, Any] = {"type": "tool_use", "id": "u1", "name": "t", "input": {}}
RESULT: dict[str, Any] = {"type": "tool_result", "toolUseId": "u1", "content": [TEXT]}
TOOL: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}


def user(*blocks: object) -> dict[str, object]:
    return {"role": "user", "content": blocks[0] if len(blocks) == 1 else list(blocks)}


def assistant(*blocks: object) -> dict[str, object]:
    return {"role": "assistant", "content": blocks[0] if len(blocks) == 1 else list(blocks)}


def params(*messages: object, **more: object) -> dict[str, object]:
    return {"messages": list(messages) or [user(TEXT)], "maxTokens": 5, **more}


def read(
    sent: dict[str, object], limits: ClientLimits = LIMITS, *, with_tools: bool = True
) -> SamplingRequest | str:
    return read_sampling(sent, limits, server="s", with_tools=with_tools)


def good(sent: dict[str, object], limits: ClientLimits = LIMITS) -> SamplingRequest:
    request = read(sent, limits)
    assert isinstance(request, SamplingRequest)
    return request


def test_a_request_has_what_the_server_asks_for() -> None:
    request = good(
        params(
            user(TEXT),
            systemPrompt="be kind",
            temperature=0.5,
            stopSequences=["stop"],
            includeContext="allServers",
            modelPreferences={"hints": [{"name": "m"}, {}, 7], "costPriority": 1, "x": 0},
            metadata={"a": 1},
            tools=[TOOL],
            toolChoice={"mode": "required"},
            _meta={"b": 2},
        )
    )

    assert (request.server, request.max_tokens, request.system_prompt) == ("s", 5, "be kind")
    assert (request.temperature, request.stop_sequences) == (0.5, ("stop",))
    assert request.preferences == ModelPreferences(hints=("m",), cost=1)
    assert [tool.name for tool in request.tools] == ["t"]
    assert (request.tool_choice, request.metadata, request.meta) == ("required", {"a": 1}, {"b": 2})
    assert [(each.role, each.blocks) for each in request.messages] == [(Role.USER, (TEXT,))]


@pytest.mark.requirement("S-40")
def test_a_wish_for_other_servers_context_is_a_word_and_no_more() -> None:
    request = good(params(includeContext="allServers"))

    assert request.include_context == "allServers"
    assert [each.blocks for each in request.messages] == [(TEXT,)]


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    "messages",
    [
        [user(TEXT), assistant(USE), user(RESULT), assistant(TEXT)],
        [assistant(TEXT, USE, {**USE, "id": "u2"}), user({**RESULT, "toolUseId": "u2"}, RESULT)],
    ],
)
def test_uses_of_tools_that_are_answered_in_order_are_taken(messages: list[object]) -> None:
    assert len(good(params(*messages)).messages) == len(messages)


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    "messages",
    [
        [assistant(USE)],
        [assistant(USE), user(TEXT)],
        [assistant(USE), assistant(RESULT)],
        [assistant(USE), user(RESULT, TEXT)],
        [assistant(USE), user({**RESULT, "toolUseId": "u2"})],
        [assistant(USE), assistant(TEXT), user(RESULT)],
        [assistant(USE, {**USE, "id": "u2"}), user(RESULT)],
        [assistant(USE, USE), user(RESULT)],
        [assistant(USE), user(RESULT, RESULT)],
        [user(RESULT)],
        [user(USE), user(RESULT)],
    ],
)
def test_uses_of_tools_that_are_not_answered_in_order_are_refused(messages: list[object]) -> None:
    assert isinstance(read(params(*messages)), str)


@pytest.mark.requirement("C-11")
@pytest.mark.parametrize(
    "sent",
    [
        params(tools=[TOOL]),
        params(tools=[]),
        params(toolChoice={"mode": "auto"}),
        params(assistant(USE), user(RESULT)),
    ],
)
def test_tools_that_were_not_declared_are_refused(sent: dict[str, object]) -> None:
    assert isinstance(read(sent, with_tools=False), str)


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"messages": [user(TEXT)]},
        {"messages": {}, "maxTokens": 1},
        params(maxTokens=0),
        params(maxTokens=True),
        params(maxTokens=1.5),
        params(maxTokens="1"),
        params(7),
        params({"role": "system", "content": TEXT}),
        params({"role": ["user"], "content": TEXT}),
        params({"role": "user"}),
        params(user({"type": "video"})),
        params(user({"type": "resource", "resource": {"uri": "a:b", "text": ""}})),
        params(user({"type": "image", "data": "?", "mimeType": "image/png"})),
        params(assistant({**USE, "input": []})),
        params(assistant(USE), user({**RESULT, "content": "text"})),
        params(assistant(USE), user({**RESULT, "content": [{"type": "video"}]})),
        params(systemPrompt=7),
        params(stopSequences="stop"),
        params(stopSequences=[7]),
        params(tools={}),
        params(tools=[{"name": "t"}]),
        params(tools=[TOOL, TOOL]),
    ],
)
def test_a_malformed_request_is_refused_whole_with_a_reason(sent: dict[str, object]) -> None:
    reason = read(sent)

    assert isinstance(reason, str)
    assert reason


def test_one_message_block_tool_or_token_over_the_bound_is_refused() -> None:
    limits = ClientLimits(sampling_messages_max=2, sampling_tools_max=1, sampling_tokens_max=9)
    other = {**TOOL, "name": "u"}

    assert good(params(user(TEXT, TEXT), user(TEXT), tools=[TOOL], maxTokens=9), limits)
    assert isinstance(read(params(*[user(TEXT)] * 3), limits), str)
    assert isinstance(read(params(user(TEXT, TEXT, TEXT)), limits), str)
    assert isinstance(read(params(tools=[TOOL, other]), limits), str)
    assert isinstance(read(params(maxTokens=10), limits), str)


def test_one_stop_sequence_over_the_bound_is_refused_and_one_hint_left_out() -> None:
    limits = ClientLimits(sampling_stops_max=1, sampling_hints_max=1, name_chars_max=3)
    hints = {"hints": [{"name": "a"}, {"name": "b"}]}

    request = good(params(stopSequences=["abc"], modelPreferences=hints), limits)

    assert (request.stop_sequences, request.preferences.hints) == (("abc",), ("a",))
    assert isinstance(read(params(stopSequences=["a", "b"]), limits), str)
    assert isinstance(read(params(stopSequences=["abcd"]), limits), str)


def test_a_system_prompt_over_the_bound_is_cut_and_marked() -> None:
    request = good(params(systemPrompt="x" * 21), ClientLimits(description_chars_max=20))

    assert (len(request.system_prompt), request.system_prompt.endswith(CUT_MARK)) == (20, True)


@pytest.mark.requirement("S-43")
def test_a_turn_names_no_provider_unless_the_host_says_so() -> None:
    result = sampling_result(SamplingResult(blocks=(TEXT,)), with_tools=False)

    assert result["model"] == "unspecified"


def test_a_turn_of_several_blocks_is_an_array_where_tools_were_negotiated() -> None:
    result = sampling_result(SamplingResult(blocks=(TEXT, USE)), with_tools=True)

    assert result["content"] == [TEXT, USE]


@pytest.mark.parametrize(
    ("blocks", "with_tools"),
    [
        ((), True),
        ((TEXT, TEXT), False),
        ((USE,), False),
        ((RESULT,), True),
        (({"type": "video"},), True),
        (({"type": "text"},), True),
    ],
)
def test_a_turn_that_the_server_cannot_take_is_not_sent(
    blocks: tuple[dict[str, object], ...], with_tools: bool
) -> None:
    with pytest.raises(LocalProtocolError):
        sampling_result(SamplingResult(blocks=blocks), with_tools=with_tools)
