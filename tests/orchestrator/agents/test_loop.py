from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest

from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.errors import ModelError
from orchestrator.agents.events import (
    AgentEnded,
    AgentStarted,
    CallEnded,
    CallStarted,
    TurnEnded,
)
from orchestrator.agents.limits import AgentLimits
from orchestrator.agents.model import AgentTask, CallResult, RequestGate, Turn, Usage
from orchestrator.core.calls import Call, ToolSpec
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    ConfigError,
    Delivery,
    DenyReason,
    RemitError,
)
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import CallOutcome, RunStatus
from tests.orchestrator.agents.stage import Stage, recipe, text_of

READ = Call("files", "read", {"path": "a"})
WRITE = Call("files", "write")


@dataclass
class ScriptedModel:
    """A model that takes its turns from a list; it keeps the results that it was handed."""

    turns: Sequence[Turn | RemitError]
    handed: list[list[CallResult]] = field(default_factory=list[list[CallResult]])
    name: str = "scripted"
    provider: str = "openai"
    left: bool = False

    @asynccontextmanager
    async def converse(
        self, task: AgentTask, tools: Sequence[ToolSpec], gate: RequestGate
    ) -> AsyncGenerator[ScriptedModel]:
        try:
            yield self
        finally:
            self.left = True

    async def next(self, results: Sequence[CallResult]) -> Turn:
        await anyio.lowlevel.checkpoint()
        self.handed.append(list(results))
        turn = self.turns[min(len(self.handed), len(self.turns)) - 1]
        if isinstance(turn, RemitError):
            raise turn
        return turn


def asks(*calls: Call, said: object = None, tokens: int = 0) -> Turn:
    return Turn(calls=calls, answer=said, usage=Usage(output_tokens=tokens))


def answers(value: object) -> Turn:
    return Turn(answer=value, done=True)


def refuses(
    reason: DenyReason, delivery: Delivery = Delivery.NOT_SENT
) -> Callable[[Call], Awaitable[UntrustedContent]]:
    async def answer(call: Call) -> UntrustedContent:
        raise AuthorityError("no", reason=reason, delivery=delivery, rule="r1")

    return answer


# ------------------------------------------------------------------------------------- the way through


async def test_an_agent_calls_reads_and_answers(stage: Stage) -> None:
    model = ScriptedModel([asks(READ), answers("done")])

    result = await stage.run(model)

    assert (result.status, result.answer, result.calls, result.turns) == (
        RunStatus.OK,
        "done",
        1,
        2,
    )
    assert model.handed[1][0].unwrap().text == "read [('path', 'a')]"


async def test_what_happens_is_told_in_its_order(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ, tokens=3), answers("done")]))

    kinds = [type(event) for event in stage.events]
    assert kinds == [AgentStarted, TurnEnded, CallStarted, CallEnded, TurnEnded, AgentEnded]


async def test_the_record_has_the_beginning_and_the_end_of_an_agent(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ), answers("done")]))

    assert stage.audit.of("agent_started") == [{"agent": "scout", "model": "openai:scripted"}]
    (ended,) = stage.audit.of("agent_ended")
    assert (ended["status"], ended["calls"], ended["code"]) == ("ok", 1, "")


async def test_each_request_to_a_model_has_a_span_with_its_tokens(stage: Stage) -> None:
    await stage.run(ScriptedModel([asks(READ, tokens=3), answers("done")]))

    assert [span.name for span in stage.telemetry.spans] == [
        "invoke_agent scout",
        "chat scripted",
        "chat scripted",
    ]
    assert stage.telemetry.spans[1].values["gen_ai.usage.output_tokens"] == 3


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
        ScriptedModel([asks(READ, READ, READ, READ), answers("x")]),
        limits=OrchestratorLimits(calls_parallel_max=bound),
    )

    assert most == bound


async def test_our_own_mistake_in_one_call_leaves_without_a_group_around_it(stage: Stage) -> None:
    async def broken(call: Call) -> UntrustedContent:
        if call is WRITE:
            raise ZeroDivisionError
        await anyio.sleep_forever()
        raise AssertionError

    stage.view.answer = broken

    with pytest.raises(ZeroDivisionError):
        await stage.run(ScriptedModel([asks(READ, WRITE)]))


async def test_more_calls_in_a_turn_than_the_bound_end_the_agent_before_any_is_made(
    stage: Stage,
) -> None:
    bounds = AgentLimits(calls_per_turn_max=2)

    inside = await stage.run(ScriptedModel([asks(READ, READ), answers("x")]), bounds=bounds)
    made = len(stage.view.calls)
    past = await stage.run(ScriptedModel([asks(READ, READ, READ)]), bounds=bounds)

    assert (inside.status, made) == (RunStatus.OK, 2)
    assert past.error is not None
    assert past.error.code == "E-MODEL-CALLS"
    assert len(stage.view.calls) == made


# -------------------------------------------------------------------------------------- what went wrong


async def test_a_denied_call_goes_back_to_the_model_and_does_not_end_the_agent(
    stage: Stage,
) -> None:
    stage.view.answer = refuses(DenyReason.FORBIDDEN)
    model = ScriptedModel([asks(READ), answers("without it")])

    result = await stage.run(model)

    assert (result.status, result.denied, result.calls) == (RunStatus.OK, 1, 1)
    assert isinstance(model.handed[1][0].error, AuthorityError)


async def test_a_refusal_is_told_with_its_reason_its_rule_and_the_bytes(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.LOGGED_OUT)

    result = await stage.run(ScriptedModel([asks(READ), answers("x")]))

    (ended,) = stage.told(CallEnded)
    assert ended.outcome is CallOutcome.REFUSED
    assert (ended.reason, ended.rule, ended.bytes_sent) == (DenyReason.LOGGED_OUT, "r1", 0)
    assert (result.refused, result.denied) == (1, 0)


@pytest.mark.requirement("S-16")
async def test_a_tools_error_reaches_the_model_and_stays_a_failure(stage: Stage) -> None:
    async def failing(call: Call) -> UntrustedContent:
        await anyio.lowlevel.checkpoint()
        return text_of(call, "no such file", is_error=True)

    stage.view.answer = failing
    model = ScriptedModel([asks(READ), answers("x")])

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

    result = await stage.run(ScriptedModel([asks(READ), answers("x")]))

    (ended,) = stage.told(CallEnded)
    assert (ended.outcome, ended.delivery) == (CallOutcome.LOST, Delivery.MAYBE_SENT)
    assert (result.status, result.failed) == (RunStatus.OK, 1)


async def test_a_model_that_breaks_fails_the_agent_with_its_error(stage: Stage) -> None:
    error = ModelError("cut", code="E-MODEL-CUT", provider="openai")

    result = await stage.run(ScriptedModel([asks(READ, said="so far"), error]))

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

    result = await stage.run(ScriptedModel([asks(READ)]))

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


# ---------------------------------------------------------------------------------------------- budgets


async def test_the_turn_past_the_budget_is_not_asked_for(stage: Stage) -> None:
    model = ScriptedModel([asks(READ, said="so far")])

    result = await stage.run(model, budget=Budget(turns=2))

    assert len(model.handed) == 2
    assert result.error is not None
    assert (result.status, result.error.code) == (RunStatus.FAILED, "E-BUDGET-TURNS")
    assert (result.answer, result.calls) == ("so far", 2)


async def test_an_answer_in_the_last_turn_of_the_budget_counts(stage: Stage) -> None:
    result = await stage.run(ScriptedModel([asks(READ), answers("x")]), budget=Budget(turns=2))

    assert result.status is RunStatus.OK


async def test_calls_that_the_budget_has_no_room_for_are_refused_and_never_made(
    stage: Stage,
) -> None:
    model = ScriptedModel([asks(READ, READ, WRITE), answers("partial")])

    result = await stage.run(model, budget=Budget(calls=2))

    assert stage.view.calls == [READ, READ]
    assert (result.status, result.answer, result.refused) == (RunStatus.FAILED, "partial", 1)
    assert result.error is not None
    assert result.error.code == "E-BUDGET-CALLS"
    refused = model.handed[1][2].error
    assert isinstance(refused, AuthorityError)
    assert refused.reason is DenyReason.BUDGET_SPENT
    assert [record["tool"] for record in stage.audit.of("refused")] == ["write"]


async def test_a_model_that_goes_on_calling_after_its_last_word_is_ended(stage: Stage) -> None:
    model = ScriptedModel([asks(READ)])

    result = await stage.run(model, budget=Budget(calls=1))

    assert len(model.handed) == 3
    assert stage.view.calls == [READ]
    assert result.error is not None
    assert result.error.code == "E-BUDGET-CALLS"


async def test_calls_up_to_the_budget_leave_the_agent_whole(stage: Stage) -> None:
    result = await stage.run(ScriptedModel([asks(READ), answers("x")]), budget=Budget(calls=1))

    assert result.status is RunStatus.OK


async def test_tokens_end_the_agent_after_the_turn_that_spent_them(stage: Stage) -> None:
    model = ScriptedModel([asks(READ, tokens=5), asks(READ, tokens=5), answers("x")])

    result = await stage.run(model, budget=Budget(tokens=10))

    assert len(model.handed) == 2
    assert result.error is not None
    assert (result.error.code, result.tokens) == ("E-BUDGET-TOKENS", 10)


async def test_money_ends_the_agent_by_the_models_price(stage: Stage) -> None:
    prices = {"openai:scripted": Price(1.0, 1_000_000.0)}

    result = await stage.run(
        ScriptedModel([asks(READ, tokens=1)]), budget=Budget(usd=2.0), prices=prices
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
    model = ScriptedModel([asks(READ, said="so far")])

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
    model = ScriptedModel([asks(READ), answers("x")])

    result = await stage.run(model)

    assert len(model.handed) == 1
    assert result.status is RunStatus.CANCELLED
    assert isinstance(result.error, AuthorityError)
    assert result.error.reason is reason


async def test_the_gate_is_asked_right_before_the_request_and_not_only_at_the_start(
    stage: Stage,
) -> None:
    model = ScriptedModel([asks(READ), answers("x")])

    def open_once() -> None:
        if model.handed:
            raise AuthorityError("over", reason=DenyReason.AGENT_CANCELLED)

    stage.gate = open_once

    result = await stage.run(model)

    assert (len(model.handed), result.status) == (1, RunStatus.CANCELLED)


async def test_a_server_that_was_taken_away_does_not_end_the_agent(stage: Stage) -> None:
    stage.view.answer = refuses(DenyReason.SERVER_REMOVED)

    result = await stage.run(ScriptedModel([asks(READ), answers("x")]))

    assert (result.status, result.refused) == (RunStatus.OK, 1)


async def test_cancellation_goes_on_and_is_told(stage: Stage) -> None:
    waiting = anyio.Event()

    async def never(call: Call) -> UntrustedContent:
        waiting.set()
        await anyio.sleep_forever()
        raise AssertionError

    stage.view.answer = never
    model = ScriptedModel([asks(READ, WRITE)])
    returned = False

    async def run() -> None:
        nonlocal returned
        await stage.run(model)
        returned = True

    with anyio.fail_after(5):
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
