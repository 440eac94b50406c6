from __future__ import annotations

import anyio
import pytest

from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.events import (
    AgentEnded,
    CallEnded,
    CallStarted,
)
from orchestrator.core.calls import Call
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import (
    AuthorityError,
    ConfigError,
    Delivery,
    DenyReason,
)
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
)

# ---------------------------------------------------------------------------------------------- budgets


async def test_the_turn_past_the_budget_is_not_asked_for(stage: Stage) -> None:
    model = ScriptedModel([asks(READ_A, said="so far")])

    result = await stage.run(model, budget=Budget(turns=2))

    assert len(model.handed) == 2
    assert result.error is not None
    assert (result.status, result.error.code) == (RunStatus.FAILED, "E-BUDGET-TURNS")
    assert (result.answer, result.calls) == ("so far", 2)


async def test_an_answer_in_the_last_turn_of_the_budget_counts(stage: Stage) -> None:
    result = await stage.run(ScriptedModel([asks(READ_A), answers("x")]), budget=Budget(turns=2))

    assert result.status is RunStatus.OK


async def test_calls_that_the_budget_has_no_room_for_are_refused_and_never_made(
    stage: Stage,
) -> None:
    model = ScriptedModel([asks(READ_A, READ_A, WRITE), answers("partial")])

    result = await stage.run(model, budget=Budget(calls=2))

    assert stage.view.calls == [READ_A, READ_A]
    assert (result.status, result.answer, result.refused) == (RunStatus.FAILED, "partial", 1)
    assert result.error is not None
    assert result.error.code == "E-BUDGET-CALLS"
    refused = model.handed[1][2].error
    assert isinstance(refused, AuthorityError)
    assert refused.reason is DenyReason.BUDGET_SPENT
    assert [record["tool"] for record in stage.audit.of("refused")] == ["write"]


async def test_a_model_that_goes_on_calling_after_its_last_word_is_ended(stage: Stage) -> None:
    model = ScriptedModel([asks(READ_A)])

    result = await stage.run(model, budget=Budget(calls=1))

    assert len(model.handed) == 3
    assert stage.view.calls == [READ_A]
    assert result.error is not None
    assert result.error.code == "E-BUDGET-CALLS"


async def test_a_budget_that_ran_out_of_calls_says_so_though_there_is_no_turn_left_either(
    stage: Stage,
) -> None:
    result = await stage.run(ScriptedModel([asks(READ_A)]), budget=Budget(calls=0, turns=1))

    assert result.error is not None
    assert result.error.code == "E-BUDGET-CALLS"


async def test_calls_up_to_the_budget_leave_the_agent_whole(stage: Stage) -> None:
    result = await stage.run(ScriptedModel([asks(READ_A), answers("x")]), budget=Budget(calls=1))

    assert result.status is RunStatus.OK


async def test_tokens_end_the_agent_after_the_turn_that_spent_them(stage: Stage) -> None:
    model = ScriptedModel([asks(READ_A, tokens=5), asks(READ_A, tokens=5), answers("x")])

    result = await stage.run(model, budget=Budget(tokens=10))

    assert len(model.handed) == 2
    assert result.error is not None
    assert (result.error.code, result.tokens) == ("E-BUDGET-TOKENS", 10)


async def test_money_ends_the_agent_by_the_models_price(stage: Stage) -> None:
    prices = {"openai:scripted": Price(1.0, 1_000_000.0)}

    result = await stage.run(
        ScriptedModel([asks(READ_A, tokens=1)]), budget=Budget(usd=2.0), prices=prices
    )

    assert result.error is not None
    assert (result.error.code, result.turns) == ("E-BUDGET-USD", 2)


async def test_a_budget_in_money_without_a_price_starts_nothing(stage: Stage) -> None:
    model = ScriptedModel([answers("x")])

    with pytest.raises(ConfigError):
        await stage.run(model, budget=Budget(usd=1.0))

    assert (stage.events, stage.audit.records, model.handed) == ([], [], [])


async def test_the_deadline_ends_a_call_under_way_and_keeps_what_was_said(stage: Stage) -> None:
    async def never(call: Call) -> UntrustedContent:
        await anyio.sleep_forever()
        raise AssertionError

    stage.view.answer = never
    model = ScriptedModel([asks(READ_A, said="so far")])

    result = await stage.run(model, budget=Budget(seconds=0.02))

    assert result.error is not None
    assert (result.status, result.error.code) == (RunStatus.FAILED, "E-BUDGET-SECONDS")
    assert (result.answer, model.left) == ("so far", True)
    (ended,) = stage.told(CallEnded)
    assert (ended.outcome, ended.delivery) == (CallOutcome.LOST, Delivery.MAYBE_SENT)


# --------------------------------------------------------------------------------- the end of authority


OVER = [
    DenyReason.AGENT_CANCELLED,
    DenyReason.AGENT_CLOSED,
    DenyReason.PARENT_CLOSED,
    DenyReason.SESSION_CLOSED,
]


@pytest.mark.parametrize("reason", OVER)
async def test_an_agent_whose_authority_ended_makes_no_request_to_its_model(
    stage: Stage, reason: DenyReason
) -> None:
    def closed() -> None:
        raise AuthorityError("over", reason=reason)

    stage.gate = closed
    model = ScriptedModel([answers("x")])

    result = await stage.run(model)

    assert model.handed == []
    assert (result.status, result.turns) == (RunStatus.CANCELLED, 0)


@pytest.mark.parametrize("reason", OVER)
async def test_a_call_refused_because_the_agent_is_over_is_its_last(
    stage: Stage, reason: DenyReason
) -> None:
    stage.view.answer = refuses(reason, Delivery.ANSWERED)
    model = ScriptedModel([asks(READ_A), answers("x")])

    result = await stage.run(model)

    assert len(model.handed) == 1
    assert result.status is RunStatus.CANCELLED
    assert isinstance(result.error, AuthorityError)
    assert result.error.reason is reason


async def test_the_gate_is_asked_right_before_the_request_and_not_only_at_the_start(
    stage: Stage,
) -> None:
    model = ScriptedModel([asks(READ_A), answers("x")])

    def open_once() -> None:
        if model.handed:
            raise AuthorityError("over", reason=DenyReason.AGENT_CANCELLED)

    stage.gate = open_once

    result = await stage.run(model)

    assert (len(model.handed), result.status) == (1, RunStatus.CANCELLED)


async def test_a_server_that_was_taken_away_does_not_end_the_agent(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.SERVER_REMOVED)

    result = await stage.run(ScriptedModel([asks(READ_A), answers("x")]))

    assert (result.status, result.refused) == (RunStatus.OK, 1)


async def test_cancellation_goes_on_and_is_told(stage: Stage) -> None:
    waiting = anyio.Event()

    async def never(call: Call) -> UntrustedContent:
        waiting.set()
        await anyio.sleep_forever()
        raise AssertionError

    stage.view.answer = never
    model = ScriptedModel([asks(READ_A, WRITE)])
    returned = False

    async def run() -> None:
        nonlocal returned
        await stage.run(model)
        returned = True

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await waiting.wait()
            group.cancel_scope.cancel()

    assert not returned
    assert model.left
    (ended,) = stage.told(AgentEnded)
    assert ended.status is RunStatus.CANCELLED
    assert len(stage.told(CallEnded)) == len(stage.told(CallStarted))
    assert stage.audit.of("agent_ended")[0]["status"] == "cancelled"


async def test_nobody_to_ask_ends_a_recipe_as_input_required(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.ASK_UNANSWERED)

    result = await stage.run(recipe("def main(task):\n    yield Call('files', 'read')\n"))

    assert result.status is RunStatus.INPUT_REQUIRED
