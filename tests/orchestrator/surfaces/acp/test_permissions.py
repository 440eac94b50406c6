"""Where a rule asks a person, the editor is asked, and only a clear yes is one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.surfaces.acp.stage import (
    ASKS,
    Answers,
    FakeEditor,
    Home,
    Message,
    make_home,
    running,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose policy asks about every call."""
    return make_home(tmp_path, ASKS)


def questions(editor: FakeEditor) -> list[Message]:
    return [
        cast("Message", message["params"])
        for message in editor.messages
        if message.get("method") == "session/request_permission"
    ]


def answering(tools: str, *calls: object) -> Answers:
    """Return what answers the question about tools with one option, and those about calls in order."""
    left = list(calls)

    def answer(message: Message) -> object:
        options = cast("list[Message]", cast("Message", message["params"])["options"])
        chosen = tools if len(options) == 2 else left.pop(0)
        if isinstance(chosen, str):
            return {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}
        return chosen

    return answer


async def echoed(home: Home, answers: Answers, *prompts: str) -> FakeEditor:
    """Have each prompt echoed in one session, and return the editor with all that was said."""
    async with running(home, "echoes") as editor:
        editor.answers["session/request_permission"] = answers
        session = await editor.open(home, home.own_server())
        for prompt in prompts:
            await editor.prompt(session, prompt)
    return editor


async def test_a_call_that_is_allowed_once_is_made_and_the_next_is_asked_about(home: Home):
    editor = await echoed(home, answering("allow_always", "allow_once", "reject_once"), "1", "2")

    assert editor.said().endswith(" 1no: E-AUTHORITY-ASK-DECLINED")
    assert len(home.told("tools/call")) == 1


async def test_a_tool_that_is_allowed_for_the_session_is_asked_about_once(home: Home):
    await echoed(home, answering("allow_always", "allow_always"), "1", "2")

    assert len(home.told("tools/call")) == 2


async def test_a_tool_that_is_rejected_for_the_session_is_asked_about_once(home: Home):
    editor = await echoed(home, answering("allow_always", "reject_always"), "1", "2")

    assert editor.said() == "no: E-AUTHORITY-ASK-DECLINED" * 2
    assert home.told("tools/call") == []


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"outcome": {"outcome": "cancelled"}}},
        {"result": {"outcome": {"outcome": "selected", "optionId": "made up"}}},
        {"result": {"outcome": {"outcome": "approved", "optionId": "allow_once"}}},
        {"result": {"outcome": "allow_once"}},
        {"result": {}},
        {"result": "allow_once"},
        {"error": {"code": -32603, "message": "no"}},
    ],
)
async def test_whatever_else_is_answered_is_a_no(home: Home, answer: Message):
    editor = await echoed(home, answering("allow_always", answer), "1")

    assert editor.said() == "no: E-AUTHORITY-ASK-DECLINED"
    assert home.told("tools/call") == []


async def test_a_question_shows_who_wants_what_with_which_arguments_by_which_rule(home: Home):
    editor = await echoed(home, answering("allow_always", "allow_once"), "a word")

    call = cast("Message", questions(editor)[1]["toolCall"])
    (started,) = editor.updates("tool_call")
    assert call["rawInput"] == {"text": "a word"}
    assert call["title"] == "own/echo"
    assert call["toolCallId"] == started["toolCallId"]
    assert '"echo"' in str(call["content"])


@pytest.mark.requirement("S-45")
async def test_what_a_server_says_of_its_tools_is_shown_before_they_can_be_called(home: Home):
    editor = await echoed(home, answering("allow_always", "allow_once"), "1")

    shown = str(cast("Message", questions(editor)[0]["toolCall"])["content"])
    assert "echo it" in shown
    assert "hold it" in shown


async def test_where_a_person_was_asked_is_on_record(home: Home):
    await echoed(home, answering("allow_always", "allow_once"), "1")

    kept = json.loads((home.state / "state" / "approvals.json").read_text())
    assert [item["decided_by"] for item in kept["approvals"]] == ["editor"]


@pytest.mark.requirement("S-45")
async def test_tools_that_are_left_out_cannot_be_called_and_that_is_told(home: Home):
    editor = await echoed(home, answering("reject_once"), "1", "2")

    assert home.told("tools/call") == []
    assert "own is pending" in editor.said()
    assert len(questions(editor)) == 1


async def test_what_was_shown_once_is_not_shown_again_in_a_later_session(home: Home):
    await echoed(home, answering("allow_always", "allow_once"), "1")
    editor = await echoed(home, answering("allow_always", "allow_once"), "2")

    assert len(questions(editor)) == 1


async def test_unattended_nobody_is_asked(home: Home):
    async with running(home, "echoes") as editor:
        editor.answers["session/request_permission"] = answering("allow_always", "allow_once")
        session = await editor.open(home, home.own_server())
        await editor.prompt(session, "1")
        await editor.call("session/set_mode", sessionId=session, modeId="unattended")
        await editor.prompt(session, "2")

    assert editor.said().endswith("no: E-AUTHORITY-ASK-DECLINED")
    assert len(questions(editor)) == 2


async def test_the_mode_is_one_thing_in_both_of_its_forms(home: Home):
    async with running(home) as editor:
        session = await editor.open(home)
        await editor.call("session/set_mode", sessionId=session, modeId="unattended")
        answer = await editor.call(
            "session/set_config_option", sessionId=session, configId="mode", value="ask"
        )

    (told,) = editor.updates("config_option_update")
    (option,) = cast("list[Message]", told["configOptions"])
    (now,) = cast("list[Message]", answer["configOptions"])
    (mode,) = editor.updates("current_mode_update")
    assert (option["currentValue"], now["currentValue"]) == ("unattended", "ask")
    assert mode["currentModeId"] == "ask"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/set_mode", {"modeId": "yolo"}),
        ("session/set_config_option", {"configId": "mode", "value": "yolo"}),
        ("session/set_config_option", {"configId": "yolo", "value": "ask"}),
        ("session/set_config_option", {"configId": "mode", "value": True}),
    ],
)
async def test_there_is_no_mode_that_lets_more_through(home: Home, method: str, params: Message):
    async with running(home) as editor:
        session = await editor.open(home)
        error = await editor.refused(method, sessionId=session, **params)

    assert error["code"] == -32602


ALWAYS = "allow_kept"


def kept(home: Home) -> str:
    path = home.state / "config" / "policies" / "always.policy"
    return path.read_text() if path.exists() else ""


def keeping(*calls: str) -> Answers:
    """Return what answers the question about tools, and all that come after it in order."""
    left = ["allow_always", *calls]

    return lambda _: {"result": {"outcome": {"outcome": "selected", "optionId": left.pop(0)}}}


async def test_always_shows_the_rule_and_then_asks_no_more(home: Home):
    editor = await echoed(home, keeping(ALWAYS, ALWAYS), "<!-- a word -->", "<!-- a word -->")

    assert editor.said().count("it said: ") == 2
    tools, call, keep = questions(editor)
    options = cast("list[Message]", keep["options"])
    assert [option["optionId"] for option in options] == [ALWAYS, "reject_once"]
    (shown,) = cast("list[dict[str, dict[str, str]]]", cast("Message", keep["toolCall"])["content"])
    assert f"```\n{kept(home)}\n```" in shown["content"]["text"]
    assert "```" in str(cast("Message", tools["toolCall"])["content"])
    assert len(cast("list[Message]", call["options"])) == 5


@pytest.mark.parametrize("second", ["reject_once", "allow_always", "no such option"])
async def test_a_permit_that_was_seen_and_not_wanted_is_not_kept(home: Home, second: str):
    editor = await echoed(home, keeping(ALWAYS, second), "a word")

    assert "no: E-AUTHORITY-ASK-DECLINED" in editor.said()
    assert kept(home) == ""


async def test_another_argument_is_asked_about_again(home: Home):
    editor = await echoed(home, keeping(ALWAYS, ALWAYS, "reject_once"), "one", "two")

    assert len(questions(editor)) == 4
    assert kept(home).count("permit") == 1
