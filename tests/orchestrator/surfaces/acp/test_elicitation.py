"""What servers and agents want of a person reaches the editor, in the ways that it declared and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tests.orchestrator.surfaces.acp.stage import FakeEditor, Home, Message, make_home, running

FORMS: Message = {"elicitation": {"form": {}}}
URLS: Message = {"elicitation": {"url": {}}}
BOTH: Message = {"elicitation": {"form": {}, "url": {}}}
SAMPLES = """policy samples v1 {
  permit "all" call on own/*
  ask "model" sample on own
}
"""


async def used(
    home: Home, prompt: str, capabilities: Message, answer: Message
) -> tuple[FakeEditor, Message]:
    """Have a tool used that asks something; return the editor, and what the server was answered."""
    async with running(home, "uses", capabilities=capabilities) as editor:
        editor.answers["elicitation/create"] = lambda _: answer
        session = await editor.open(home, home.asking_server())
        await editor.prompt(session, prompt)
    return editor, cast("Message", json.loads(editor.said()))


def asked(editor: FakeEditor) -> list[Message]:
    return [
        cast("Message", message["params"])
        for message in editor.messages
        if message.get("method") == "elicitation/create"
    ]


@pytest.mark.requirement("S-13")
@pytest.mark.parametrize(
    ("capabilities", "declared"),
    [
        ({}, None),
        ({"elicitation": {}}, None),
        (FORMS, {"form": {}}),
        (URLS, {"url": {}}),
        (BOTH, {"form": {}, "url": {}}),
    ],
)
async def test_servers_are_told_only_what_the_editor_declared(
    home: Home, capabilities: Message, declared: object
):
    async with running(home, capabilities=capabilities) as editor:
        await editor.open(home, home.own_server())

    (initialize,) = home.told("initialize")
    told = cast("Message", cast("Message", initialize["params"])["capabilities"])
    assert told.get("elicitation") == declared


async def test_a_form_is_filled_in_in_the_editor(home: Home):
    filled = {"branch": "main", "kind": "merge"}
    answer: Message = {"result": {"action": "accept", "content": filled}}
    editor, answered = await used(home, "form", FORMS, answer)

    (form,) = asked(editor)
    assert answered == {"action": "accept", "content": filled}
    assert form["mode"] == "form"
    assert str(form["message"]).startswith("server own for agent parent: which branch?")
    assert "\x1b" not in str(form)


@pytest.mark.parametrize(
    ("answer", "action"),
    [
        ({"result": {"action": "decline"}}, "decline"),
        ({"result": {"action": "cancel"}}, "cancel"),
        ({"result": {"action": "accept", "content": {"branch": 3}}}, "cancel"),
        ({"result": {"action": "accept"}}, "cancel"),
        ({"result": {}}, "cancel"),
        ({"error": {"code": -32601, "message": "no"}}, "cancel"),
    ],
)
async def test_whatever_fills_in_no_form_is_none(home: Home, answer: Message, action: str):
    _, answered = await used(home, "form", FORMS, answer)

    assert answered == {"action": action}


async def test_an_address_is_visited_by_the_editor_alone(home: Home):
    url = "https://example.com/consent?x=1"
    editor, answered = await used(home, f"visit {url}", URLS, {"result": {"action": "accept"}})

    (visit,) = asked(editor)
    assert answered == {"action": "accept"}
    assert (visit["mode"], visit["url"]) == ("url", url)
    assert str(visit["message"]).endswith("opens example.com")
    assert "requestedSchema" not in visit


def completed(editor: FakeEditor) -> list[object]:
    return [
        cast("Message", message["params"])["elicitationId"]
        for message in editor.messages
        if message.get("method") == "elicitation/complete"
    ]


@pytest.mark.requirement("C-26")
async def test_the_editor_is_told_when_the_server_says_that_the_visit_is_over(home: Home):
    async with running(home, "uses", capabilities=URLS) as editor:
        editor.answers["elicitation/create"] = lambda _: {"result": {"action": "accept"}}
        session = await editor.open(home, home.asking_server())
        await editor.prompt(session, "visit https://example.com/consent")
        await editor.until_asked("elicitation/complete")

    assert completed(editor) == [asked(editor)[0]["elicitationId"]]


async def test_of_a_visit_that_the_editor_turned_down_it_is_told_nothing(home: Home):
    editor, _ = await used(home, "visit https://a.example/", URLS, {"result": {"action": "cancel"}})

    assert len(asked(editor)) == 1
    assert completed(editor) == []


async def test_an_editor_without_forms_is_not_asked(home: Home):
    editor, _ = await used(home, "form", URLS, {"result": {"action": "accept"}})

    assert asked(editor) == []


async def test_unattended_a_server_is_told_at_once_that_nobody_has_decided(home: Home):
    async with running(home, "uses", capabilities=FORMS) as editor:
        session = await editor.open(home, home.asking_server())
        await editor.prompt(session, "say")
        await editor.call("session/set_mode", sessionId=session, modeId="unattended")
        await editor.prompt(session, "form")

    assert editor.said().endswith('{"action": "cancel"}')
    assert asked(editor) == []


async def test_a_cancel_takes_a_form_back(home: Home):
    async with running(home, "uses", capabilities=FORMS) as editor:
        session = await editor.open(home, home.asking_server())
        prompt = editor.begin_prompt(session, "form")
        form = await editor.until_asked("elicitation/create")
        editor.notify("session/cancel", sessionId=session)
        ended = await editor.ended(prompt)

    taken_back = [m["params"] for m in editor.messages if m.get("method") == "$/cancel_request"]
    assert cast("Message", ended["result"])["stopReason"] == "cancelled"
    assert taken_back == [{"requestId": form["id"]}]


@pytest.mark.requirement("S-43")
async def test_what_a_server_would_send_to_the_model_is_shown_and_may_be_refused(tmp_path: Path):
    home = make_home(tmp_path, SAMPLES)
    async with running(home, "uses") as editor:
        session = await editor.open(home, home.asking_server())
        editor.answers["session/request_permission"] = choosing
        await editor.prompt(session, "sample")

    shown = [m for m in editor.messages if "wants a turn of your model" in str(m)]
    assert "sum it up" in str(shown)
    assert '"code"' in editor.said()


def choosing(message: Message) -> object:
    """Allow tools, and let nothing be sent to a model."""
    sampling = "wants a turn of your model" in str(message)
    chosen = "reject_once" if sampling else "allow_always"
    return {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}
