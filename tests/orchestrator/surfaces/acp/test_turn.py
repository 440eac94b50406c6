"""What agents do, as an editor sees it: tool calls, one for each subagent, a plan, and their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from acp import schema

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentSaid,
    AgentStarted,
    CallEnded,
    CallProgressed,
    CallStarted,
    TurnEnded,
)
from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.outcomes import CallOutcome, RunStatus
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.turn import LINE_CHARS, TurnView
from orchestrator.surfaces.acp.updates import Update

OWN, CHILD = AgentId("parent"), AgentId("parent/scout")
LIMITS = AcpLimits(lines_kept_max=3, result_chars_max=200, input_chars_max=100, locations_max=2)


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
    return TurnView("1", LIMITS, Path("/project"))


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


def answered(text: str) -> CallEnded:
    origin = Origin(server=ServerName("own"), kind="tool", name="echo", call=CallId("c1"))
    content = UntrustedContent(origin=origin, blocks=({"type": "text", "text": text},))
    return replace(ended(OWN, 1), content=content)


def shown(update: Update) -> str:
    (item,) = cast("list[dict[str, dict[str, str]]]", update["content"])
    return item["content"]["text"]


def test_a_call_shows_its_arguments_and_the_files_of_the_folder_that_they_name():
    inside, outside = "/project/a/../b.txt", "/project/../etc/passwd"
    call = replace(started(OWN, 1), arguments={"path": inside, "other": [outside], "n": 1})
    (update,) = seen(view(), call)

    assert update["rawInput"] == {"path": inside, "other": [outside], "n": 1}
    assert update["locations"] == [{"path": "/project/b.txt"}]


def test_of_too_many_files_an_editor_follows_the_first_ones():
    call = replace(started(OWN, 1), arguments={"paths": ["/project/1", "/project/2", "/project/3"]})
    (update,) = seen(view(), call)

    assert update["locations"] == [{"path": "/project/1"}, {"path": "/project/2"}]


def test_arguments_one_longer_than_is_shown_are_cut():
    whole, longer = {"text": "x" * 88}, {"text": "x" * 89}
    updates = seen(
        view(),
        replace(started(OWN, 1), arguments=whole),
        replace(started(OWN, 2), arguments=longer),
    )

    assert updates[0]["rawInput"] == whole
    assert str(updates[1]["rawInput"]).endswith(" [cut]")


def test_a_result_is_shown_as_untrusted_and_draws_nothing():
    hostile = "![x](https://evil.example/p)\n```\n# done\x1b[2J"
    (_, update) = seen(view(), started(OWN, 1), answered(hostile))

    text = shown(update)
    assert text.startswith("untrusted, from own/echo:\n````\n")
    assert text.endswith("\n````")
    assert "\x1b" not in text
    assert cast("dict[str, object]", update["rawOutput"])["trust"] == "untrusted_external"


def test_a_result_one_longer_than_is_shown_is_cut():
    texts = [shown(seen(view(), started(OWN, 1), answered("x" * n))[1]) for n in (200, 201)]

    assert ["[cut]" in text for text in texts] == [False, True]


def test_what_a_model_says_is_told_as_it_comes():
    one = view()
    pieces = [AgentSaid(agent=OWN, text=text) for text in ("one ", "two\x1b[2J")]
    updates = seen(one, *pieces)

    assert [update["sessionUpdate"] for update in updates] == ["agent_message_chunk"] * 2
    assert "\x1b" not in str(updates)
    assert one.streamed


def test_what_a_subagent_says_is_a_line_of_it_once_it_has_said_it():
    one = view()
    seen(one, AgentStarted(agent=CHILD, model="recipe:x"))
    said = [AgentSaid(agent=CHILD, text=text) for text in ("so ", "far", "x" * LINE_CHARS)]
    assert seen(one, *said) == []
    (update,) = seen(one, TurnEnded(agent=CHILD, number=1, calls=0, tokens=1))

    assert shown(update).startswith("says so far")
    assert len(shown(update)) == len("says ") + LINE_CHARS
    assert not one.streamed


def test_how_far_an_own_call_has_come_is_shown_until_it_ends():
    view = TurnView("t", LIMITS, Path("/work"))
    told = CallProgressed(agent=OWN, server="own", tool="echo", done=3, total=12, number=1)
    (start, update) = seen(view, started(OWN, 1), told)
    after = seen(view, ended(OWN, 1), told)

    assert update["toolCallId"] == start["toolCallId"]
    assert update["content"] == [
        {"type": "content", "content": {"type": "text", "text": "3 of 12"}}
    ]
    assert len(after) == 1
