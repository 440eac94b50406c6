"""Cancelling: what goes wrong with other agents of this protocol does not go wrong here."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from orchestrator.surfaces.acp.limits import AcpLimits
from tests.orchestrator.surfaces.acp.stage import (
    ASKS,
    FakeEditor,
    Home,
    Message,
    make_home,
    running,
)


@pytest.fixture
def asking(tmp_path: Path) -> Home:
    """A home whose policy asks about every call."""
    return make_home(tmp_path, ASKS)


def stopped(message: Message) -> object:
    return cast("Message", message["result"])["stopReason"]


def waits_for_a_call(editor: FakeEditor) -> None:
    """Answer what servers say of their tools, and leave a call's question open."""

    def answer(message: Message) -> object:
        options = cast("list[Message]", cast("Message", message["params"])["options"])
        if len(options) > 2:
            return None
        return {"result": {"outcome": {"outcome": "selected", "optionId": "allow_always"}}}

    editor.answers["session/request_permission"] = answer


async def until_call_is_asked(editor: FakeEditor, count: int = 1) -> Message:
    def enough(_: Message) -> bool:
        return len(questions(editor)) >= count

    await editor.until(enough)
    return questions(editor)[count - 1]


def questions(editor: FakeEditor) -> list[Message]:
    return [
        message
        for message in editor.messages
        if message.get("method") == "session/request_permission"
        and len(cast("list[Message]", cast("Message", message["params"])["options"])) > 2
    ]


async def test_a_pending_permission_does_not_outlive_a_cancel(asking: Home):
    async with running(asking, "echoes") as editor:
        waits_for_a_call(editor)
        session = await editor.open(asking, asking.own_server())
        prompt = editor.begin_prompt(session, "one")
        asked = await until_call_is_asked(editor)
        editor.notify("session/cancel", sessionId=session)
        ended = await editor.ended(prompt)

    taken_back = [
        cast("Message", message["params"])["requestId"]
        for message in editor.messages
        if message.get("method") == "$/cancel_request"
    ]
    assert stopped(ended) == "cancelled"
    assert taken_back == [asked["id"]]
    assert asking.told("tools/call") == []


async def test_a_late_yes_to_a_cancelled_question_sends_nothing(asking: Home):
    async with running(asking, "echoes") as editor:
        waits_for_a_call(editor)
        session = await editor.open(asking, asking.own_server())
        prompt = editor.begin_prompt(session, "one")
        asked = await until_call_is_asked(editor)
        editor.notify("session/cancel", sessionId=session)
        await editor.ended(prompt)
        yes = {"outcome": {"outcome": "selected", "optionId": "allow_always"}}
        editor.send({"id": asked["id"], "result": yes})
        await editor.prompt(session, "/servers")

    assert asking.told("tools/call") == []


async def test_a_cancel_does_not_end_the_session(asking: Home):
    async with running(asking, "echoes") as editor:
        waits_for_a_call(editor)
        session = await editor.open(asking, asking.own_server())
        prompt = editor.begin_prompt(session, "one")
        await until_call_is_asked(editor)
        editor.notify("session/cancel", sessionId=session)
        await editor.ended(prompt)
        second = editor.begin_prompt(session, "two")
        asked = await until_call_is_asked(editor, 2)
        yes = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
        editor.send({"id": asked["id"], "result": yes})
        ended = await editor.ended(second)

    assert stopped(ended) == "end_turn"
    assert editor.said().endswith(" two")


async def test_a_second_prompt_stops_the_first_and_is_done_after_it(home: Home):
    async with running(home, "holds") as editor:
        session = await editor.open(home, home.own_server())
        first = editor.begin_prompt(session, "hold")
        await until_started(editor)
        second = editor.begin_prompt(session, "two")
        ends = [stopped(await editor.ended(number)) for number in (first, second)]

    order = [message.get("id") for message in editor.messages if "result" in message]
    assert ends == ["cancelled", "end_turn"]
    assert order.index(first) < order.index(second)
    assert editor.said().endswith(" two")


async def test_of_many_prompts_at_once_only_the_last_is_done(home: Home):
    async with running(home) as editor:
        session = await editor.open(home)
        numbers = [editor.begin_prompt(session, f"prompt {count}") for count in range(10)]
        ends = [stopped(await editor.ended(number)) for number in numbers]

    assert ends == ["cancelled"] * 9 + ["end_turn"]
    assert editor.said() == "you said: prompt 9"


async def test_a_cancel_that_comes_with_its_prompt_finds_it(home: Home):
    async with running(home) as editor:
        session = await editor.open(home)
        prompt = editor.begin_prompt(session, "one")
        editor.notify("session/cancel", sessionId=session)

        assert stopped(await editor.ended(prompt)) == "cancelled"


async def test_a_cancel_after_the_end_changes_nothing(home: Home):
    async with running(home) as editor:
        session = await editor.open(home)
        first = await editor.prompt(session, "one")
        editor.notify("session/cancel", sessionId=session)
        editor.notify("session/cancel", sessionId="no such session")

        assert (first, await editor.prompt(session, "two")) == ("end_turn", "end_turn")


async def test_a_cancel_is_for_one_session(home: Home):
    async with running(home, "holds") as editor:
        one = await editor.open(home, home.own_server())
        other = await editor.open(home, home.own_server())
        first = editor.begin_prompt(one, "hold")
        second = editor.begin_prompt(other, "hold")
        await editor.until(lambda _: len(editor.updates("tool_call")) == 2)
        editor.notify("session/cancel", sessionId=one)
        ended = await editor.ended(first)
        goes_on = not any(message.get("id") == second for message in editor.messages)
        editor.notify("session/cancel", sessionId=other)
        await editor.ended(second)

    assert stopped(ended) == "cancelled"
    assert goes_on


async def test_nothing_is_told_of_a_turn_after_its_end(home: Home):
    async with running(home, "holds") as editor:
        session = await editor.open(home, home.own_server())
        prompt = editor.begin_prompt(session, "hold")
        await until_started(editor)
        editor.notify("session/cancel", sessionId=session)
        await editor.ended(prompt)
        await editor.prompt(session, "/servers")

    end = next(at for at, message in enumerate(editor.messages) if message.get("id") == prompt)
    after = [
        cast("Message", cast("Message", message["params"])["update"])["sessionUpdate"]
        for message in editor.messages[end:]
        if message.get("method") == "session/update"
    ]
    assert set(after) <= {"session_info_update", "agent_message_chunk"}


async def test_a_tool_call_of_a_cancelled_turn_has_an_end(home: Home):
    async with running(home, "holds") as editor:
        session = await editor.open(home, home.own_server())
        prompt = editor.begin_prompt(session, "hold")
        await until_started(editor)
        editor.notify("session/cancel", sessionId=session)
        await editor.ended(prompt)

    (started,) = editor.updates("tool_call")
    ends = [
        update["status"]
        for update in editor.updates("tool_call_update")
        if update["toolCallId"] == started["toolCallId"]
    ]
    assert ends == ["failed"]


async def test_a_request_of_the_editor_is_cancelled_by_its_id(home: Home):
    async with running(home, "holds") as editor:
        session = await editor.open(home, home.own_server())
        prompt = editor.begin_prompt(session, "hold")
        await until_started(editor)
        editor.notify("$/cancel_request", requestId=prompt)
        ended = await editor.ended(prompt)
        again = await editor.prompt(session, "two")

    assert cast("Message", ended["error"])["code"] == -32800
    assert again == "end_turn"


async def test_an_opening_session_is_cancelled_by_the_id_of_its_request(home: Home):
    silent = home.own_server()
    silent["args"] = ["-c", f"open({str(home.log)!r}, 'w').close(); input(); input(); input()"]
    async with running(home) as editor:
        number = editor.begin("session/new", cwd=str(home.project), mcpServers=[silent])
        editor.notify("$/cancel_request", requestId=number)
        ended = await editor.ended(number)
        session = await editor.open(home)
        again = await editor.prompt(session, "hi")

    assert cast("Message", ended["error"])["code"] == -32800
    assert again == "end_turn"


async def test_an_editor_that_cancels_a_question_has_said_no(asking: Home):
    async with running(asking, "echoes") as editor:
        waits_for_a_call(editor)
        session = await editor.open(asking, asking.own_server())
        prompt = editor.begin_prompt(session, "one")
        asked = await until_call_is_asked(editor)
        editor.send({"id": asked["id"], "error": {"code": -32800, "message": "cancelled"}})
        ended = await editor.ended(prompt)

    assert stopped(ended) == "end_turn"
    assert editor.said() == "no: E-AUTHORITY-ASK-DECLINED"


async def test_a_prompt_that_waits_while_its_session_closes_is_answered(home: Home):
    async with running(home, "holds") as editor:
        session = await editor.open(home, home.own_server())
        first = editor.begin_prompt(session, "hold")
        await until_started(editor)
        second = editor.begin_prompt(session, "two")
        await editor.call("session/close", sessionId=session)
        ends = [stopped(await editor.ended(number)) for number in (first, second)]

    assert ends == ["cancelled", "cancelled"]


async def test_what_does_not_stop_is_waited_for_only_so_long(home: Home):
    async with running(home, "holds", limits=AcpLimits(settle_seconds_max=0)) as editor:
        session = await editor.open(home, home.own_server())
        prompt = editor.begin_prompt(session, "hold")
        await until_started(editor)
        editor.notify("session/cancel", sessionId=session)

        assert stopped(await editor.ended(prompt)) == "cancelled"


async def until_started(editor: FakeEditor) -> None:
    await editor.until(lambda _: bool(editor.updates("tool_call")))
