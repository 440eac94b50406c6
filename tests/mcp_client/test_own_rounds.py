"""A program that sends each frame under leave of its own goes from round to round by itself."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    Client,
    Dialect,
    Handlers,
    InputRequired,
    Opening,
    RemoteProtocolError,
    Root,
    Task,
    UndeclaredInputError,
    connect,
)
from mcp_client.client.rounds import answer_inputs, read_outcome
from mcp_client.protocol.jsonrpc import encode
from mcp_client.protocol.modern.extensions import TASKS
from mcp_client.protocol.modern.mrtr import retry_params
from mcp_client.testing import ModernServer, RecordingGuard, text_result

PARAMS = encode({"arguments": {}, "name": "t"})
QUESTION: Mapping[str, object] = {
    "resultType": "input_required",
    "inputRequests": {"r": {"method": "roots/list"}},
    "requestState": "s",
}
WORKING: Mapping[str, object] = {
    "taskId": "t1",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttlMs": None,
    "pollIntervalMs": 1,
}


class RevokedError(Exception):
    """What a guard raises whose leave is gone."""


def answering(*results: Mapping[str, object]) -> ModernServer:
    server = ModernServer(capabilities={"tools": {}, "extensions": {TASKS: {}}})
    left = [*results]
    server.on("tools/call", lambda request: request.answer(left.pop(0)))
    server.on(
        "tasks/get",
        lambda request: request.answer(
            {**WORKING, "status": "completed", "result": text_result("done")}
        ),
    )
    return server


@asynccontextmanager
async def connected(server: ModernServer, *, roots: bool = True) -> AsyncGenerator[Client]:
    handlers = Handlers(roots=(Root("file:///a"),) if roots else None)
    dialect = Dialect(opening=Opening.MODERN, tasks=True)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, handlers=handlers, dialect=dialect) as client:
            yield client


async def sent(client: Client, params: bytes, guard: RecordingGuard) -> object:
    return await client.session.start("tools/call", params, guard=guard).wait()


@pytest.mark.requirement("C-31", "C-33", "I15")
async def test_every_round_goes_out_under_a_leave_of_its_own() -> None:
    server = answering(QUESTION, text_result("done"))
    first, second = RecordingGuard(), RecordingGuard()
    async with connected(server) as client:
        session = client.session
        required = read_outcome(session, "tools/call", PARAMS, await sent(client, PARAMS, first))
        assert isinstance(required, InputRequired)
        answers = await answer_inputs(session, required.requests, required.declared)
        params = retry_params(required, answers, session.limits)
        outcome = read_outcome(
            session, "tools/call", params, await sent(client, params, second), before=required
        )

    assert (first.spent, second.spent, required.round) == (1, 1, 1)
    assert outcome == {"resultType": "complete", **text_result("done")}


@pytest.mark.requirement("C-33", "I15")
async def test_once_the_leave_is_gone_no_further_round_goes_out() -> None:
    server = answering(QUESTION, text_result("done"))
    async with connected(server) as client:
        result = await sent(client, PARAMS, RecordingGuard())
        required = read_outcome(client.session, "tools/call", PARAMS, result)
        assert isinstance(required, InputRequired)
        answers = await client.answer_inputs(required)
        with pytest.raises(RevokedError):
            await client.continue_call(required, answers, guard=RecordingGuard(RevokedError()))

    assert len(server.requests("tools/call")) == 1


@pytest.mark.requirement("C-31")
async def test_the_rounds_are_counted_for_whoever_bounds_them() -> None:
    server = answering(QUESTION, QUESTION)
    async with connected(server) as client:
        before: InputRequired | None = None
        for _ in range(2):
            result = await sent(client, PARAMS, RecordingGuard())
            outcome = read_outcome(client.session, "tools/call", PARAMS, result, before=before)
            assert isinstance(outcome, InputRequired)
            before = outcome

    assert before is not None
    assert (before.round, before.params) == (2, PARAMS)


@pytest.mark.requirement("K-2")
async def test_a_task_is_asked_after_under_a_leave_of_its_own() -> None:
    server = answering({"resultType": "task", **WORKING})
    guard = RecordingGuard()
    async with connected(server) as client:
        result = await sent(client, PARAMS, RecordingGuard())
        task = read_outcome(client.session, "tools/call", PARAMS, result)
        assert isinstance(task, Task)
        task = await client.get_task(task, guard=guard)
        done = await client.task_result(task)

    assert (done.text, guard.spent) == ("done", 1)


@pytest.mark.requirement("C-33")
async def test_a_question_that_was_not_declared_is_no_question() -> None:
    server = answering(QUESTION)
    async with connected(server, roots=False) as client:
        result = await sent(client, PARAMS, RecordingGuard())
        with pytest.raises(UndeclaredInputError):
            read_outcome(client.session, "tools/call", PARAMS, result)


@pytest.mark.requirement("C-30")
async def test_a_method_that_cannot_have_questions_has_none() -> None:
    async with connected(answering()) as client:
        with pytest.raises(RemoteProtocolError):
            read_outcome(client.session, "tools/list", b"{}", QUESTION)
