"""The bridge runs on asyncio only: the provider's own library does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest

from orchestrator.agents.bridge import PydanticAiModel
from orchestrator.agents.budget import Budget
from orchestrator.agents.errors import ModelError
from orchestrator.agents.events import TurnEnded
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import AgentTask
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.stage import CountedIds, Stage, text_of
from tests.servers.openai_like import (
    OpenAiLike,
    Reply,
    answer,
    call,
    calls,
    failure,
    stream,
)

KEY = "sk-loopback-secret"
HASTY = AgentLimits(retry_seconds_min=0.0, request_seconds_max=5.0)

Connect = Callable[..., PydanticAiModel]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    def make(
        server: OpenAiLike, *, streaming: bool = True, bounds: AgentLimits = HASTY
    ) -> PydanticAiModel:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return PydanticAiModel(
            "openai", "loopback-1", ids=CountedIds(), bounds=bounds, stream=streaming
        )

    return make


def piece(index: int, arguments: str, **more: object) -> dict[str, object]:
    """One delta of a streamed tool call."""
    return {"tool_calls": [{"index": index, "function": {"arguments": arguments}, **more}]}


def opening(index: int, name: str, id: str) -> dict[str, object]:  # noqa: A002
    function = {"name": name, "arguments": ""}
    return {"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}


# --------------------------------------------------------------------------------------- the way through


async def test_a_whole_exchange_without_streaming(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(calls(call("mcp_files_read", '{"path": "a"}')), answer("done")) as server:
        result = await stage.run(connect(server, streaming=False), bounds=HASTY)

    assert (result.status, result.answer) == (RunStatus.OK, "done")
    assert stage.view.calls == [Call("files", "read", {"path": "a"}, "call_1")]
    assert [seen.path for seen in server.seen] == ["/v1/chat/completions"] * 2


async def test_a_streamed_exchange_with_a_call_split_over_chunks(
    stage: Stage, connect: Connect
) -> None:
    turn = stream(
        {"role": "assistant", "content": "let me "},
        {"content": "look"},
        opening(0, "mcp_files_read", "call_a"),
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
        opening(0, "mcp_git_log", "call_a"),
        opening(1, "mcp_files_read", "call_b"),
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


# ------------------------------------------------------------------------------------------- second attempts


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
async def test_a_transient_failure_is_tried_again(
    stage: Stage, connect: Connect, status: int, streaming: bool
) -> None:
    whole = stream({"content": "x"}) if streaming else answer("x")
    with OpenAiLike(failure(status, headers={"Retry-After": "0"}), whole) as server:
        result = await stage.run(connect(server, streaming=streaming))

    assert result.status is RunStatus.OK
    assert len(server.seen) == 2


async def test_attempts_are_bounded(stage: Stage, connect: Connect) -> None:
    bounds = AgentLimits(attempts_max=3, retry_seconds_min=0.0)
    with OpenAiLike(*[failure(500)] * 5) as server:
        result = await stage.run(connect(server, bounds=bounds))

    assert len(server.seen) == 3
    assert isinstance(result.error, ModelError)
    assert (result.error.code, result.error.status) == ("E-MODEL-UNAVAILABLE", 500)


async def test_a_longer_wait_than_the_bound_fails_at_once_and_says_how_long(
    stage: Stage, connect: Connect
) -> None:
    with OpenAiLike(failure(429, headers={"Retry-After": "31"})) as server:
        result = await stage.run(connect(server))

    assert len(server.seen) == 1
    assert isinstance(result.error, ModelError)
    assert (result.error.code, result.error.retry_after) == ("E-MODEL-RATE-LIMITED", 31.0)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "E-MODEL-REJECTED"),
        (401, "E-MODEL-AUTH"),
        (403, "E-MODEL-AUTH"),
        (404, "E-MODEL-NOT-FOUND"),
        (402, "E-MODEL-QUOTA"),
    ],
)
async def test_what_would_fail_again_is_not_tried_again(
    stage: Stage, connect: Connect, status: int, code: str
) -> None:
    with OpenAiLike(failure(status, text="the provider's own words")) as server:
        result = await stage.run(connect(server))

    assert len(server.seen) == 1
    assert result.error is not None
    assert result.error.code == code
    assert "own words" not in repr(vars(result.error))


async def test_a_redirect_is_not_followed(stage: Stage, connect: Connect) -> None:
    with OpenAiLike() as other:
        away = Reply(status=307, headers={"Location": f"{other.url}/chat/completions"})
        with OpenAiLike(away) as server:
            result = await stage.run(connect(server))

    assert result.status is RunStatus.FAILED
    assert other.seen == []


async def test_no_server_at_all_is_an_error_of_ours(stage: Stage, connect: Connect) -> None:
    with OpenAiLike() as server:
        model = connect(server)

    result = await stage.run(model)

    assert result.error is not None
    assert result.error.code == "E-MODEL-CONNECTION"


async def test_a_revoked_agent_makes_no_second_attempt(stage: Stage, connect: Connect) -> None:
    with OpenAiLike(failure(500), answer("x")) as server:

        def open_until_the_first_request() -> None:
            if server.seen:
                raise AuthorityError("over", reason=DenyReason.AGENT_CANCELLED)

        stage.gate = open_until_the_first_request
        result = await stage.run(connect(server))

    assert len(server.seen) == 1
    assert result.status is RunStatus.CANCELLED


async def test_a_revoked_agent_makes_no_request(stage: Stage, connect: Connect) -> None:
    def closed() -> None:
        raise AuthorityError("over", reason=DenyReason.PARENT_CLOSED)

    stage.gate = closed
    with OpenAiLike(answer("x")) as server:
        result = await stage.run(connect(server))

    assert server.seen == []
    assert result.status is RunStatus.CANCELLED


async def test_a_request_that_is_cancelled_ends_and_leaves_no_connection(
    stage: Stage, connect: Connect
) -> None:
    hold = threading.Event()
    with OpenAiLike(stream({"content": "x"}, hold=hold)) as server, anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(stage.run, connect(server))
            await anyio.to_thread.run_sync(server.arrived.wait, 5)
            group.cancel_scope.cancel()
        hold.set()

    assert len(server.seen) == 1
    assert stage.told(TurnEnded) == []


# ------------------------------------------------------------------------------- answers that are not whole


async def failed_with(stage: Stage, model: PydanticAiModel) -> str:
    result = await stage.run(model)
    assert result.status is RunStatus.FAILED
    assert result.error is not None
    return result.error.code


async def test_a_stream_that_breaks_off_is_an_error_and_not_asked_for_again(
    stage: Stage, connect: Connect
) -> None:
    broken = stream({"content": "half an ans"}, finish=None, usage=None, done=False, cut=True)
    with OpenAiLike(broken, stream({"content": "x"})) as server:
        code = await failed_with(stage, connect(server))

    assert code == "E-MODEL-CUT"
    assert len(server.seen) == 1


async def test_a_stream_that_just_ends_is_not_taken_for_a_whole_one(
    stage: Stage, connect: Connect
) -> None:
    ended = stream({"content": "half an ans"}, finish=None, usage=None, done=False)
    with OpenAiLike(ended) as server:
        assert await failed_with(stage, connect(server)) == "E-MODEL-CUT"


async def test_half_a_streamed_call_is_never_made(stage: Stage, connect: Connect) -> None:
    half = stream(
        opening(0, "mcp_files_read", "a"), piece(0, "{}"), finish=None, usage=None, done=False
    )
    with OpenAiLike(half) as server:
        assert await failed_with(stage, connect(server)) == "E-MODEL-CUT"

    assert stage.view.calls == []


@pytest.mark.parametrize(
    "reply",
    [
        stream(finish=None, usage=None, done=False),
        stream(finish=None, usage=None),
        stream(),
        stream({"content": "  "}),
        answer(""),
        answer(None),
    ],
)
async def test_an_empty_answer_is_an_error(stage: Stage, connect: Connect, reply: Reply) -> None:
    streaming = reply.headers["Content-Type"] == "text/event-stream"
    with OpenAiLike(reply) as server:
        assert await failed_with(stage, connect(server, streaming=streaming)) == "E-MODEL-EMPTY"


@pytest.mark.parametrize(
    ("finish", "code"), [("length", "E-MODEL-LENGTH"), ("content_filter", "E-MODEL-FILTERED")]
)
async def test_an_answer_that_was_stopped_is_an_error(
    stage: Stage, connect: Connect, finish: str, code: str
) -> None:
    with OpenAiLike(stream({"content": "half"}, finish=finish)) as server:
        assert await failed_with(stage, connect(server)) == code


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_answer_is_bounded_in_bytes(
    stage: Stage, connect: Connect, streaming: bool
) -> None:
    reply = stream({"content": "x" * 2_000}) if streaming else answer("x" * 2_000)
    size = sum(len(part) for part in reply.pieces)
    with OpenAiLike(reply, reply) as server:
        inside = await stage.run(
            connect(server, streaming=streaming, bounds=AgentLimits(response_bytes_max=size))
        )
        model = connect(
            server, streaming=streaming, bounds=AgentLimits(response_bytes_max=size - 1)
        )
        code = await failed_with(stage, model)

    assert inside.status is RunStatus.OK
    assert code == "E-MODEL-SIZE"
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    "body", [b"<html>", b"{}", b"null", json.dumps({"choices": []}).encode(), b'{"choices": [3]}']
)
async def test_an_answer_that_is_no_completion_is_an_error(
    stage: Stage, connect: Connect, body: bytes
) -> None:
    reply = Reply(headers={"Content-Type": "application/json"}, pieces=(body,))
    with OpenAiLike(reply) as server:
        code = await failed_with(stage, connect(server, streaming=False))

    assert code in ("E-MODEL-ANSWER", "E-MODEL-EMPTY", "E-MODEL-FAILED")


async def test_a_provider_that_never_answers_ends_at_the_bound(
    stage: Stage, connect: Connect
) -> None:
    hold = threading.Event()
    bounds = AgentLimits(request_seconds_max=0.05)
    with OpenAiLike(stream({"content": "x"}, hold=hold)) as server:
        code = await failed_with(stage, connect(server, bounds=bounds))
        hold.set()

    assert code == "E-MODEL-TIMEOUT"
    assert len(server.seen) == 1


# -------------------------------------------------------------------------------------------- setting it up


def test_a_missing_key_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)

    with pytest.raises(ConfigError) as caught:
        PydanticAiModel("openai", "gpt-5", ids=CountedIds())

    assert caught.value.code == "E-MODEL-KEY"
    assert caught.value.fix == "set OPENAI_API_KEY"


async def test_the_responses_interface_is_spoken_where_it_is_asked_for(
    stage: Stage, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAiLike(failure(400)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        model = PydanticAiModel("openai-responses", "loopback-1", ids=CountedIds(), bounds=HASTY)
        await stage.run(model, task=AgentTask(agent="a", prompt="p"))

    assert server.seen[0].path == "/v1/responses"
