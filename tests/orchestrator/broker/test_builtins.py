"""The tools of our own take the same road: decided, admitted, recorded, taken back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import anyio
import pytest

from orchestrator.broker import AgentView, BuiltinTool
from orchestrator.broker.builtins import list_capabilities
from orchestrator.core.errors import Delivery, DenyReason
from tests.orchestrator.broker.stage import (
    Person,
    Shelf,
    calling,
    nothing_sent,
    refusal,
    staged,
    wish,
)

ASKED = 'policy p v1 { ask "own" call on remit/* permit "rest" call on files/* }'
ONLY_FILES = 'policy p v1 { permit "rest" call on files/* }'
TOOL = "remit/list_capabilities"


class Waiting:
    """A built-in tool that answers when a test says so."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.go_on = anyio.Event()

    async def run(self, view: AgentView, arguments: Mapping[str, object]) -> str:
        self.begun.set()
        await self.go_on.wait()
        return f"{view.agent} {json.dumps(dict(arguments))}"

    @property
    def tool(self) -> BuiltinTool:
        return BuiltinTool(name="waiting", description="Waits.", run=self.run)


async def test_a_builtin_lists_what_the_agent_that_calls_may_do() -> None:
    async with staged() as stage:
        agent = stage.agent(tools=("files/read", TOOL))
        content = await agent.view.call(wish(TOOL))

    rows = json.loads(content.text)
    assert [(row["server"], row["tool"], row["effects"]) for row in rows] == [
        ("files", "read", ["permit"]),
        ("remit", "list_capabilities", ["permit"]),
    ]


async def test_a_builtin_tells_what_was_lost_and_why() -> None:
    async with staged() as stage:
        view = stage.agent().view
        stage.session.remove_server("files")

        rows = json.loads((await view.call(wish(TOOL))).text)

    lost = {row["tool"]: row["lost"] for row in rows}
    assert lost["read"] == "server_removed"
    assert lost["list_capabilities"] is None


@pytest.mark.requirement("S-26")
async def test_a_builtin_that_no_rule_permits_is_not_in_the_snapshot() -> None:
    async with staged(ONLY_FILES) as stage:
        view = stage.agent().view

        assert (await refusal(view, TOOL)).reason is DenyReason.NOT_IN_SNAPSHOT
        assert "remit" not in {tool.server for tool in view.tools}


@pytest.mark.requirement("S-26")
async def test_a_builtin_that_the_grant_leaves_out_is_not_in_the_snapshot() -> None:
    async with staged() as stage:
        view = stage.agent(tools=("files/*",)).view

        assert (await refusal(view, TOOL)).reason is DenyReason.NOT_IN_SNAPSHOT


@pytest.mark.requirement("S-26")
@pytest.mark.parametrize(("yes", "reason"), [(True, None), (False, DenyReason.ASK_DECLINED)])
async def test_a_person_is_asked_about_a_builtin_like_about_any_tool(
    yes: bool, reason: DenyReason | None
) -> None:
    person = Person(think=lambda _: yes)
    async with staged(ASKED, person=person) as stage:
        view = stage.agent().view
        if reason is None:
            assert (await view.call(wish(TOOL))).text
        else:
            assert (await refusal(view, TOOL)).reason is reason

    assert str(person.asked[0].ref) == TOOL


@pytest.mark.requirement("S-26", "I23")
async def test_a_builtin_has_one_decision_record_and_one_end() -> None:
    async with staged() as stage:
        await stage.agent().view.call(wish(TOOL))

        decision, end = stage.audit.fields("decision")[0], stage.audit.fields("call_ended")[0]
        assert (decision["server"], decision["tool"]) == ("remit", "list_capabilities")
        assert decision["definition"] == list_capabilities.ref.digest
        assert (end["call"], end["outcome"]) == (decision["call"], "ok")


@pytest.mark.requirement("S-26", "I23")
async def test_a_builtin_whose_record_cannot_be_kept_does_not_run() -> None:
    waiting = Waiting()
    async with staged(builtins=[waiting.tool]) as stage:
        view = stage.agent().view
        stage.audit.full = True

        error = await refusal(view, "remit/waiting")

        assert error.reason is DenyReason.NOT_RECORDED
        assert nothing_sent(error)
        assert not waiting.begun.is_set()


@pytest.mark.requirement("S-26")
async def test_a_builtin_is_refused_to_an_agent_that_was_cancelled() -> None:
    waiting = Waiting()
    async with staged(builtins=[waiting.tool]) as stage:
        view = stage.agent().view
        stage.session.cancel_agent("worker")

        assert (await refusal(view, "remit/waiting")).reason is DenyReason.AGENT_CANCELLED
        assert not waiting.begun.is_set()


class Meddling(Shelf):
    """A record at whose disk authority is taken back."""

    def __init__(self) -> None:
        super().__init__()
        self.meddle: Callable[[], object] = lambda: None

    def flush(self) -> None:
        meddle, self.meddle = self.meddle, lambda: None
        meddle()
        super().flush()


@pytest.mark.requirement("S-26", "I1")
async def test_a_builtin_does_not_run_if_authority_ends_between_its_record_and_its_first_step() -> (
    None
):
    waiting, shelf = Waiting(), Meddling()
    async with staged(builtins=[waiting.tool], audit=shelf) as stage:
        view = stage.agent().view
        shelf.meddle = lambda: stage.session.cancel_agent("worker")

        error = await refusal(view, "remit/waiting")

        assert error.reason is DenyReason.AGENT_CANCELLED
        assert nothing_sent(error)
        assert not waiting.begun.is_set()


@pytest.mark.requirement("I18")
async def test_what_a_builtin_says_after_authority_has_ended_is_not_delivered() -> None:
    waiting = Waiting()
    async with staged(builtins=[waiting.tool]) as stage:
        async with calling(stage.agent().view, "remit/waiting") as call:
            await waiting.begun.wait()
            stage.session.cancel_agent("worker")
            waiting.go_on.set()

            error = await call.refused()

        assert (error.reason, error.delivery) == (DenyReason.AGENT_CANCELLED, Delivery.ANSWERED)
        assert stage.audit.fields("refused")[0]["delivery"] == "answered"


@pytest.mark.requirement("S-26", "I28")
async def test_no_builtin_runs_without_a_view() -> None:
    waiting = Waiting()
    async with staged(builtins=[waiting.tool]) as stage:
        blind = replace(stage.agent(), outfit=None)

        assert (await refusal(blind.view, "remit/waiting")).reason is DenyReason.NO_VIEW
        assert not waiting.begun.is_set()


async def test_a_builtin_is_handed_the_view_of_who_calls_and_the_arguments_as_decoded() -> None:
    waiting = Waiting()
    waiting.go_on.set()
    async with staged(builtins=[waiting.tool]) as stage:
        content = await stage.agent().view.call(wish("remit/waiting", {"n": 1}))

    assert content.text == 'worker {"n": 1}'
    assert content.origin.server == "remit"
