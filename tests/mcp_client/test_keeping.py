"""A server that is gone is reached again, so often and no more; what was in flight is lost."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    Client,
    ClientLimits,
    HandshakeError,
    PeerError,
    ServerGoneError,
    ServerSpec,
    StartError,
    connect,
    keep_connected,
)
from mcp_client.testing import ScriptedServer

QUICK = ClientLimits(reconnects_max=3, reconnect_seconds=0.001)


def resourceful() -> ScriptedServer:
    server = ScriptedServer(capabilities={"tools": {}, "resources": {"subscribe": True}})
    server.on("resources/subscribe", lambda request: request.answer({}))
    return server


def reaching(*servers: ScriptedServer) -> Callable[[], AbstractAsyncContextManager[Client]]:
    """Reach one after the other."""
    left = [*servers]

    @asynccontextmanager
    async def reach() -> AsyncGenerator[Client]:
        async with connect(left.pop(0), guard=UNGUARDED) as client:
            yield client

    return reach


@pytest.mark.requirement("L-27")
async def test_after_a_crash_the_work_begins_anew_and_what_was_in_flight_is_lost() -> None:
    first, second = ScriptedServer(), ScriptedServer()
    first.on("tools/call", lambda _: first.die())
    second.add_tool("t", lambda _: "done")
    lost: list[Exception] = []

    async def use(client: Client) -> str:
        try:
            return (await client.call_tool("t", {})).text
        except ServerGoneError as error:
            lost.append(error)
            raise

    with anyio.fail_after(30):
        text = await keep_connected(reaching(first, second), use, limits=QUICK)

    assert (text, len(lost)) == ("done", 1)
    assert len(second.requests("tools/call")) == 1


@pytest.mark.requirement("L-27", "S-9")
async def test_what_was_subscribed_is_subscribed_before_the_work_goes_on() -> None:
    first, second = resourceful(), resourceful()

    async def use(client: Client) -> frozenset[str]:
        if not client.subscriptions:
            await client.subscribe("a:1")
            first.die()
            await anyio.sleep_forever()
        return client.subscriptions

    with anyio.fail_after(30):
        found = await keep_connected(reaching(first, second), use, limits=QUICK)

    assert found == {"a:1"}
    assert [each["method"] for each in second.received][-1] == "resources/subscribe"


async def test_what_the_work_raises_comes_out_by_itself_and_nothing_is_reached_again() -> None:
    server = ScriptedServer()

    async def use(client: Client) -> None:
        await client.call_tool("none", {})

    with anyio.fail_after(30), pytest.raises(PeerError):
        await keep_connected(reaching(server), use, limits=QUICK)


async def test_a_server_that_cannot_be_reached_at_all_is_not_tried_again() -> None:
    tries: list[int] = []

    def reach() -> AbstractAsyncContextManager[Client]:
        tries.append(1)
        return connect(ServerSpec(name="s", command="/nowhere/at/all"), guard=UNGUARDED)

    async def use(_client: Client) -> None:
        raise AssertionError("never reached")

    with anyio.fail_after(30), pytest.raises(StartError):
        await keep_connected(reach, use, limits=QUICK)

    assert len(tries) == 1


@pytest.mark.requirement("L-27")
async def test_a_server_that_crashes_each_time_is_given_up_one_past_the_bound() -> None:
    servers = [ScriptedServer() for _ in range(9)]
    used: list[Client] = []

    async def use(client: Client) -> None:
        servers[len(used)].die()
        used.append(client)
        await anyio.sleep_forever()

    with anyio.fail_after(30), pytest.raises(ServerGoneError):
        await keep_connected(reaching(*servers), use, limits=QUICK)

    assert len(used) == 1 + QUICK.reconnects_max


async def test_a_connection_that_lasted_is_not_counted() -> None:
    servers = [ScriptedServer() for _ in range(6)]
    used: list[Client] = []
    limits = ClientLimits(reconnects_max=3, reconnect_seconds=0.001, connection_settled_seconds=0.0)

    async def use(client: Client) -> int:
        used.append(client)
        if len(used) < len(servers):
            servers[len(used) - 1].die()
            await anyio.sleep_forever()
        return len(used)

    with anyio.fail_after(30):
        assert await keep_connected(reaching(*servers), use, limits=limits) == len(servers)


async def test_another_server_at_the_same_place_ends_it() -> None:
    first, second = ScriptedServer(), ScriptedServer(version="1999-01-01")

    async def use(_client: Client) -> None:
        first.die()
        await anyio.sleep_forever()

    with anyio.fail_after(30), pytest.raises(HandshakeError):
        await keep_connected(reaching(first, second), use, limits=QUICK)


CRASHES_ONCE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "s", "version": "1"}}
    elif message["method"] == "tools/call":
        try:
            os.close(os.open(sys.argv[1], os.O_CREAT | os.O_EXCL))
            os._exit(3)
        except FileExistsError:
            result = {"content": [{"type": "text", "text": "again"}]}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.subprocess
@pytest.mark.requirement("L-27")
async def test_a_process_that_crashed_is_started_again(tmp_path: Path) -> None:
    spec = ServerSpec(
        name="s",
        command=sys.executable,
        args=("-I", "-S", "-c", CRASHES_ONCE, str(tmp_path / "crashed")),
    )

    async def use(client: Client) -> str:
        return (await client.call_tool("t", {})).text

    with anyio.fail_after(10):
        text = await keep_connected(partial(connect, spec, guard=UNGUARDED), use, limits=QUICK)

    assert text == "again"
