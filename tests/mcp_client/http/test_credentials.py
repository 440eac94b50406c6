"""A request that is turned away for its credentials goes out once more with new ones, and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio
import pytest

from mcp_client import UNGUARDED, AuthorizationRequiredError, HttpSpec, connect
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.mcp_client.http.harness import Guard, Mcp


class Login:
    """Credentials that can be replaced. Also what puts them on each request."""

    def __init__(self, renews: Callable[[int], int] = lambda old: old + 1) -> None:
        self.generation = 1
        self.asked = 0
        self._renews = renews

    def __call__(self) -> Sequence[tuple[str, str]]:
        return (("Authorization", f"Bearer token-{self.generation}"),)

    @property
    def is_due(self) -> bool:
        return False

    async def ready(self) -> None:
        pass

    async def renewed(self, error: AuthorizationRequiredError, seen: object) -> None:
        self.asked += 1
        if seen == self.generation:
            self.generation = self._renews(self.generation)


class Locked(Mcp):
    """Takes calls with one token only."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token
        self.tokens: list[str] = []

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        if call.rpc_method != "tools/call":
            await super().__call__(call, reply)
            return
        self.tokens.append(call.headers.get("authorization", ""))
        if self.tokens[-1] == self.token:
            await super().__call__(call, reply)
        else:
            await reply.send(401)


@pytest.mark.requirement("S-3")
async def test_after_a_401_a_call_is_sent_once_more_with_what_was_refreshed() -> None:
    script, login = Locked("Bearer token-2"), Login()
    async with serve_http(script) as server:
        spec = HttpSpec(name="srv", url=server.url, late_headers=login)
        with anyio.fail_after(30):
            async with connect(spec, guard=UNGUARDED, credentials=login) as client:
                result = await client.call_tool("add", {})

    assert result.text == "session-1"
    assert (script.tokens, login.asked) == (["Bearer token-1", "Bearer token-2"], 1)


@pytest.mark.requirement("S-3")
async def test_a_second_401_is_an_error_and_not_a_loop() -> None:
    script, login = Locked("Bearer none"), Login()
    async with serve_http(script) as server:
        spec = HttpSpec(name="srv", url=server.url, late_headers=login)
        with anyio.fail_after(30):
            async with connect(spec, guard=UNGUARDED, credentials=login) as client:
                with pytest.raises(AuthorizationRequiredError):
                    await client.call_tool("add", {})

    assert (len(script.tokens), login.asked) == (2, 1)


@pytest.mark.requirement("S-3", "I15")
async def test_under_leave_for_one_frame_it_is_not_sent_again_by_itself() -> None:
    script, login = Locked("Bearer token-2"), Login()
    async with serve_http(script) as server:
        spec = HttpSpec(name="srv", url=server.url, late_headers=login)
        with anyio.fail_after(30):
            async with connect(spec, guard=UNGUARDED, credentials=login) as client:
                with pytest.raises(AuthorizationRequiredError):
                    await client.call_tool("add", {}, guard=Guard())

    assert script.tokens == ["Bearer token-1"]
