"""A logout while a hundred calls of ten subagents are under way, judged by the log of the server."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import anyio
import pytest

from mcp_client.auth.registration import ClientIdentity
from mcp_client.auth.requests import Token
from mcp_client.auth.store import Kept, MemoryTokenStore, Stored
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.limits import OrchestratorLimits
from tests.orchestrator.broker.stage import Calling, refusal, until, wish
from tests.orchestrator.sessions.login_stage import login_stage

AGENTS = 10
CALLS = 10
SESSION = "session-of-the-server"
LIMITS = OrchestratorLimits(agents_max=AGENTS)
METHODS = {"", "initialize", "notifications/initialized", "tools/list", "tools/call"}


@dataclass
class Guarded:
    """An MCP server whose every message needs the token; its calls are held or answered."""

    hold: bool = True
    arrived: list[int] = field(default_factory=list[int])

    async def handle(self, call: HttpCall, reply: HttpReply) -> None:
        if call.headers.get("authorization") != "Bearer sesame":
            await reply.send(401, headers={"WWW-Authenticate": "Bearer"})
            return
        result: object = {}
        match call.rpc_method:
            case "initialize":
                result = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "s", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "hold", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                self.arrived.append(json.loads(call.body)["params"]["arguments"]["n"])
                if self.hold:
                    await reply.until_gone()
                    return
                result = {"content": []}
            case _:
                await reply.send(405 if call.method == "GET" else 202)
                return
        answer = {"jsonrpc": "2.0", "id": call.message["id"], "result": result}
        await reply.json(answer, headers={"Mcp-Session-Id": SESSION})


def logged_in(server: HttpServer) -> MemoryTokenStore:
    store = MemoryTokenStore()
    client = ClientIdentity(client_id="c", issuer="https://as.example")
    kept = Kept(client=client, token=Token(access_token="sesame", login="first"))
    store.swap(server.url, 0, Stored().with_kept("https://as.example", kept))
    return store


@pytest.mark.requirement("S-23", "S-27", "I1", "I2")
@pytest.mark.parametrize("arrived", [0, 10, 100])
async def test_after_a_logout_nothing_with_the_old_credential_leaves_and_each_call_is_accounted_for(
    arrived: int,
) -> None:
    guarded = Guarded()
    async with (
        serve_http(guarded.handle) as server,
        login_stage(server.url, store=logged_in(server), limits=LIMITS) as stage,
        anyio.create_task_group() as group,
    ):
        calls: list[Calling] = []
        for number in range(AGENTS):
            view = stage.agent(f"worker{number}").view
            calls += [
                Calling(view, wish("far/hold", {"n": number * CALLS + each}))
                for each in range(CALLS)
            ]
        for call in calls:
            group.start_soon(call.run)
        if not arrived:
            await until(lambda: len(stage.audit.of_kind("decision")) == len(calls))
        await server.until(lambda: len(guarded.arrived) >= arrived)

        receipt = await stage.session.log_out("far")

        for call in calls:
            await call.done.wait()
        guarded.hold = False
        again = [await refusal(call.view, "far/hold", {"n": -1}) for call in calls[::CALLS]]
        await anyio.wait_all_tasks_blocked()  # the server has read what had left by then
        refusals = [await call.refused() for call in calls]
        records = repr([record.fields for record in stage.audit.records])

        deliveries = [error.delivery for error in refusals]
        sent = {number for number, each in enumerate(deliveries) if each is Delivery.MAYBE_SENT}
        assert {error.reason for error in (*refusals, *again)} == {DenyReason.LOGGED_OUT}
        assert set(deliveries) <= {Delivery.MAYBE_SENT, Delivery.NOT_SENT}
        assert (receipt.stopped, receipt.maybe_sent) == (AGENTS * CALLS, len(sent))
        assert receipt.refused == AGENTS * CALLS - len(sent)
        assert receipt.drained + receipt.aborted == receipt.maybe_sent
        # whatever reached the server is a call that the receipt counts, and came once
        assert set(guarded.arrived) <= sent
        assert len(guarded.arrived) == len(set(guarded.arrived)) >= arrived
        assert {call.rpc_method for call in server.calls} <= METHODS
        assert server.of("DELETE") == []
        assert "sesame" not in records
