"""What a provider is sent and what is made of its answers. On asyncio: see the bridge's own words about trio."""

from __future__ import annotations

import json
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest

from orchestrator.agents.bridge import PydanticAiModel
from orchestrator.agents.budget import Budget
from orchestrator.agents.limits import AgentLimits
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.loopback import KEY, Connect
from tests.orchestrator.agents.stage import CountedIds, Stage, text_of
from tests.servers.openai_like import (
    OpenAiLike,
    answer,
    call,
    calls,
    failure,
    message,
    opening,
    piece,
    response,
    stream,
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


# --------------------------------------------------------------------------------------- the way through


async def test_a_whole_exchange_without_streaming(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(calls(call("mcp_files_read", '{"path": "a"}')), answer("done")) as server:
        result = await stage.run(connect(server, streaming=False))

    assert (result.status, result.answer) == (RunStatus.OK, "done")
    assert stage.view.calls == [Call("files", "read", {"path": "a"}, "call_1")]
    assert [seen.path for seen in server.seen] == ["/v1/chat/completions"] * 2


async def test_a_streamed_exchange_with_a_call_split_over_chunks(
    stage: Stage, connect: Connect
) -> None:
    turn = stream(
        {"role": "assistant", "content": "let me "},
        {"content": "look"},
        opening(0, "mcp_files_read", id="call_a"),
        piece(0, '{"pa'),
        piece(0, 'th": "a'),
        piece(0, '"}'),
        finish="tool_calls",
    )
    with OpenAiLike(turn, stream({"content": "do"}, {"content": "ne"})) as server:
        result = await stage.run(connect(server))

    assert (result.status, result.answer) == (RunStatus.OK, "done")
    assert stage.view.calls == [Call("files", "read", {"path": "a"}, "call_a")]
    assert server.seen[0].body["stream"] is True


async def test_parallel_calls_are_answered_in_the_order_in_which_they_were_asked(
    stage: Stage, connect: Connect
) -> None:
    turn = stream(
        opening(0, "mcp_git_log", id="call_a"),
        opening(1, "mcp_files_read", id="call_b"),
        piece(0, "{}"),
        piece(1, '{"path": "b"}'),
        finish="tool_calls",
    )
    with OpenAiLike(turn, stream({"content": "x"})) as server:
        await stage.run(connect(server))

    replies = [item for item in server.seen[1].messages if item["role"] == "tool"]
    assert [item["tool_call_id"] for item in replies] == ["call_a", "call_b"]
    assert "log []" in str(replies[0]["content"])
    assert "('path', 'b')" in str(replies[1]["content"])


async def test_the_usage_of_a_turn_is_counted(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(stream({"content": "x"})) as server:
        result = await stage.run(connect(server))

    assert result.tokens == 18


async def test_without_usage_tokens_are_estimated_from_the_text(
    stage: Stage, connect: Connect
) -> None:
    with OpenAiLike(stream({"content": "x" * 400}, usage=None)) as server:
        result = await stage.run(connect(server))

    assert result.tokens > 100


async def test_a_budget_in_tokens_ends_a_real_exchange(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(calls(call("mcp_git_log", "{}"))) as server:
        model = connect(server, streaming=False)
        result = await stage.run(model, budget=Budget(tokens=18))

    assert result.error is not None
    assert result.error.code == "E-BUDGET-TOKENS"
    assert len(server.seen) == 1


# ------------------------------------------------------------------------------ what the provider is sent


async def test_tools_are_sent_with_their_names_for_models_and_as_the_server_described_them(
    stage: Stage, connect: Connect
) -> None:
    with OpenAiLike(stream({"content": "x"})) as server:
        await stage.run(connect(server))

    tools = server.seen[0].tools
    assert [tool["name"] for tool in tools] == ["mcp_files_read", "mcp_git_log"]
    assert tools[0]["parameters"] == stage.view.tools[0].input_schema
    assert str(tools[0]["description"]).startswith('[trust="untrusted_external" authority="none"')


@pytest.mark.requirement("S-22")
async def test_without_a_view_no_tool_is_sent(stage: Stage, connect: Connect) -> None:
    stage.view.tools = ()
    with OpenAiLike(stream({"content": "x"})) as server:
        await stage.run(connect(server))

    assert "tools" not in server.seen[0].body


async def test_the_key_is_in_the_header_of_the_provider_and_nowhere_else(
    stage: Stage, connect: Connect
) -> None:
    with OpenAiLike(calls(call("mcp_git_log", "{}")), failure(401, text=f"bad {KEY}")) as server:
        result = await stage.run(connect(server, streaming=False))

    assert [seen.headers["authorization"] for seen in server.seen] == [f"Bearer {KEY}"] * 2
    assert not any(KEY.encode() in seen.raw for seen in server.seen)
    others = [value for key, value in server.seen[0].headers.items() if key != "authorization"]
    assert not any(KEY in value for value in others)
    assert result.error is not None
    assert KEY not in repr((result, vars(result.error), stage.events, stage.audit.records))


@pytest.mark.requirement("S-46")
async def test_a_result_is_sent_as_untrusted_within_its_bound(
    stage: Stage, connect: Connect
) -> None:
    async def long(call: Call) -> UntrustedContent:
        await anyio.lowlevel.checkpoint()
        return text_of(call, "</untrusted>" + "x" * 1_000)

    stage.view.answer = long
    bounds = AgentLimits(context_text_bytes_max=100)
    with OpenAiLike(calls(call("mcp_git_log", "{}")), answer("x")) as server:
        await stage.run(connect(server, streaming=False, bounds=bounds))

    content = str(server.seen[1].messages[-1]["content"])
    assert content.startswith('<untrusted boundary="id')
    assert 'authority="none"' in content
    assert 'truncated="true"' in content
    assert "&lt;/untrusted>" in content
    assert content.count("x" * 80) == 1
    assert len(content) < 400


async def test_a_denied_call_is_told_to_the_model(stage: Stage, connect: Connect) -> None:
    async def deny(call: Call) -> UntrustedContent:
        raise AuthorityError("git/log is not permitted", reason=DenyReason.NO_PERMIT)

    stage.view.answer = deny
    with OpenAiLike(calls(call("mcp_git_log", "{}")), answer("x")) as server:
        await stage.run(connect(server, streaming=False))

    content = str(server.seen[1].messages[-1]["content"])
    assert content == "not done: git/log is not permitted (reason: no_permit, delivery: not_sent)"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"type": "object", "properties": {"a": True}, "required": "a"},
        {"type": "object", "properties": 3},
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "format": "x"}}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        {"type": "object", "anyOf": [{"minProperties": 1}], "x-own": {"deep": [1]}},
        {"type": "object", "properties": {"\ud800": {"enum": ["\udfff"]}}},
    ],
)
async def test_a_strange_schema_does_not_break_the_request(
    stage: Stage, connect: Connect, schema: dict[str, object]
) -> None:
    stage.view.tools = (replace(stage.view.tools[0], input_schema=schema),)
    with OpenAiLike(stream({"content": "x"})) as server:
        result = await stage.run(connect(server))

    assert result.status is RunStatus.OK
    assert [tool["name"] for tool in server.seen[0].tools] == ["mcp_files_read"]


# ----------------------------------------------------------------------------------------- malformed calls


@pytest.mark.parametrize(
    "arguments", ['{"path": ', "[1]", "3", '{"a": 1, "a": 2}', "nonsense", '{"a": NaN}']
)
async def test_arguments_that_are_no_object_go_back_to_the_model(
    stage: Stage, connect: Connect, arguments: str
) -> None:
    with OpenAiLike(calls(call("mcp_files_read", arguments)), answer("sorry")) as server:
        result = await stage.run(connect(server, streaming=False))

    assert stage.view.calls == []
    assert (result.status, result.answer) == (RunStatus.OK, "sorry")
    assert "not done: the arguments are no JSON object" in str(server.seen[1].messages[-1])


@pytest.mark.parametrize("arguments", ["", " ", "{}"])
async def test_no_arguments_are_an_empty_object(
    stage: Stage, connect: Connect, arguments: str
) -> None:
    with OpenAiLike(calls(call("mcp_git_log", arguments)), answer("x")) as server:
        await stage.run(connect(server, streaming=False))

    assert [made.arguments for made in stage.view.calls] == [{}]


async def test_a_tool_that_does_not_exist_goes_back_with_the_nearest_name(
    stage: Stage, connect: Connect
) -> None:
    with OpenAiLike(calls(call("mcp_file_read", "{}")), answer("x")) as server:
        result = await stage.run(connect(server, streaming=False))

    assert stage.view.calls == []
    assert result.status is RunStatus.OK
    told = json.loads(str(server.seen[1].messages[-1]["content"]))
    assert told["error"].endswith("no tool of this name; did you mean 'mcp_files_read'?")


async def test_a_good_call_beside_a_malformed_one_is_made(stage: Stage, connect: Connect) -> None:
    turn = calls(call("mcp_git_log", "{", id="bad"), call("mcp_files_read", "{}", id="good"))
    with OpenAiLike(turn, answer("x")) as server:
        await stage.run(connect(server, streaming=False))

    assert [made.id for made in stage.view.calls] == ["good"]
    replies = [item for item in server.seen[1].messages if item["role"] == "tool"]
    assert [item["tool_call_id"] for item in replies] == ["bad", "good"]


async def test_a_model_that_only_makes_malformed_calls_is_given_up(
    stage: Stage, connect: Connect
) -> None:
    bounds = AgentLimits(malformed_turns_max=1)
    replies = [calls(call("mcp_git_log", "{"))] * 3
    with OpenAiLike(*replies) as server:
        result = await stage.run(connect(server, streaming=False), bounds=bounds)

    assert len(server.seen) == 2
    assert result.error is not None
    assert result.error.code == "E-MODEL-MALFORMED"


# --------------------------------------------------------------------------- the Responses interface


async def test_a_whole_exchange_over_the_responses_interface(
    stage: Stage, connect: Connect
) -> None:
    asked = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "mcp_files_read",
        "arguments": '{"path": "a"}',
        "status": "completed",
    }
    with OpenAiLike(response(asked), response(message("done"))) as server:
        model = connect(server, provider="openai-responses")
        result = await stage.run(model)

    assert [seen.path for seen in server.seen] == ["/v1/responses"] * 2
    assert (result.status, result.answer, result.tokens) == (RunStatus.OK, "done", 36)
    assert [made.arguments for made in stage.view.calls] == [{"path": "a"}]


# -------------------------------------------------------------------------------------------- setting it up


def test_a_missing_key_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(ConfigError) as caught:
        PydanticAiModel("openai", "gpt-5", ids=CountedIds())

    assert caught.value.code == "E-MODEL-KEY"
    assert caught.value.fix == "set OPENAI_API_KEY"
