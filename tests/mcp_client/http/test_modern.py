"""Requests that describe themselves over HTTP: headers beside bodies, streams of notices, errors by status."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client import UNGUARDED, Client, HttpSpec, ServerGoneError, connect
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.errors import McpError, RemoteProtocolError
from mcp_client.protocol.http.errors import AuthorizationRequiredError, HttpStatusError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.metadata import SUBSCRIPTION_ID
from mcp_client.protocol.modern.subscriptions import ACKNOWLEDGED
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http

DISCOVERED: Mapping[str, object] = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}, "resources": {}},
    "ttlMs": 0,
    "cacheScope": "public",
}
TOOLS: Mapping[str, object] = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
    "tools": [
        {
            "name": "wählen",
            "inputSchema": {
                "type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            },
        }
    ],
}


def answer(call: HttpCall, result: object) -> Mapping[str, object]:
    return {"jsonrpc": "2.0", "id": call.message["id"], "result": result}


def refusal(call: HttpCall, code: int, data: object = None) -> Mapping[str, object]:
    error = {"code": code, "message": "no", "data": data}
    return {"jsonrpc": "2.0", "id": call.message["id"], "error": error}


async def modern(call: HttpCall, reply: HttpReply) -> None:
    """A modern server that keeps every stream of notices open, and tells one change on it."""
    match call.rpc_method:
        case "server/discover":
            await reply.json(answer(call, DISCOVERED))
        case "tools/list":
            await reply.json(answer(call, TOOLS))
        case "tools/call":
            result: dict[str, object] = {"resultType": "complete", "content": []}
            await reply.json(answer(call, result))
        case "subscriptions/listen":
            stamp = {SUBSCRIPTION_ID: call.message["id"]}
            wanted = (as_object(call.message["params"]) or {})["notifications"]
            await reply.start_events()
            for method, params in (
                (ACKNOWLEDGED, {"_meta": stamp, "notifications": wanted}),
                ("notifications/tools/list_changed", {"_meta": stamp}),
            ):
                await reply.event({"jsonrpc": "2.0", "method": method, "params": params})
            await reply.until_gone()
        case _:
            await reply.json(refusal(call, -32601), status=404)


@asynccontextmanager
async def connected(server: HttpServer, opening: Opening) -> AsyncGenerator[Client]:
    spec = HttpSpec(name="http", url=server.url)
    async with connect(spec, guard=UNGUARDED, dialect=Dialect(opening=opening)) as client:
        yield client


@pytest.mark.requirement("N-1")
@pytest.mark.requirement("N-10")
async def test_nothing_but_posts_and_no_session() -> None:
    with anyio.fail_after(30):
        async with serve_http(modern) as server, connected(server, Opening.MODERN) as client:
            await client.list_tools()

    assert {call.method for call in server.calls} == {"POST"}
    assert not any("mcp-session-id" in call.headers for call in server.calls)


@pytest.mark.requirement("N-2")
@pytest.mark.requirement("N-3")
@pytest.mark.requirement("N-4")
async def test_headers_say_what_the_body_says() -> None:
    with anyio.fail_after(30):
        async with serve_http(modern) as server, connected(server, Opening.MODERN) as client:
            await client.list_tools()
            await client.call_tool("wählen", {"region": " eu"})

    (call,) = server.posts("tools/call")
    assert call.headers["mcp-protocol-version"] == "2026-07-28"
    assert call.headers["mcp-method"] == "tools/call"
    assert call.headers["mcp-name"] == "=?base64?d8OkaGxlbg==?="
    assert call.headers["mcp-param-region"] == "=?base64?IGV1?="


@pytest.mark.requirement("F-40")
@pytest.mark.requirement("N-8")
async def test_notices_come_in_the_stream_that_asked_for_them() -> None:
    with anyio.fail_after(30):
        async with serve_http(modern) as server, connected(server, Opening.MODERN) as client:
            await client.wait_tools_changed()

    assert len(server.posts("subscriptions/listen")) == 1


@pytest.mark.requirement("N-8")
async def test_a_call_that_is_given_up_ends_its_stream_and_no_notice_is_sent() -> None:
    gone = anyio.Event()

    async def hang(call: HttpCall, reply: HttpReply) -> None:
        if call.rpc_method != "tools/call":
            await modern(call, reply)
            return
        await reply.start_events()
        await reply.until_gone()
        gone.set()

    with anyio.fail_after(30):
        async with serve_http(hang) as server, connected(server, Opening.MODERN) as client:
            async with anyio.create_task_group() as group:
                arguments: dict[str, object] = {}
                group.start_soon(client.call_tool, "t", arguments)
                await server.until(lambda: server.posts("tools/call"))
                group.cancel_scope.cancel()
            await gone.wait()

    assert server.posts("notifications/cancelled") == []


@pytest.mark.requirement("N-8")
async def test_a_call_whose_stream_breaks_is_lost_and_not_sent_again() -> None:
    async def cut(call: HttpCall, reply: HttpReply) -> None:
        if call.rpc_method != "tools/call":
            await modern(call, reply)
            return
        await reply.start_events()
        await reply.cut()

    with anyio.fail_after(30):
        async with serve_http(cut) as server, connected(server, Opening.MODERN) as client:
            with pytest.raises(RemoteProtocolError):
                await client.call_tool("t", {})
            await client.list_tools()

    assert len(server.posts("tools/call")) == 1


@pytest.mark.requirement("L-24")
@pytest.mark.parametrize("status", [400, 404, 405])
async def test_an_old_server_is_found_by_a_body_that_is_no_modern_error(status: int) -> None:
    async def old(call: HttpCall, reply: HttpReply) -> None:
        if call.rpc_method == "server/discover":
            await reply.send(status)
        elif call.rpc_method == "initialize":
            result: dict[str, object] = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
            }
            await reply.json(answer(call, result))
        elif call.method == "POST" and "id" in call.message:
            await reply.json(answer(call, {"tools": []}))
        else:
            await reply.send(202 if call.method == "POST" else 405)

    with anyio.fail_after(30):
        async with serve_http(old) as server, connected(server, Opening.MODERN_FIRST) as client:
            await client.list_tools()

    assert client.protocol_version == "2025-11-25"


@pytest.mark.requirement("L-24")
async def test_a_modern_error_in_the_body_never_leads_back_to_initialize() -> None:
    async def foreign(call: HttpCall, reply: HttpReply) -> None:
        data = {"supported": ["2099-01-01"], "requested": "2026-07-28"}
        await reply.json(refusal(call, -32022, data), status=400)

    with anyio.fail_after(30):
        async with serve_http(foreign) as server:
            with pytest.raises(McpError):
                async with connected(server, Opening.MODERN_FIRST):
                    pass

    assert [call.rpc_method for call in server.calls] == ["server/discover"]


@pytest.mark.requirement("L-24")
@pytest.mark.parametrize("status", [401, 403, 500, 503])
async def test_what_says_nothing_of_the_era_leads_to_no_other_question(status: int) -> None:
    async def failing(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status)

    with anyio.fail_after(30):
        async with serve_http(failing) as server:
            with pytest.raises((HttpStatusError, AuthorizationRequiredError, ServerGoneError)):
                async with connected(server, Opening.MODERN_FIRST):
                    pass

    assert len(server.calls) == 1


@pytest.mark.requirement("L-24")
async def test_a_server_that_wants_the_headers_of_this_version_is_asked_with_them() -> None:
    async def strict(call: HttpCall, reply: HttpReply) -> None:
        if "mcp-protocol-version" not in call.headers:
            await reply.json(refusal(call, -32020), status=400)
        else:
            await modern(call, reply)

    with anyio.fail_after(30):
        async with (
            serve_http(strict) as server,
            connected(server, Opening.LEGACY_FIRST) as client,
        ):
            await client.list_tools()

    assert [call.rpc_method for call in server.calls][:2] == ["initialize", "server/discover"]
