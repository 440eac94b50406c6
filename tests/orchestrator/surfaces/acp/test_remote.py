"""Servers at an address that an editor hands over; a logout takes back what depended on a login."""

from __future__ import annotations

import json

import anyio
import pytest

from orchestrator import ParentSession
from tests.orchestrator.surfaces.acp.stage import Home, Message, running
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
