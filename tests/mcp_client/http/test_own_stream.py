"""The server's own stream: offered or not, resumed, redirected, never for ever."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from mcp_client.net.getting import REDIRECTS_MAX
from mcp_client.protocol.http.errors import SessionLostError
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.mcp_client.http.harness import (
    Script,
    wired,
)

NOTICE: Mapping[str, object] = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


@pytest.mark.requirement("H-6")
async def test_what_the_server_says_in_its_own_stream_belongs_to_no_request() -> None:
    script = Script()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event(NOTICE)
        await reply.until_gone()

    async with wired(script) as wire:
        await wire.initialize()

        assert (await wire.sink.frame(1))[1] == 0


@pytest.mark.requirement("H-6")
async def test_a_server_need_not_offer_a_stream_of_its_own() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        wire.send(2, "tools/list")
        await wire.answer_to(2)
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.of("GET"))
        wire.send(3, "tools/list")
        await wire.answer_to(3)
        gets = wire.server.of("GET")

    assert (len(gets), wire.sink.lost[0].args) == (1, ("the connection was closed",))


@pytest.mark.requirement("H-9")
@pytest.mark.requirement("S-9")
async def test_the_servers_own_stream_is_resumed_by_its_own_last_id() -> None:
    script = Script()
    gets: list[str] = []

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        gets.append(call.headers.get("last-event-id", ""))
        await reply.start_events()
        await reply.event(NOTICE, id=f"own-{len(gets)}", retry=10)
        await (reply.end() if len(gets) < 3 else reply.until_gone())

    async with wired(script) as wire:
        await wire.initialize()
        await wire.sink.frame(3)

    assert gets == ["", "own-1", "own-2"]


@pytest.mark.parametrize("said", [None, NOTICE], ids=["nothing said", "something said"])
async def test_a_server_that_closes_its_own_stream_at_once_is_not_asked_for_ever(
    said: Mapping[str, object] | None,
) -> None:
    script = Script()
    gets: list[HttpCall] = []

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        gets.append(call)
        await reply.start_events()
        await reply.event(said, id=str(len(gets)), retry=0)
        await reply.end()

    limits = HttpTransportLimits(reconnects_max=4, retry_seconds_min=0.005)
    async with wired(script, http_limits=limits) as wire:
        await wire.initialize()
        with anyio.fail_after(30):
            await wire.server.until(lambda: len(gets) == 5)
        for number in range(2, 12):  # longer than the next one would have been waited for
            wire.send(number, "tools/list")
            await wire.answer_to(number)
            await anyio.wait_all_tasks_blocked()

    assert len(gets) == 5


@pytest.mark.requirement("H-5")
async def test_a_404_to_the_servers_own_stream_loses_the_session() -> None:
    script = Script()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404)

    async with wired(script) as wire:
        await wire.initialize()
        with anyio.fail_after(30):
            while not wire.transport.state.lost:
                await anyio.lowlevel.checkpoint()
        with pytest.raises(SessionLostError):
            wire.send(2, "tools/list")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_the_stream_may_be_sent_elsewhere_within_its_origin(status: int) -> None:
    script = Script()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if call.path == "/mcp":
            await reply.send(status, headers={"Location": "/stream?a=b"})
        else:
            await reply.start_events()
            await reply.event(NOTICE)
            await reply.until_gone()

    async with wired(script) as wire:
        await wire.initialize()
        await wire.sink.frame(1)

    assert [each.path for each in wire.server.of("GET")] == ["/mcp", "/stream?a=b"]


async def test_nothing_is_sent_to_another_origin_whatever_a_redirect_says() -> None:
    async def elsewhere(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(200)

    script = Script()
    async with serve_http(elsewhere) as other:

        @script.on("GET")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            await reply.send(307, headers={"Location": other.url})

        async with wired(script, headers={"Authorization": "Bearer sesame"}) as wire:
            await wire.initialize()
            with anyio.fail_after(30):
                await wire.server.until(lambda: wire.server.of("GET"))
            wire.send(2, "tools/list")
            await wire.answer_to(2)

        assert (other.calls, other.connections) == ([], 0)


async def test_redirects_that_turn_in_a_circle_end() -> None:
    script = Script()

    @script.on("GET")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(307, headers={"Location": call.path})

    async with wired(script) as wire:
        await wire.initialize()
        most = 1 + REDIRECTS_MAX
        with anyio.fail_after(30):
            await wire.server.until(lambda: len(wire.server.of("GET")) == most)
        for number in range(2, 6):
            wire.send(number, "tools/list")
            await wire.answer_to(number)
        gets = wire.server.of("GET")

    assert len(gets) == most
