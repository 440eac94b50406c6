"""A language model behind an editor: what it says arrives while it is still saying it. On asyncio, as the bridge."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from tests.orchestrator.agents.loopback import Connect
from tests.orchestrator.surfaces.acp.stage import Home, Message, running
from tests.servers.openai_like import OpenAiLike, opening, piece, stream

MODEL = "openai:loopback-1"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    return Connect(monkeypatch)


async def test_a_piece_of_the_answer_arrives_before_the_next_one_is_sent(
    home: Home, connect: Connect
):
    rest = threading.Event()
    reply = stream({"content": "first "}, {"content": "then"}, hold=rest, held_from=1)
    with OpenAiLike(reply) as server:
        connect(server)
        async with running(home, model=MODEL) as editor:
            session = await editor.open(home)
            prompt = editor.begin_prompt(session, "say it")
            await editor.until(lambda message: "first " in str(message))
            early = editor.said()
            rest.set()
            await editor.ended(prompt)

    assert early == "first "
    assert editor.said() == "first then"


async def test_a_cancel_keeps_what_was_said_and_tells_no_more(home: Home, connect: Connect):
    rest = threading.Event()
    reply = stream({"content": "first "}, {"content": "then"}, hold=rest, held_from=1)
    with OpenAiLike(reply) as server:
        connect(server)
        async with running(home, model=MODEL) as editor:
            session = await editor.open(home)
            prompt = editor.begin_prompt(session, "say it")
            await editor.until(lambda message: "first " in str(message))
            editor.notify("session/cancel", sessionId=session)
            ended = await editor.ended(prompt)
            rest.set()

    assert cast("Message", ended["result"])["stopReason"] == "cancelled"
    assert editor.said() == "first "


async def test_what_is_said_beside_a_call_is_told_with_the_call_and_its_result(
    home: Home, connect: Connect
):
    wants = stream(
        {"content": "I look. "},
        opening(0, "mcp_own_echo", id="c1"),
        piece(0, '{"text": "a word"}'),
        finish="tool_calls",
    )
    loads = stream(
        opening(0, "mcp_select_tool", id="c0"),
        piece(0, '{"name": "mcp_own_echo"}'),
        finish="tool_calls",
    )
    with OpenAiLike(loads, wants, stream({"content": "Done."})) as server:
        connect(server)
        async with running(home, model=MODEL) as editor:
            session = await editor.open(home, home.own_server())
            await editor.prompt(session, "say it")

    assert editor.said() == "I look. Done."
    (call,) = [each for each in editor.updates("tool_call") if each["title"] == "own/echo"]
    (ended,) = [
        each
        for each in editor.updates("tool_call_update")
        if each["toolCallId"] == call["toolCallId"]
    ]
    assert call["rawInput"] == {"text": "a word"}
    assert "a word" in str(ended["content"])
    assert ended["status"] == "completed"
