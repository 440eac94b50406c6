"""A session that begins anew listens to one answer only: that of its own `initialize`, while it waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import pytest

from mcp_client import UNGUARDED, Client, HttpSpec, connect
from mcp_client.protocol.errors import CallTimeoutError, Delivery
from mcp_client.protocol.events import Violation
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http
from tests.mcp_client.http.harness import Mcp

NOTHING: Mapping[str, object] = {}
FORGED: Mapping[str, object] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "forged", "version": "1"},
}


def answer(request_id: object, member: str = "result") -> Mapping[str, object]:
    value = FORGED if member == "result" else {"code": -32603, "message": "forged"}
    return {"jsonrpc": "2.0", "id": request_id, member: value}


@asynccontextmanager
async def client_of(
    script: Mcp, limits: ClientLimits | None = None
) -> AsyncGenerator[tuple[HttpServer, Client]]:
    async with serve_http(script) as server:
        spec = HttpSpec(name="srv", url=server.url)
        async with connect(spec, guard=UNGUARDED, limits=limits or ClientLimits()) as client:
            yield server, client


@pytest.mark.requirement("H-5")
@pytest.mark.parametrize("member", ["result", "error"])
async def test_the_answer_to_a_new_initialize_is_not_taken_from_another_stream(
    member: str,
) -> None:
    script = Mcp()
    streams: list[HttpReply] = []
    open_, told, go = anyio.Event(), anyio.Event(), anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        streams.append(reply)
        await reply.start_events()
        open_.set()
        await reply.until_gone()

    async with client_of(script) as (_server, client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "add", NOTHING)
            with anyio.fail_after(30):
                await open_.wait()
            script.forgotten.add("session-1")

            @script.on("initialize")
            async def _(call: HttpCall, reply: HttpReply) -> None:
                del script.special["initialize"]
                await streams[0].event(answer(call.message["id"], member))
                told.set()
                await go.wait()
                await script(call, reply)

            with anyio.fail_after(30):
                group.start_soon(client.list_tools)
                await told.wait()
                while Violation.FOREIGN_STREAM not in client.session.violations:
                    await anyio.lowlevel.checkpoint()
                go.set()
                await client.list_tools()
            group.cancel_scope.cancel()
        assert client.server_info.name == "s"
        assert client.session.lost is None


@pytest.mark.requirement("H-5")
@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_a_new_initialize_that_is_given_up_closes_its_stream_and_ends_nothing_else(
    how: str,
) -> None:
    script = Mcp()
    came, gone = anyio.Event(), anyio.Event()
    limits = ClientLimits(initialize_seconds_max=0.1 if how == "timeout" else 5.0)
    async with client_of(script, limits) as (server, client):
        script.forgotten.add("session-1")

        @script.on("initialize")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            del script.special["initialize"]
            came.set()
            await reply.until_gone()
            gone.set()

        if how == "timeout":
            with pytest.raises(CallTimeoutError) as caught:
                await client.list_tools()
            assert caught.value.delivery is not Delivery.ANSWERED
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(client.list_tools)
                with anyio.fail_after(30):
                    await came.wait()
                group.cancel_scope.cancel()
        with anyio.fail_after(30):
            await gone.wait()
            await client.list_tools()
        assert client.session.lost is None
        # MCP, cancellation: initialize must not be cancelled
        assert not server.posts("notifications/cancelled")


@pytest.mark.requirement("I17")
@pytest.mark.parametrize("member", ["result", "error"])
async def test_a_late_answer_to_a_given_up_initialize_is_counted_and_dropped(member: str) -> None:
    script = Mcp()
    ids: list[object] = []
    streams: list[HttpReply] = []
    open_ = anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        streams.append(reply)
        await reply.start_events()
        open_.set()
        await reply.until_gone()

    async with client_of(script, ClientLimits(initialize_seconds_max=0.1)) as (_server, client):
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "add", NOTHING)
            with anyio.fail_after(30):
                await open_.wait()
            script.forgotten.add("session-1")

            @script.on("initialize")
            async def _(call: HttpCall, reply: HttpReply) -> None:
                del script.special["initialize"]
                ids.append(call.message["id"])
                await reply.until_gone()

            with pytest.raises(CallTimeoutError):
                await client.list_tools()
            before = sum(client.session.violations.values())
            await streams[-1].event(answer(ids[0], member))
            with anyio.fail_after(30):
                while sum(client.session.violations.values()) == before:
                    await anyio.lowlevel.checkpoint()
                await client.list_tools()
            group.cancel_scope.cancel()
        assert client.session.lost is None
