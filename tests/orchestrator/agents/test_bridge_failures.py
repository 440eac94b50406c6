"""Attempts, ends, and answers that are not whole. On asyncio: see the bridge's own words about trio."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest

from orchestrator.agents.errors import ModelError
from orchestrator.agents.events import TurnEnded
from orchestrator.agents.limits import AgentLimits
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.outcomes import RunStatus
from tests.orchestrator.agents.loopback import Connect, failed_with
from tests.orchestrator.agents.stage import Stage
from tests.servers.openai_like import (
    OpenAiLike,
    Reply,
    answer,
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
    with OpenAiLike(stream({"content": "x"}, hold=hold)) as server, anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(stage.run, connect(server))
            await anyio.to_thread.run_sync(server.arrived.wait, 5)
            group.cancel_scope.cancel()
        hold.set()

    assert len(server.seen) == 1
    assert stage.told(TurnEnded) == []


# ------------------------------------------------------------------------------- answers that are not whole


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
        opening(0, "mcp_files_read", id="a"), piece(0, "{}"), finish=None, usage=None, done=False
    )
    with OpenAiLike(half) as server:
        assert await failed_with(stage, connect(server)) == "E-MODEL-CUT"

    assert stage.view.calls == []


@pytest.mark.parametrize(("calls", "code"), [(66, "E-MODEL-CUT"), (67, "E-MODEL-CALLS")])
async def test_a_stream_of_too_many_calls_is_given_up_before_its_end(
    stage: Stage, connect: Connect, calls: int, code: str
) -> None:
    bounds = AgentLimits(calls_per_turn_max=2)
    pieces = [opening(n, "mcp_files_read", id=str(n)) for n in range(calls)]
    with OpenAiLike(stream(*pieces, finish=None, usage=None, done=False)) as server:
        assert await failed_with(stage, connect(server, bounds=bounds)) == code

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


async def test_a_stream_of_the_responses_interface_that_just_ends_is_cut(
    stage: Stage, connect: Connect
) -> None:
    whole = response(message("half"))
    with OpenAiLike(replace(whole, pieces=whole.pieces[:-2])) as server:
        model = connect(server, provider="openai-responses")

        assert await failed_with(stage, model) == "E-MODEL-CUT"
