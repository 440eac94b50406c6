"""Servers at an address that an editor hands over; a logout takes back what depended on a login."""

from __future__ import annotations

import json
import threading
import urllib.request
from typing import cast

import anyio
import pytest

from orchestrator import ParentSession
from tests.orchestrator.surfaces.acp.stage import FakeEditor, Home, Message, running
from tests.servers.oauth.running import Browser, OAuthWorld, oauth_world


def handed(world: OAuthWorld) -> Message:
    return {"type": "http", "name": "own", "url": world.url, "headers": []}


async def log_in(home: Home, world: OAuthWorld) -> None:
    """Log in to the server as `remit mcp login` does; the tokens stay in the state folder."""

    async def yes(items: object) -> bool:
        return True

    browser = Browser()
    path = home.project / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"own": {"url": world.url, "type": "http"}}}))
    environ = {"REMIT_HOME": str(home.state)}
    opening = ParentSession.open(
        servers=path, confirm=yes, environ=environ, login=lambda entry: browser
    )
    with anyio.fail_after(20):
        async with opening as session:
            await session.log_in("own")
    path.unlink()


@pytest.mark.requirement("S-1")
@pytest.mark.requirement("S-31")
async def test_a_server_at_an_address_is_used_with_the_login_there_is(home: Home):
    with oauth_world() as world:
        await log_in(home, world)
        async with running(home, "echoes") as editor:
            session = await editor.open(home, handed(world))
            await editor.prompt(session, "a word")

    assert editor.said() == "it said: a word"


@pytest.mark.requirement("S-23")
async def test_after_a_logout_nothing_more_goes_to_the_server(home: Home):
    with oauth_world() as world:
        await log_in(home, world)
        async with running(home, "echoes") as editor:
            session = await editor.open(home, handed(world))
            await editor.prompt(session, "first")
            await editor.call("logout")
            seen = len(world.resource_log)
            await editor.prompt(session, "second")

        assert len(world.resource_log) == seen
        assert len(world.calls("tools/call")) == 1
    assert "no: E-AUTHORITY-LOGGED-OUT" in editor.said()


async def test_a_server_that_wants_a_login_is_told_and_the_session_stands(home: Home):
    with oauth_world() as world:
        async with running(home) as editor:
            session = await editor.open(home, handed(world))

            assert await editor.prompt(session, "hi") == "end_turn"

    assert "own is needs_auth" in editor.said()


URLS: Message = {"elicitation": {"url": {}}}


def address_of(message: Message) -> str:
    return str(cast("Message", message["params"])["url"])


def comes_back(editor: FakeEditor) -> None:
    """Have the editor's person agree to each address, and their browser follow it to its end."""

    def agree(message: Message) -> object:
        threading.Thread(target=follow, args=(address_of(message),)).start()
        return {"result": {"action": "accept"}}

    editor.answers["elicitation/create"] = agree


def follow(url: str) -> None:
    with urllib.request.urlopen(url, timeout=10) as page:
        page.read()


async def test_a_person_logs_in_from_the_editor_and_is_told_that_the_visit_is_over(home: Home):
    with oauth_world() as world:
        async with running(home, "echoes", capabilities=URLS) as editor:
            comes_back(editor)
            session = await editor.open(home, handed(world))
            await editor.prompt(session, "/login own")
            asked = await editor.until_asked("elicitation/create")
            done = await editor.until_asked("elicitation/complete")
            await editor.prompt(session, "a word")

    params = cast("Message", asked["params"])
    assert params["mode"] == "url"
    assert str(params["message"]).startswith("log in to server own\nopens 127.0.0.1")
    assert cast("Message", done["params"])["elicitationId"] == params["elicitationId"]
    assert "own is connected" in editor.said()
    assert editor.said().endswith("it said: a word")


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_whoever_does_not_agree_is_not_logged_in(home: Home, action: str):
    with oauth_world() as world:
        async with running(home, capabilities=URLS) as editor:
            editor.answers["elicitation/create"] = lambda _: {"result": {"action": action}}
            session = await editor.open(home, handed(world))
            assert await editor.prompt(session, "/login own") == "end_turn"

    assert "own is connected" not in editor.said()
    assert "E-SERVER-AUTHORIZE" in editor.said()
    assert not [message for message in editor.messages if "complete" in str(message.get("method"))]


async def test_a_cancelled_turn_takes_the_question_of_a_login_back(home: Home):
    with oauth_world() as world:
        async with running(home, capabilities=URLS) as editor:
            session = await editor.open(home, handed(world))
            prompt = editor.begin_prompt(session, "/login own")
            asked = await editor.until_asked("elicitation/create")
            editor.notify("session/cancel", sessionId=session)
            ended = await editor.ended(prompt)
            back = await editor.until_asked("$/cancel_request")

    assert cast("Message", ended["result"])["stopReason"] == "cancelled"
    assert cast("Message", back["params"])["requestId"] == asked["id"]


async def test_an_editor_that_opens_no_address_is_told_how_else_to_log_in(home: Home):
    with oauth_world() as world:
        async with running(home) as editor:
            session = await editor.open(home, handed(world))
            await editor.prompt(session, "/login own")

    assert "fix: remit mcp login own" in editor.said()
