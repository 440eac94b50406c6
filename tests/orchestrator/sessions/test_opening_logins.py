"""A session that a program opens over a server that wants a login: at once an error, or a login away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator import Call, ParentSession
from orchestrator.core.errors import ExitCode, ServerFailedError
from orchestrator.sessions.servers import ServerState
from policies import Source, load
from tests.orchestrator.sessions.login_stage import FAR
from tests.servers.oauth.running import Browser, OAuthWorld, oauth_world

POLICY = 'policy p v1 { permit "all" call on any server/* }'


async def yes(items: object) -> bool:
    return True


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, OAuthWorld]]:
    monkeypatch.setenv("REMIT_HOME", str(tmp_path / "home"))
    path = tmp_path / "project" / ".mcp.json"
    path.parent.mkdir()
    with oauth_world() as world:
        path.write_text(json.dumps({"mcpServers": {FAR: {"url": world.url, "type": "http"}}}))
        yield path, world


async def test_where_nobody_logs_in_it_is_an_error_that_says_how_to(
    servers: tuple[Path, OAuthWorld],
) -> None:
    path, _ = servers
    with pytest.raises(ServerFailedError) as caught, anyio.fail_after(10):
        async with ParentSession.open(servers=path, confirm=yes):
            pass

    assert caught.value.exit_code is ExitCode.NEEDS_AUTHORIZATION
    assert "remit mcp login far" in caught.value.fix


async def test_where_somebody_does_the_server_can_be_used_after_the_login(
    servers: tuple[Path, OAuthWorld],
) -> None:
    path, world = servers
    policy, browser = load([Source("p", POLICY)]), Browser()
    opening = ParentSession.open(
        servers=path, confirm=yes, policy=policy, login=lambda entry: browser
    )
    with anyio.fail_after(10):
        async with opening as session:
            before = session.servers[FAR].state
            connection = await session.log_in("far")
            assert connection.listing is not None
            session.admit(connection.listing)
            answer = await session.view.call(Call("far", "echo", {"text": "x"}))

    assert (before, answer.blocks[0]["text"]) == (ServerState.NEEDS_AUTH, "x")
    assert len(world.calls("tools/call")) == 1
