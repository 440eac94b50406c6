from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from orchestrator.agents.errors import ModelError
from orchestrator.agents.events import (
    AgentEnded,
    AgentStarted,
    CallEnded,
    CallStarted,
    TurnEnded,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import Turn
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    Delivery,
    DenyReason,
)
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import CallOutcome, RunStatus
from tests.orchestrator.agents.stage import (
    READ_A,
    WRITE,
    ScriptedModel,
    Stage,
    answers,
    asks,
    recipe,
    refuses,
    text_of,
)

# ------------------------------------------------------------------------------------- the way through


async def test_an_agent_calls_reads_and_answers(stage: Stage) -> None:
    model = ScriptedModel([asks(READ_A), answers("done")])

    result = await stage.run(model)

    assert (result.status, result.answer, result.calls, result.turns) == (
        RunStatus.OK,
        "done",
        1,
        2,
    )
    assert model.handed[1][0].unwrap().text == "read [('path', 'a')]"


async def test_what_happens_is_told_in_its_order(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ_A, tokens=3), answers("done")]))

    kinds = [type(event) for event in stage.events]
    assert kinds == [AgentStarted, TurnEnded, CallStarted, CallEnded, TurnEnded, AgentEnded]


async def test_an_agent_that_nobody_listens_to_works_as_any_other() -> None:
    stage = Stage(heard=False)

    result = await stage.run(ScriptedModel([asks(READ_A, READ_A), answers("done")]))

    assert (result.status, result.answer, result.calls) == (RunStatus.OK, "done", 2)
    assert [kind for kind, _ in stage.audit.records] == [
        "agent_started",
        "model_asked",
        "model_asked",
        "agent_ended",
    ]


async def test_the_record_has_the_beginning_and_the_end_of_an_agent(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ_A), answers("done")]))

    assert stage.audit.of("agent_started") == [{"agent": "scout", "model": "openai:scripted"}]
    (ended,) = stage.audit.of("agent_ended")
    assert (ended["status"], ended["calls"], ended["code"]) == ("ok", 1, "")


async def test_each_request_to_a_model_has_a_span_with_its_tokens(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ_A, tokens=3), answers("done")]))

    assert [span.name for span in stage.telemetry.spans] == [
        "invoke_agent scout",
        "chat scripted",
        "chat scripted",
    ]
    assert stage.telemetry.spans[1].values["gen_ai.usage.output_tokens"] == 3


@pytest.mark.requirement("I23")
async def test_each_request_to_a_model_is_on_record_before_it_is_made(stage: Stage) -> None:
    model = ScriptedModel([asks(READ_A), answers("done")])

    await stage.run(model)

    asked = {"agent": "scout", "model": "scripted", "provider": "openai"}
    assert stage.audit.of("model_asked") == [asked, asked]
    assert len(model.handed) == 2


async def test_a_model_is_not_asked_where_that_cannot_be_recorded(stage: Stage) -> None:
    stage.audit.full = True
    model = ScriptedModel([answers("done")])

    result = await stage.run(model)

    assert isinstance(result.error, AuthorityError)
    assert (result.error.reason, model.handed) == (DenyReason.NOT_RECORDED, [])


async def test_a_recipe_asks_nobody(stage: Stage) -> None:
    await stage.run(recipe("def main(task):\n    yield Note('x')\n"))

    assert stage.audit.of("model_asked") == []


async def test_a_recipe_makes_no_span_of_a_request(stage: Stage) -> None:
    await stage.run(recipe("def main(task):\n    yield Note('x')\n"))

    assert [span.name for span in stage.telemetry.spans] == ["invoke_agent scout"]


# -------------------------------------------------------------------------------------- side by side


async def test_results_come_in_the_order_of_the_calls_whatever_ends_first(stage: Stage) -> None:
    turned = [anyio.Event() for _ in range(3)]

    async def backwards(call: Call) -> UntrustedContent:
        number = call.arguments["n"]
        assert isinstance(number, int)
        if number < 2:
            await turned[number + 1].wait()
        turned[number].set()
        return text_of(call, str(number))

    stage.view.answer = backwards
    model = ScriptedModel([asks(*(Call("f", "r", {"n": n}) for n in range(3))), answers("x")])

    await stage.run(model)

    assert [item.unwrap().text for item in model.handed[1]] == ["0", "1", "2"]


@pytest.mark.parametrize("bound", [1, 2])
async def test_no_more_calls_at_the_same_time_than_the_bound(stage: Stage, bound: int) -> None:
    running = 0
    most = 0

    async def counted(call: Call) -> UntrustedContent:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return text_of(call, "x")

    stage.view.answer = counted

    await stage.run(
        ScriptedModel([asks(READ_A, READ_A, READ_A, READ_A), answers("x")]),
        limits=OrchestratorLimits(calls_parallel_max=bound),
    )

    assert most == bound


async def test_our_own_mistake_in_one_call_leaves_without_a_group_around_it(stage: Stage) -> None:
    async def broken(call: Call) -> UntrustedContent:
        if call == WRITE:
            raise ZeroDivisionError
        await anyio.sleep_forever()
        raise AssertionError

    stage.view.answer = broken

    with pytest.raises(ZeroDivisionError):
        await stage.run(ScriptedModel([asks(READ_A, WRITE)]))


async def test_more_calls_in_a_turn_than_the_bound_end_the_agent_before_any_is_made(
    stage: Stage,
) -> None:
    bounds = AgentLimits(calls_per_turn_max=2)

    inside = await stage.run(ScriptedModel([asks(READ_A, READ_A), answers("x")]), bounds=bounds)
    made = len(stage.view.calls)
    past = await stage.run(ScriptedModel([asks(READ_A, READ_A, READ_A)]), bounds=bounds)

    assert (inside.status, made) == (RunStatus.OK, 2)
    assert past.error is not None
    assert past.error.code == "E-MODEL-CALLS"
    assert len(stage.view.calls) == made


# -------------------------------------------------------------------------------------- what went wrong


async def test_a_denied_call_goes_back_to_the_model_and_does_not_end_the_agent(
    stage: Stage,
) -> None:
    stage.view.answer = refuses(DenyReason.FORBIDDEN)
    model = ScriptedModel([asks(READ_A), answers("without it")])

    result = await stage.run(model)

    assert (result.status, result.denied, result.calls) == (RunStatus.OK, 1, 1)
    assert isinstance(model.handed[1][0].error, AuthorityError)


async def test_a_refusal_is_told_with_its_reason_its_rule_and_the_bytes(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.LOGGED_OUT)

    result = await stage.run(ScriptedModel([asks(READ_A), answers("x")]))

    (ended,) = stage.told(CallEnded)
    assert ended.outcome is CallOutcome.REFUSED
    assert (ended.reason, ended.rule, ended.bytes_sent) == (DenyReason.LOGGED_OUT, "r1", 0)
    assert (result.refused, result.denied) == (1, 0)


@pytest.mark.requirement("S-16")
@pytest.mark.requirement("F-5")
async def test_a_tools_error_reaches_the_model_and_stays_a_failure(stage: Stage) -> None:
    async def failing(call: Call) -> UntrustedContent:
        await anyio.lowlevel.checkpoint()
        return text_of(call, "no such file", is_error=True)

    stage.view.answer = failing
    model = ScriptedModel([asks(READ_A), answers("x")])

    result = await stage.run(model)

    assert model.handed[1][0].unwrap().text == "no such file"
    assert stage.told(CallEnded)[0].outcome is CallOutcome.FAILED
    assert result.failed == 1


async def test_a_lost_call_is_told_with_what_the_server_may_have_seen(stage: Stage) -> None:
    async def lost(call: Call) -> UntrustedContent:
        raise CallFailedError(
            "gone", code="E-CALL-GONE", server="f", stage="wait", delivery=Delivery.MAYBE_SENT
        )

    stage.view.answer = lost

    result = await stage.run(ScriptedModel([asks(READ_A), answers("x")]))

    (ended,) = stage.told(CallEnded)
    assert (ended.outcome, ended.delivery) == (CallOutcome.LOST, Delivery.MAYBE_SENT)
    assert (result.status, result.failed) == (RunStatus.OK, 1)


async def test_a_model_that_breaks_fails_the_agent_with_its_error(stage: Stage) -> None:
    error = ModelError("cut", code="E-MODEL-CUT", provider="openai")

    result = await stage.run(ScriptedModel([asks(READ_A, said="so far"), error]))

    assert (result.status, result.error, result.answer) == (RunStatus.FAILED, error, "so far")
    assert [span.failure for span in stage.telemetry.spans] == ["E-MODEL-CUT", "", "E-MODEL-CUT"]


async def test_malformed_calls_are_answered_a_bounded_number_of_times(stage: Stage) -> None:
    bad = Turn(malformed=1)

    mended = await stage.run(ScriptedModel([bad, bad, bad, answers("x")]))
    not_mended = await stage.run(ScriptedModel([bad, bad, bad, bad, answers("x")]))

    assert mended.status is RunStatus.OK
    assert not_mended.error is not None
    assert not_mended.error.code == "E-MODEL-MALFORMED"


async def test_arguments_that_the_broker_cannot_take_count_as_malformed(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.BAD_ARGUMENTS)

    result = await stage.run(ScriptedModel([asks(READ_A)]))

    assert (result.turns, result.denied) == (4, 4)
    assert result.error is not None
    assert result.error.code == "E-MODEL-MALFORMED"


async def test_an_answer_is_plain_json_and_a_copy(stage: Stage) -> None:
    value = {"a": (1, 2.5, None, True, "é")}

    result = await stage.run(ScriptedModel([answers(value)]))

    assert result.answer == {"a": [1, 2.5, None, True, "é"]}


@pytest.mark.parametrize(
    "value", [{1, 2}, {3: "x"}, [float("nan")], b"x", "\ud800", 1 << 2_000, [object()]]
)
async def test_an_answer_of_anything_else_fails_the_agent(stage: Stage, value: object) -> None:
    result = await stage.run(ScriptedModel([answers(value)]))

    assert (result.status, result.answer) == (RunStatus.FAILED, None)
    assert result.error is not None
    assert result.error.code == "E-ANSWER-TYPE"


async def test_an_answer_is_bounded_in_bytes_and_depth(stage: Stage) -> None:
    bounds = AgentLimits(answer_bytes_max=10, answer_depth_max=2)

    inside = await stage.run(ScriptedModel([answers("x" * 8)]), bounds=bounds)
    too_long = await stage.run(ScriptedModel([answers("x" * 9)]), bounds=bounds)
    deep = await stage.run(ScriptedModel([answers([[1]])]), bounds=bounds)
    too_deep = await stage.run(ScriptedModel([answers([[[1]]])]), bounds=bounds)

    assert (inside.status, deep.status) == (RunStatus.OK, RunStatus.OK)
    assert too_long.error is not None
    assert too_deep.error is not None
    assert (too_long.error.code, too_deep.error.code) == ("E-ANSWER-SIZE", "E-ANSWER-SIZE")
