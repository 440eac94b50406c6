"""The client over versions without a handshake: answers kept for their time, and what headers mirror."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client.client import Client, connect
from mcp_client.ports import UNGUARDED
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.errors import HeaderMismatchError
from mcp_client.testing import ModernServer, RecordingGuard, ScriptedRequest


@asynccontextmanager
async def connected(
    server: ModernServer, *, dialect: Dialect | None = None
) -> AsyncGenerator[Client]:
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, dialect=dialect or Dialect(opening=Opening.MODERN)
        ) as client:
            yield client


def calls(server: ModernServer, method: str = "tools/call") -> list[Mapping[str, object]]:
    return [as_object(message["params"]) or {} for message in server.requests(method)]


# ------------------------------------------------------------------------------------- caching


@pytest.mark.requirement("F-30")
async def test_a_listing_that_lives_is_not_asked_for_again() -> None:
    server = ModernServer(capabilities={"tools": {"listChanged": True}})
    server.ttl_ms = 60_000
    server.add_tool("t")

    async with connected(server) as client:
        first = await client.list_tools()
        second = await client.list_tools()

    assert first == second
    assert len(calls(server, "tools/list")) == 1


@pytest.mark.requirement("F-30")
async def test_a_notice_makes_a_listing_stale_at_once() -> None:
    server = ModernServer(capabilities={"tools": {"listChanged": True}})
    server.ttl_ms = 60_000

    async with connected(server) as client:
        await server.until_received("subscriptions/listen")
        await client.list_tools()
        server.notice("notifications/tools/list_changed")
        await client.list_tools()

    assert len(calls(server, "tools/list")) == 2


@pytest.mark.requirement("F-30")
async def test_what_goes_under_leave_of_its_own_is_always_sent() -> None:
    server = ModernServer(capabilities={"resources": {}})
    answer: dict[str, object] = {"contents": [], "ttlMs": 60_000, "cacheScope": "public"}
    server.on("resources/read", lambda request: request.answer(answer))
    guard = RecordingGuard()

    async with connected(server) as client:
        await client.read_resource("a:b")
        await client.read_resource("a:b")
        await client.read_resource("a:b", guard=guard)

    assert len(calls(server, "resources/read")) == 2
    assert guard.spent == 1


@pytest.mark.requirement("F-30")
async def test_an_answer_that_needed_input_is_not_kept() -> None:
    server = ModernServer(capabilities={"resources": {}})
    answer: dict[str, object] = {"contents": [], "ttlMs": 60_000, "cacheScope": "public"}

    def read(request: ScriptedRequest) -> None:
        request.answer(
            answer
            if "requestState" in request.params
            else {"resultType": "input_required", "requestState": "s"}
        )

    server.on("resources/read", read)

    async with connected(server) as client:
        await client.read_resource("a:b")
        await client.read_resource("a:b")

    assert len(calls(server, "resources/read")) == 4


@pytest.mark.requirement("F-30")
@pytest.mark.parametrize(("scope", "sent"), [("private", 1), ("public", 0)])
async def test_another_login_gets_public_answers_alone(scope: str, sent: int) -> None:
    server = ModernServer()
    server.ttl_ms, server.cache_scope = 60_000, scope
    dialect = Dialect(opening=Opening.MODERN, credential="anna")

    async with connected(server, dialect=dialect) as client:
        await client.list_tools()
    other = Dialect(opening=Opening.MODERN, credential="berta", cache=dialect.cache)
    async with connected(server, dialect=other) as client:
        await client.list_tools()

    assert len(calls(server, "tools/list")) == 1 + sent


@pytest.mark.requirement("F-30", "F-9")
async def test_another_server_of_the_same_label_is_asked_itself() -> None:
    first, second = ModernServer(), ModernServer()
    for server in (first, second):
        server.ttl_ms, server.cache_scope = 60_000, "public"
    dialect = Dialect(opening=Opening.MODERN)

    for server in (first, second):
        async with connected(server, dialect=dialect) as client:
            await client.list_tools()

    assert len(calls(second, "tools/list")) == 1


class Login:
    """Credentials that somebody else replaces."""

    def __init__(self) -> None:
        self.generation = 1

    @property
    def is_due(self) -> bool:
        return False

    async def ready(self) -> None:
        pass

    async def renewed(self, error: AuthorizationRequiredError, seen: object) -> None:
        raise error


@pytest.mark.requirement("F-30", "F-9")
@pytest.mark.parametrize(("scope", "sent"), [("private", 2), ("public", 1)])
async def test_after_other_credentials_are_sent_private_answers_are_asked_for_again(
    scope: str, sent: int
) -> None:
    server, login = ModernServer(), Login()
    server.ttl_ms, server.cache_scope = 60_000, scope
    dialect = Dialect(opening=Opening.MODERN)

    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, dialect=dialect, credentials=login) as client:
            await client.list_tools()
            login.generation = 2
            await client.list_tools()

    assert len(calls(server, "tools/list")) == sent


# ------------------------------------------------------------------------------------- headers

MARKED: Mapping[str, object] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
MISMARKED: Mapping[str, object] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "a b"}},
}


@pytest.mark.requirement("N-5")
async def test_over_http_a_tool_with_a_mark_that_cannot_be_kept_is_set_apart() -> None:
    server = ModernServer(carries_headers=True)
    server.add_tool("good", input_schema=MARKED)
    server.add_tool("bad", input_schema=MISMARKED)

    async with connected(server) as client:
        listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == ["good"]
    assert [each.name for each in listing.quarantined] == ["bad"]


@pytest.mark.requirement("N-5")
async def test_elsewhere_a_mark_means_nothing() -> None:
    server = ModernServer(carries_headers=False)
    server.add_tool("bad", lambda _: "done", input_schema=MISMARKED)

    async with connected(server) as client:
        listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == ["bad"]


@pytest.mark.requirement("N-7")
async def test_after_a_mismatch_the_tools_are_listed_again_and_the_call_made_once_more() -> None:
    server = ModernServer(carries_headers=True)
    server.add_tool("t", input_schema=MARKED)
    left = [1]

    def answer(request: ScriptedRequest) -> None:
        if left:
            left.pop()
            request.refuse(-32020, "header mismatch")
        else:
            request.answer("done")

    server.on("tools/call", answer)

    async with connected(server) as client:
        result = await client.call_tool("t", {"region": "eu"})

    assert result.text == "done"
    assert [message["method"] for message in server.received[1:]] == [
        "tools/call",
        "tools/list",
        "tools/call",
    ]


@pytest.mark.requirement("N-7")
async def test_a_second_mismatch_is_an_error() -> None:
    server = ModernServer(carries_headers=True)
    server.add_tool("t", input_schema=MARKED)
    server.on("tools/call", lambda request: request.refuse(-32020, "header mismatch"))

    async with connected(server) as client:
        with pytest.raises(HeaderMismatchError):
            await client.call_tool("t", {"region": "eu"})

    assert len(calls(server)) == 2


@pytest.mark.requirement("N-7")
async def test_a_mismatch_under_leave_for_one_frame_is_handed_up() -> None:
    server = ModernServer(carries_headers=True)
    server.on("tools/call", lambda request: request.refuse(-32020, "header mismatch"))

    async with connected(server) as client:
        with pytest.raises(HeaderMismatchError):
            await client.call_tool("t", {}, guard=RecordingGuard())

    assert len(server.received) == 2
