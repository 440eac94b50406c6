"""What agents do, as an editor sees it: tool calls, one for each subagent, a plan, and their ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from acp import schema

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentStarted,
    CallEnded,
    CallStarted,
    TurnEnded,
)
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import CallOutcome, RunStatus
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.turn import TurnView
from orchestrator.surfaces.acp.updates import Update

OWN, CHILD = AgentId("parent"), AgentId("parent/scout")
LIMITS = AcpLimits(lines_kept_max=3)


def started(agent: AgentId, number: int, tool: str = "echo") -> CallStarted:
    return CallStarted(agent=agent, server="own", tool=tool, number=number)


def ended(
    agent: AgentId, number: int, outcome: CallOutcome = CallOutcome.OK, message: str = ""
) -> CallEnded:
    reason = DenyReason.FORBIDDEN if outcome is CallOutcome.DENIED else None
    return CallEnded(
        agent=agent,
        server="own",
        tool="echo",
        outcome=outcome,
        seconds=0.1,
        number=number,
        reason=reason,
        message=message,
    )


def seen(view: TurnView, *events: AgentEvent) -> list[Update]:
    """Return the updates, each read by the SDK's own models first."""
    return checked([update for event in events for update in view.see(event)])


def checked(updates: Sequence[Update]) -> list[Update]:
    for update in updates:
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
    return list(updates)


def view() -> TurnView:
    return TurnView("1", LIMITS)


def statuses(updates: Sequence[Update]) -> list[tuple[object, object]]:
    return [(update["toolCallId"], update["status"]) for update in updates]


def test_each_call_of_the_parents_own_agent_is_a_tool_call_with_an_end():
    updates = seen(view(), started(OWN, 1), ended(OWN, 1))

    assert statuses(updates) == [("1.1", "in_progress"), ("1.1", "completed")]


def test_two_calls_of_one_tool_are_told_apart():
    updates = seen(
        view(), started(OWN, 1), started(OWN, 2), ended(OWN, 2), ended(OWN, 1, CallOutcome.LOST)
    )

    assert statuses(updates)[2:] == [("1.2", "completed"), ("1.1", "failed")]


def test_a_call_that_was_denied_says_why():
    (_, update) = seen(view(), started(OWN, 1), ended(OWN, 1, CallOutcome.DENIED, "no\x1b[2J"))

    raw = cast("dict[str, object]", update["rawOutput"])
    assert (raw["outcome"], raw["reason"]) == ("denied", "forbidden")
    assert "\x1b" not in str(update)


def test_a_subagent_is_one_tool_call_and_its_calls_are_lines_of_it():
    model = AgentStarted(agent=CHILD, model="recipe:x")
    done = AgentEnded(agent=CHILD, status=RunStatus.OK, seconds=1.0)
    updates = seen(view(), model, started(CHILD, 1), ended(CHILD, 1), done)

    calls = [update for update in updates if update["sessionUpdate"] == "tool_call"]
    lines = cast("list[dict[str, dict[str, str]]]", updates[3]["content"])
    assert [call["title"] for call in calls] == ["subagent parent/scout"]
    assert calls[0]["_meta"] == {"remit/subagent": {"path": CHILD, "model": "recipe:x"}}
    assert lines[0]["content"]["text"] == "calls own/echo\nown/echo: ok"


def test_a_plan_has_an_entry_for_each_subagent():
    model = AgentStarted(agent=CHILD, model="recipe:x")
    done = AgentEnded(agent=CHILD, status=RunStatus.FAILED, seconds=1.0)
    updates = seen(view(), model, done)

    plans = [update["entries"] for update in updates if update["sessionUpdate"] == "plan"]
    assert [cast("list[dict[str, str]]", plan)[0]["status"] for plan in plans] == [
        "in_progress",
        "completed",
    ]


def test_the_lines_of_a_subagent_are_bounded():
    one = view()
    seen(one, AgentStarted(agent=CHILD, model="recipe:x"))
    notes = [AgentNoted(agent=CHILD, text=str(number)) for number in range(4)]
    update = seen(one, *notes)[-1]

    lines = cast("list[dict[str, dict[str, str]]]", update["content"])
    assert lines[0]["content"]["text"] == "1\n2\n3"


def test_the_end_of_a_turn_ends_all_that_has_no_end():
    one = view()
    seen(one, started(OWN, 1), AgentStarted(agent=CHILD, model="recipe:x"))

    assert statuses(checked(list(one.close()))) == [("1.1", "failed"), ("1.2", "failed")]
    assert seen(one, ended(OWN, 1), AgentEnded(agent=CHILD, status=RunStatus.OK, seconds=1)) == []


def test_a_question_is_about_the_call_that_waits_unless_it_could_be_another():
    one = view()
    seen(one, started(OWN, 1))
    first = one.asked_about(OWN, "own", "echo")
    seen(one, started(OWN, 2))

    assert first == "1.1"
    assert one.asked_about(OWN, "own", "echo") not in ("1.1", "1.2")


def test_usage_is_that_of_the_last_request_within_the_window():
    (update,) = seen(view(), TurnEnded(agent=OWN, number=1, calls=0, tokens=10**6, usd=0.25))

    assert (update["used"], update["size"]) == (100_000, 100_000)
    assert update["cost"] == {"amount": 0.25, "currency": "USD"}
