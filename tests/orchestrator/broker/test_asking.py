"""A person's yes: to this call alone, as it stood when they were asked, and while it still stands."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from orchestrator.core.calls import Call
from orchestrator.core.errors import DenyReason
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.ports import ApprovalRequest
from tests.orchestrator.broker.stage import (
    AGENT,
    EVERYTHING_ASKED,
    POLICY,
    SERVER,
    Calling,
    Person,
    Stage,
    Way,
    calling,
    calls_at,
    nothing_sent,
    refusal,
    staged,
    ways,
)

CHANGED = "notifications/tools/list_changed"


@asynccontextmanager
async def asked(person: Person) -> AsyncGenerator[tuple[Stage, Calling]]:
    """A call whose person is thinking, for as long as the test likes."""
    person.think = lambda _: None
    async with (
        staged(EVERYTHING_ASKED, person=person) as stage,
        calling(stage.agent().view, "files/read", {"path": "x"}) as call,
    ):
        await person.until_asked()
        yield stage, call


async def test_a_yes_sends_the_call_as_it_was_shown() -> None:
    person = Person()
    async with staged(EVERYTHING_ASKED, person=person) as stage:
        content = await stage.agent().view.call(Call("files", "read", {"path": "x"}))

        assert content.text == "content of x"
        shown = person.asked[0]
        assert (shown.agent, str(shown.ref), shown.arguments, shown.rule) == (
            "worker",
            "files/read",
            {"path": "x"},
            '"look" (test.policy:4)',
        )
        assert await stage.settled() == [{"name": "read", "arguments": {"path": "x"}}]


DOCS = 'ask "docs" call on files/read when arg(/path) under "/docs"'
CROOKED = {"path": "/docs/../etc/passwd"}


@pytest.mark.requirement("I10")
async def test_nobody_is_asked_about_an_argument_that_an_ask_alone_cannot_judge() -> None:
    person = Person()
    async with staged(f"policy p v1 {{ {DOCS} }}", person=person) as stage:
        view = stage.agent().view
        error = await refusal(view, "files/read", CROOKED)
        await view.call(Call("files", "read", {"path": "/docs/a"}))

        assert [each.arguments for each in person.asked] == [{"path": "/docs/a"}]
        assert error.reason is DenyReason.NO_PERMIT
        assert error.rule == 'nearest "docs" (test.policy:1)'
        assert "it has no value (the argument is string: it has `..`)" in error.why
        assert nothing_sent(error)


@pytest.mark.requirement("I10")
async def test_whoever_is_asked_because_a_condition_has_no_value_is_told_so() -> None:
    person = Person()
    text = f'policy p v1 {{ permit "read" call on files/read {DOCS} }}'
    async with staged(text, person=person) as stage:
        await stage.agent().view.call(Call("files", "read", CROOKED))

        told = '"docs" (test.policy:1) (its condition has no value)'
        assert [each.rule for each in person.asked] == [told]
        assert [each["rule"] for each in stage.audit.fields("approval")] == [told]


async def test_a_yes_is_on_record_before_the_decision_that_it_led_to() -> None:
    async with staged(EVERYTHING_ASKED, person=Person()) as stage:
        await stage.agent().view.call(Call("files", "read"))

        records = [item.kind for item in stage.audit.of_kind("approval", "decision")]
        assert records == ["approval", "decision"]
        assert stage.audit.fields("approval")[0]["approved"] is True
        assert stage.audit.fields("decision")[0]["effect"] == "approved"


async def test_what_led_to_a_question_is_kept_before_a_person_thinks() -> None:
    async with asked(Person()) as (stage, _):
        assert stage.audit.flushed == len(stage.audit.records) > 0


async def test_a_person_is_asked_though_the_disk_is_full_and_nothing_is_sent() -> None:
    person = Person()
    async with staged(EVERYTHING_ASKED, person=person) as stage:
        view = stage.agent().view
        stage.audit.full = True
        error = await refusal(view, "files/read")

        assert person.asked
        assert error.reason is DenyReason.NOT_RECORDED
        assert nothing_sent(error)


async def test_a_no_sends_nothing() -> None:
    async with staged(EVERYTHING_ASKED, person=Person(think=lambda _: False)) as stage:
        error = await refusal(stage.agent().view, "files/read")

        assert error.reason is DenyReason.ASK_DECLINED
        assert error.rule == '"look" (test.policy:4)'
        assert nothing_sent(error)
        assert stage.audit.fields("approval")[0]["approved"] is False
        assert await stage.settled() == []


async def test_a_yes_is_for_one_call_the_next_one_is_asked_about_again() -> None:
    person = Person()
    async with staged(EVERYTHING_ASKED, person=person) as stage:
        view = stage.agent().view
        for _ in range(3):
            await view.call(Call("files", "read", {"path": "x"}))

    assert len(person.asked) == 3


async def test_a_person_who_says_nothing_is_waited_for_only_so_long() -> None:
    limits = OrchestratorLimits(approval_seconds_max=0.01)
    person = Person(think=lambda _: None)
    async with staged(EVERYTHING_ASKED, person=person, limits=limits) as stage:
        error = await refusal(stage.agent().view, "files/read")

        assert error.reason is DenyReason.ASK_UNANSWERED
        assert "in time" in error.message
        assert nothing_sent(error)
        assert await stage.settled() == []


@pytest.mark.requirement("S-48")
async def test_where_nobody_can_be_asked_nobody_is() -> None:
    person = Person(interactive=False)
    async with staged(EVERYTHING_ASKED, person=person) as stage:
        error = await refusal(stage.agent().view, "files/read")

        assert error.reason is DenyReason.ASK_UNANSWERED
        assert person.asked == []
        assert await stage.settled() == []


@ways()
@pytest.mark.requirement("I19")
async def test_what_ends_while_a_person_thinks_ends_the_question(way: Way) -> None:
    async with asked(Person()) as (stage, call):
        way.of(stage.session)

        error = await call.refused()

        assert error.reason is way.reason
        assert nothing_sent(error)
        assert stage.audit.fields("approval")[0]["approved"] is False


@pytest.mark.requirement("I19", "I8")
async def test_a_definition_that_changes_while_a_person_thinks_ends_the_question() -> None:
    async with asked(Person()) as (stage, call):
        stage.files.remove_tool("read")
        stage.files.add_tool("read", lambda _: "another", description="another")
        stage.files.notify(CHANGED)

        error = await call.refused()

        assert error.reason is DenyReason.DEFINITION_CHANGED
        assert await stage.settled() == []


@ways(AGENT, SERVER, POLICY)
@pytest.mark.requirement("I19", "S-27")
async def test_a_yes_in_the_very_step_in_which_authority_ends_sends_nothing(way: Way) -> None:
    stages: list[Stage] = []

    def think(_: ApprovalRequest) -> bool:
        way.of(stages[0].session)
        return True

    async with staged(EVERYTHING_ASKED, person=Person(think=think)) as stage:
        stages.append(stage)
        error = await refusal(stage.agent().view, "files/read")

        assert error.reason is way.reason
        assert nothing_sent(error)
        assert calls_at(stage.files) == []


@pytest.mark.requirement("I19")
async def test_a_question_that_ended_does_not_hinder_other_agents() -> None:
    async with asked(Person()) as (stage, call):
        other = stage.agent("other").view
        stage.session.cancel_agent("worker")
        await call.refused()

        assert (await other.call(Call("files", "ok"))).text == "ok"


async def test_a_person_who_is_being_asked_is_part_of_what_a_receipt_counts() -> None:
    async with asked(Person()) as (stage, _):
        receipt = await stage.session.cancel_agent("worker")

    assert (receipt.stopped, receipt.refused, receipt.maybe_sent) == (1, 1, 0)


async def test_a_cancelled_task_stops_asking() -> None:
    person = Person(think=lambda _: None)
    async with staged(EVERYTHING_ASKED, person=person) as stage:
        async with anyio.create_task_group() as group:
            group.start_soon(stage.agent().view.call, Call("files", "read"))
            await person.until_asked()
            group.cancel_scope.cancel()

        assert stage.audit.of_kind("decision") == ()
        assert await stage.settled() == []
