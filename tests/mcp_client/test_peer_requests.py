"""What a server asks of the client: answered, refused, handed on, taken back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_client import (
    CANCEL,
    DECLINE,
    ClientLimits,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    Handlers,
    LocalProtocolError,
    Root,
    SamplingRefused,
    SamplingRequest,
    SamplingResult,
)
from mcp_client.protocol.events import Violation
from mcp_client.protocol.peer.requests import ServerRequest
from mcp_client.testing import RecordingGuard, ScriptedServer
from tests.mcp_client.kit import RefusalError
from tests.mcp_client.peer_kit import (
    ELICIT,
    FORM,
    SAMPLE,
    TURN,
    URL,
    Waiting,
    accept,
    answer_to,
    answers,
    connected,
)


async def ask(handlers: Handlers, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
    """Connect, have the server ask once, and return what it was answered."""
    server = ScriptedServer()
    async with connected(server, handlers):
        server.ask("q", method, params)
        return await answer_to(server, "q")


async def sample(_request: SamplingRequest) -> SamplingResult:
    return SamplingResult(blocks=({"type": "text", "text": "hi"},))


async def refuse(_request: SamplingRequest) -> SamplingRefused:
    return SamplingRefused()


# ------------------------------------------------------------------------------------- declaring


@pytest.mark.requirement("L-4", "S-42", "C-20")
@pytest.mark.parametrize(
    ("handlers", "declared"),
    [
        (Handlers(), {}),
        (Handlers(roots=()), {"roots": {"listChanged": True}}),
        (Handlers(sampling=sample), {"sampling": {}}),
        (Handlers(sampling=sample, sampling_tools=True), {"sampling": {"tools": {}}}),
        (Handlers(sampling_tools=True), {}),
        (Handlers(elicitation_form=accept), {"elicitation": {"form": {}}}),
        (Handlers(elicitation_url=accept), {"elicitation": {"url": {}}}),
        (
            Handlers(elicitation_form=accept, elicitation_url=accept),
            {"elicitation": {"form": {}, "url": {}}},
        ),
    ],
)
async def test_what_is_declared_is_what_there_is_a_handler_for(
    handlers: Handlers, declared: dict[str, object]
) -> None:
    server = ScriptedServer()
    async with connected(server, handlers):
        pass

    (initialize,) = server.requests("initialize")
    params: Any = initialize["params"]
    assert params["capabilities"] == declared


@pytest.mark.requirement("L-4", "C-20")
@pytest.mark.parametrize(
    ("handlers", "method", "params", "code"),
    [
        (Handlers(), "roots/list", {}, -32601),
        (Handlers(sampling=sample), "roots/list", {}, -32601),
        (Handlers(roots=()), SAMPLE, TURN, -32601),
        (Handlers(sampling=sample), ELICIT, FORM, -32601),
        (Handlers(elicitation_form=accept), ELICIT, URL, -32602),
        (Handlers(elicitation_url=accept), ELICIT, FORM, -32602),
        (Handlers(elicitation_url=accept), ELICIT, {**FORM, "mode": "form"}, -32602),
        (Handlers(elicitation_form=accept), ELICIT, {**FORM, "mode": "voice"}, -32602),
        (Handlers(elicitation_form=accept), ELICIT, {**FORM, "mode": None}, -32602),
        (Handlers(elicitation_form=accept), ELICIT, {"message": "?"}, -32602),
        (Handlers(elicitation_url=accept), ELICIT, {**URL, "url": "http://a.b/"}, -32602),
        (Handlers(elicitation_url=accept), ELICIT, {**URL, "url": "https://a@b/"}, -32602),
        (Handlers(sampling=sample), SAMPLE, {**TURN, "tools": []}, -32602),
        (Handlers(sampling=sample), SAMPLE, {"messages": []}, -32602),
        (Handlers(sampling=sample), "tasks/get", {}, -32601),
    ],
)
async def test_what_was_not_declared_or_is_malformed_is_refused(
    handlers: Handlers, method: str, params: dict[str, object], code: int
) -> None:
    answer = await ask(handlers, method, params)

    assert answer["error"]["code"] == code


@pytest.mark.requirement("L-2", "L-4")
async def test_nothing_but_a_ping_is_answered_before_the_handshake_is_over() -> None:
    server = ScriptedServer()
    server.hold("initialize")
    async with anyio.create_task_group() as group:

        async def owner() -> None:
            async with connected(server, Handlers(roots=(Root("file:///a"),))):
                pass

        group.start_soon(owner)
        with anyio.fail_after(30):
            await server.until_received("initialize")
            server.ask("q", "roots/list")
            assert (await answer_to(server, "q"))["error"]["code"] == -32601
        group.cancel_scope.cancel()


# ------------------------------------------------------------------------------------- answering


@pytest.mark.requirement("C-11", "S-43")
async def test_a_refused_turn_is_the_users_rejection_without_a_reason() -> None:
    answer = await ask(Handlers(sampling=refuse), SAMPLE, TURN)

    assert answer["error"] == {"code": -1, "message": "the request was rejected"}


@pytest.mark.requirement("C-23")
@pytest.mark.parametrize(("given", "action"), [(DECLINE, "decline"), (CANCEL, "cancel")])
@pytest.mark.parametrize("params", [FORM, URL])
async def test_declining_and_cancelling_are_answers_without_content(
    given: ElicitationAnswer, action: str, params: dict[str, object]
) -> None:
    async def decide(_request: object) -> ElicitationAnswer:
        return given

    handlers = Handlers(elicitation_form=decide, elicitation_url=decide)

    assert (await ask(handlers, ELICIT, params))["result"] == {"action": action}


@pytest.mark.requirement("C-22")
async def test_a_handler_is_told_which_server_asks() -> None:
    seen: list[FormElicitation] = []

    async def look(request: FormElicitation) -> ElicitationAnswer:
        seen.append(request)
        return ElicitationAnswer(ElicitationAction.ACCEPT, request.defaults())

    answer = await ask(Handlers(elicitation_form=look), ELICIT, FORM)

    assert (seen[0].server, seen[0].message) == ("scripted", "?")
    assert answer["result"] == {"action": "accept", "content": {"a": 1}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        (ELICIT, FORM),  # content for no field
        (ELICIT, URL),  # content where there is none
        (SAMPLE, TURN),  # a block that there is not
    ],
)
async def test_an_answer_that_does_not_fit_is_not_sent_and_the_host_is_told(
    method: str, params: dict[str, object]
) -> None:
    told: list[tuple[ServerRequest, Exception]] = []

    async def fill_in(_request: object) -> ElicitationAnswer:
        return ElicitationAnswer(ElicitationAction.ACCEPT, {"b": "secret"})

    async def turn(_request: object) -> SamplingResult:
        return SamplingResult(blocks=({"type": "secret"},))

    handlers = Handlers(
        sampling=turn,
        elicitation_form=fill_in,
        elicitation_url=fill_in,
        on_error=lambda request, error: told.append((request, error)),
    )

    answer = await ask(handlers, method, params)

    assert answer["error"] == {"code": -32603, "message": "the request was not answered"}
    ((_, error),) = told
    assert isinstance(error, LocalProtocolError)


async def test_what_a_handler_raises_stays_on_this_side_and_ends_nothing_else() -> None:
    told: list[Exception] = []

    async def fail(_request: object) -> SamplingResult:
        raise ValueError("a secret")

    server = ScriptedServer()
    handlers = Handlers(sampling=fail, on_error=lambda _, error: told.append(error))
    async with connected(server, handlers) as client:
        server.ask("q", SAMPLE, TURN)
        answer = await answer_to(server, "q")
        await client.ping()

    assert answer["error"] == {"code": -32603, "message": "the request was not answered"}
    assert [str(error) for error in told] == ["a secret"]


async def test_an_answer_over_the_bound_of_frames_is_an_error_for_the_server() -> None:
    told: list[Exception] = []

    async def talk(_request: object) -> SamplingResult:
        return SamplingResult(blocks=({"type": "text", "text": "x" * 2_000},))

    server = ScriptedServer()
    handlers = Handlers(sampling=talk, on_error=lambda _, error: told.append(error))
    async with connected(server, handlers, ClientLimits(frame_bytes_max=1_000)):
        server.ask("q", SAMPLE, TURN)
        answer = await answer_to(server, "q")

    assert answer["error"]["code"] == -32603
    assert len(told) == 1


async def test_a_handlers_answer_goes_out_under_the_connections_guard() -> None:
    guard = RecordingGuard()
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting), guard=guard) as client:
        server.ask("q", SAMPLE, TURN)
        while not waiting.began:
            await anyio.lowlevel.checkpoint()
        guard.error = RefusalError()
        waiting.answer.set()
        while client.session.desk.running:
            await anyio.lowlevel.checkpoint()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        guard.error = None
        await client.ping()

    assert answers(server) == []


# --------------------------------------------------------------------------- deadlines and ends


@pytest.mark.parametrize(
    ("method", "params", "member", "value"),
    [
        (SAMPLE, TURN, "error", {"code": -32603, "message": "the request was not answered"}),
        (ELICIT, FORM, "result", {"action": "cancel"}),
        (ELICIT, URL, "result", {"action": "cancel"}),
    ],
)
async def test_a_handler_that_takes_too_long_is_cancelled_and_the_server_hears_of_it(
    method: str, params: dict[str, object], member: str, value: object
) -> None:
    ended: list[int] = []

    async def never(_request: object) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append(1)

    server = ScriptedServer()
    handlers = Handlers(sampling=never, elicitation_form=never, elicitation_url=never)
    async with connected(server, handlers, ClientLimits(handler_seconds_max=0.02)):
        server.ask("q", method, params)
        answer = await answer_to(server, "q")

    assert answer[member] == value
    assert ended == [1]


@pytest.mark.requirement("F-52")
async def test_a_request_that_is_taken_back_cancels_its_handler_and_no_other() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting)) as client:
        server.ask(1, SAMPLE, TURN)
        server.ask("1", SAMPLE, TURN)
        while waiting.began < 2:
            await anyio.lowlevel.checkpoint()
        others: list[object] = [True, 1.0, None, [], "2"]
        for request_id in (*others, 1):
            server.notify("notifications/cancelled", {"requestId": request_id})
        while not waiting.cancelled:
            await anyio.lowlevel.checkpoint()
        waiting.answer.set()
        await answer_to(server, "1")
        await client.ping()

    assert waiting.cancelled == 1
    assert [each["id"] for each in answers(server)] == ["1"]


async def test_closing_the_connection_cancels_every_handler_and_answers_nothing() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting)):
        for request_id in range(3):
            server.ask(request_id, SAMPLE, TURN)
        while waiting.began < 3:
            await anyio.lowlevel.checkpoint()

    assert waiting.cancelled == 3
    assert answers(server) == []


async def test_the_end_of_the_server_cancels_every_handler() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting)) as client:
        server.ask("q", SAMPLE, TURN)
        while not waiting.began:
            await anyio.lowlevel.checkpoint()
        server.die()
        while not waiting.cancelled:
            await anyio.lowlevel.checkpoint()

    assert client.session.desk.running == 0


async def test_an_error_in_the_block_comes_out_by_itself_though_handlers_run() -> None:
    waiting = Waiting()
    server = ScriptedServer()

    async def break_off() -> None:
        async with connected(server, Handlers(sampling=waiting)):
            server.ask("q", SAMPLE, TURN)
            while not waiting.began:
                await anyio.lowlevel.checkpoint()
            raise RefusalError

    with pytest.raises(RefusalError):
        await break_off()

    assert (waiting.cancelled, server.over) == (1, True)


async def test_what_is_no_exception_comes_out_of_the_block_by_itself_too() -> None:
    with pytest.raises(SystemExit):
        async with connected(ScriptedServer(), Handlers(sampling=sample)):
            raise SystemExit


async def test_a_ping_is_answered_while_handlers_wait() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting)):
        server.ask("q", SAMPLE, TURN)
        server.ask("p", "ping")

        assert (await answer_to(server, "p"))["result"] == {}


# ---------------------------------------------------------------------------------------- bounds


async def test_one_handler_over_the_bound_is_refused_until_another_has_ended() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(
        server, Handlers(sampling=waiting), ClientLimits(handlers_running_max=2)
    ) as client:
        for request_id in (1, 2, 3):
            server.ask(request_id, SAMPLE, TURN)
        assert (await answer_to(server, 3))["error"]["message"] == "too many requests"
        assert client.session.desk.running == 2
        waiting.answer.set()
        await answer_to(server, 2)
        await answer_to(server, 1)
        server.ask(4, SAMPLE, TURN)

        assert "result" in await answer_to(server, 4)


@pytest.mark.requirement("C-22")
@pytest.mark.requirement("C-11", "C-10")
async def test_one_request_over_the_rate_is_refused_without_troubling_anybody() -> None:
    asked: list[object] = []

    async def decline(request: object) -> ElicitationAnswer:
        asked.append(request)
        return DECLINE

    server = ScriptedServer()
    limits = ClientLimits(handled_requests_max=2)
    async with connected(server, Handlers(elicitation_form=decline), limits):
        for request_id in (1, 2, 3):
            server.ask(request_id, ELICIT, FORM)
            answer = await answer_to(server, request_id)

    assert answer["error"]["message"] == "too many requests"
    assert len(asked) == 2


@pytest.mark.requirement("C-22")
async def test_requests_over_the_rate_are_taken_again_once_its_time_has_passed() -> None:
    server = ScriptedServer()
    limits = ClientLimits(handled_requests_max=1, handled_seconds=0.02)
    async with connected(server, Handlers(sampling=sample), limits) as client:
        server.ask(1, SAMPLE, TURN)
        server.ask(2, SAMPLE, TURN)
        refused = await answer_to(server, 2)
        over = client.session.reactor.now() + 0.02
        while client.session.reactor.now() < over:
            await client.ping()
        server.ask(3, SAMPLE, TURN)
        taken = await answer_to(server, 3)

    assert ("error" in refused, "result" in taken) == (True, True)


async def test_an_id_that_is_still_being_worked_on_is_not_taken_twice() -> None:
    waiting = Waiting()
    server = ScriptedServer()
    async with connected(server, Handlers(sampling=waiting)) as client:
        server.ask("q", SAMPLE, TURN)
        server.ask("q", SAMPLE, TURN)
        waiting.answer.set()
        await answer_to(server, "q")
        await client.ping()

        assert client.session.violations == {Violation.REPEATED_REQUEST: 1}
    assert len(answers(server)) == 1
