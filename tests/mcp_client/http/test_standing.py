"""What a session had asked of its server is asked of it again when the session begins anew."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    Client,
    Dialect,
    HttpSpec,
    LogLevel,
    McpError,
    Opening,
    SendGuard,
    Standing,
    connect,
)
from mcp_client.testing import ModernServer, ScriptedServer
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http
from tests.mcp_client.http.harness import Guard, Mcp, RevokedError, rpc_error

CAPABILITIES: Any = {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


class Watched(Mcp):
    """Counts in which session it was asked for what, and may refuse a resource."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str, str]] = []
        self.refused = ""

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        session = call.headers.get("mcp-session-id", "")
        params: Any = call.message.get("params") or {}
        if call.rpc_method == "initialize":
            self.sessions += 1
            result: Any = {
                "protocolVersion": self.version,
                "capabilities": CAPABILITIES,
                "serverInfo": {"name": "s", "version": "1"},
            }
            answer = {"jsonrpc": "2.0", "id": call.message["id"], "result": result}
            await reply.json(answer, headers={"Mcp-Session-Id": self.present})
        elif call.rpc_method in ("resources/subscribe", "logging/setLevel"):
            if session in self.forgotten:
                await reply.send(404)
                return
            what = params.get("uri") or params.get("level")
            self.asked.append((session, call.rpc_method, what))
            if what == self.refused:
                await reply.json(rpc_error(call, -32002, "no"))
            else:
                await reply.json({"jsonrpc": "2.0", "id": call.message["id"], "result": {}})
        else:
            await super().__call__(call, reply)


@asynccontextmanager
async def client_of(
    script: Watched, guard: SendGuard = UNGUARDED
) -> AsyncGenerator[tuple[HttpServer, Client]]:
    async with serve_http(script) as server:
        spec = HttpSpec(name="srv", url=server.url)
        with anyio.fail_after(30):
            async with connect(spec, guard=guard) as client:
                yield server, client


@pytest.mark.requirement("S-9", "H-5", "F-26")
async def test_a_session_that_begins_anew_is_subscribed_and_logs_as_before() -> None:
    script = Watched()
    async with client_of(script) as (_server, client):
        await client.set_log_level(LogLevel.ERROR)
        await client.subscribe("a:1")
        await client.subscribe("a:2")
        script.asked.clear()
        script.forgotten.add(script.present)
        await client.call_tool("add", {})

    assert script.asked == [
        ("session-2", "logging/setLevel", "error"),
        ("session-2", "resources/subscribe", "a:1"),
        ("session-2", "resources/subscribe", "a:2"),
    ]


@pytest.mark.requirement("S-9")
async def test_what_may_have_been_missed_meanwhile_is_told() -> None:
    script = Watched()
    async with client_of(script) as (_server, client):
        await client.subscribe("a:1")
        script.forgotten.add(script.present)
        await client.call_tool("add", {})

        assert await anext(client.resource_updates()) == "a:1"


@pytest.mark.requirement("S-9")
async def test_what_is_not_granted_again_is_left_out_and_stops_nothing() -> None:
    script = Watched()
    async with client_of(script) as (_server, client):
        await client.subscribe("a:1")
        await client.subscribe("a:2")
        script.refused = "a:1"
        script.forgotten.add(script.present)
        answer = await client.call_tool("add", {})

        assert (answer.text, client.subscriptions) == ("session-2", frozenset({"a:2"}))


@pytest.mark.requirement("S-9", "I15")
async def test_nothing_is_asked_for_again_once_the_leave_is_gone() -> None:
    script, guard = Watched(), Guard()
    async with client_of(script, guard) as (_server, client):
        await client.subscribe("a:1")
        script.asked.clear()
        script.forgotten.add(script.present)

        @script.on("notifications/initialized")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            guard.revoked = True
            await reply.send(202)

        with pytest.raises(RevokedError):
            await client.call_tool("add", {})

    assert script.asked == []


@pytest.mark.requirement("S-9")
async def test_the_next_connection_can_have_what_the_last_one_had() -> None:
    script = Watched()
    async with client_of(script) as (_server, client):
        await client.set_log_level(LogLevel.ERROR)
        await client.subscribe("a:1")
        standing = client.standing
    script.asked.clear()
    async with client_of(script) as (_server, client):
        granted = await client.restore(standing)

    assert granted == standing == Standing(frozenset({"a:1"}), LogLevel.ERROR)
    assert [each[1:] for each in script.asked] == [
        ("logging/setLevel", "error"),
        ("resources/subscribe", "a:1"),
    ]


@pytest.mark.requirement("S-9", "F-42")
async def test_without_a_handshake_one_stream_asks_for_all_of_it() -> None:
    server = ModernServer(capabilities=CAPABILITIES)
    standing = Standing(frozenset({"a:1", "a:2"}), LogLevel.ERROR)

    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, dialect=Dialect(opening=Opening.MODERN)
        ) as client:
            granted = await client.restore(standing)

    assert granted == standing
    assert len(server.requests("subscriptions/listen")) == 1


async def test_a_server_that_no_longer_offers_any_of_it_is_asked_for_none() -> None:
    server = ScriptedServer(capabilities={"tools": {}})

    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            granted = await client.restore(Standing(frozenset({"a:1"}), LogLevel.ERROR))

    assert granted == Standing()
    assert [each["method"] for each in server.received if "id" in each] == ["initialize"]


async def test_a_session_that_is_forgotten_at_once_again_is_an_error_and_no_loop() -> None:
    script = Watched()
    async with client_of(script) as (_server, client):
        await client.subscribe("a:1")
        script.forgotten |= {"session-1", "session-2", "session-3"}

        @script.on("notifications/initialized")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            await reply.send(202)

        with pytest.raises(McpError):
            await client.call_tool("add", {})

    assert script.sessions == 2
