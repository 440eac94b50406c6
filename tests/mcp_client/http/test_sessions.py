"""Sessions on the wire: their ids, what an old one hears late, their end."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.testing.http_server import HttpCall, HttpReply
from tests.mcp_client.http.harness import (
    Script,
    Ticket,
    result,
    wired,
)

NOTICE: Mapping[str, object] = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


@pytest.mark.requirement("H-5")
@pytest.mark.requirement("S-4")
async def test_a_new_initialize_begins_a_session_without_the_old_id() -> None:
    script = Script()
    ids = iter(["one", "two"])

    @script.on("initialize")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json(result(call), headers={"Mcp-Session-Id": next(ids)})

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        if call.headers.get("mcp-session-id") == "one":
            await reply.send(404)
        else:
            await reply.json(result(call))

    async with wired(script) as wire:
        await wire.initialize()
        await wire.send(2, "tools/call").error()
        wire.send(3, "initialize")
        await wire.answer_to(3)
        wire.transport.negotiated("2025-11-25")
        wire.send(4, "tools/call")
        await wire.answer_to(4)

    seen: list[str | None] = [each.headers.get("mcp-session-id") for each in wire.server.of("POST")]
    assert seen == [None, "one", "one", None, "two"]


@pytest.mark.requirement("I17")
async def test_what_an_old_session_hears_late_does_not_end_the_new_one() -> None:
    script = Script()
    came, go = anyio.Event(), anyio.Event()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        came.set()
        await go.wait()
        await reply.send(404)

    async with wired(script) as wire:
        await wire.initialize()
        late = wire.send(2, "tools/call")
        with anyio.fail_after(30):
            await came.wait()
        wire.send(3, "initialize")
        await wire.answer_to(3)
        wire.transport.negotiated("2025-11-25")
        go.set()
        await late.error()
        wire.send(4, "tools/list")

        assert await wire.answer_to(4)


@pytest.mark.requirement("H-12")
@pytest.mark.parametrize("status", [200, 204, 405, 404, 500])
@pytest.mark.requirement("L-7")
async def test_a_close_deletes_the_session_whatever_the_server_says_to_that(status: int) -> None:
    script = Script()

    @script.on("DELETE")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status)

    async with wired(script) as wire:
        await wire.initialize()

    assert len(wire.server.of("DELETE")) == 1


@pytest.mark.requirement("I15")
async def test_no_session_is_deleted_once_the_leave_is_gone() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        wire.session_guard.revoked = True

    assert wire.server.of("DELETE") == []


async def test_a_server_that_does_not_answer_the_delete_is_not_waited_for_long() -> None:
    script = Script()

    @script.on("DELETE")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.until_gone()

    with anyio.fail_after(30):
        async with wired(script) as wire:
            await wire.initialize()


@pytest.mark.parametrize("session_id", ["", "lost"])
async def test_a_session_that_is_none_is_not_deleted(session_id: str) -> None:
    script = Script(session_id=session_id)

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404)

    async with wired(script) as wire:
        await wire.initialize()
        await wire.send(2, "tools/call").error()

    assert wire.server.of("DELETE") == []


async def test_a_close_ends_what_is_in_flight() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.until_gone()

    tickets: list[Ticket] = []
    async with wired(script) as wire:
        await wire.initialize()
        tickets += [wire.send(number, "tools/call") for number in range(2, 12)]
        with anyio.fail_after(30):
            await wire.server.until(lambda: len(wire.server.posts("tools/call")) == 10)

    assert ({ticket.end for ticket in tickets}, len(wire.sink.lost)) == ({"lost"}, 1)


async def test_a_session_that_began_with_a_handshake_names_no_tool_and_no_argument_in_its_headers() -> (
    None
):
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json(result(call))

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call", name="pay", headers=[("Mcp-Param-Iban", "DE02")])
        await wire.answer_to(2)

    (call,) = [each for each in wire.server.of("POST") if each.message.get("id") == 2]
    assert not {"mcp-name", "mcp-param-iban"} & call.headers.keys()
    assert call.headers["mcp-method"] == "tools/call"


async def test_a_transport_is_opened_once_and_its_end_is_told_once_and_deletes_one_session() -> (
    None
):
    async with wired(Script()) as wire:
        with pytest.raises(LocalProtocolError):
            await wire.transport.open(wire.sink)
        await wire.initialize()
        await wire.transport.close()
        await wire.transport.close()
        with pytest.raises(LocalProtocolError):
            await wire.transport.open(wire.sink)

    assert (len(wire.sink.lost), len(wire.server.of("DELETE"))) == (1, 1)


async def test_a_session_that_is_lost_before_its_handshake_is_over_asks_for_no_stream() -> None:
    script = Script()
    go = anyio.Event()

    @script.on("notifications/initialized")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await go.wait()
        await reply.send(202)

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404)

    async with wired(script) as wire:
        wire.send(1, "initialize")
        await wire.answer_to(1)
        wire.transport.negotiated("2025-11-25")
        notice = wire.send(None, "notifications/initialized")
        await wire.send(2, "tools/call").error()
        go.set()
        with anyio.fail_after(30):
            await notice.ended.wait()
            await anyio.wait_all_tasks_blocked()  # what is asked for is asked for by then

    assert wire.server.of("GET") == []


async def test_two_closes_at_once_delete_one_session() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        async with anyio.create_task_group() as closing:
            closing.start_soon(wire.transport.close)
            closing.start_soon(wire.transport.close)

    assert len(wire.server.of("DELETE")) == 1


async def test_nothing_is_sent_before_it_is_open_or_after_its_end() -> None:
    async with wired(Script(), opened=False) as wire:
        with pytest.raises(LocalProtocolError, match="not open"):
            wire.send(1, "initialize")
        await wire.transport.open(wire.sink)
        await wire.transport.close()
        with pytest.raises(LocalProtocolError, match="not open"):
            wire.send(2, "initialize")

    assert wire.server.calls == []


async def test_what_follows_a_message_that_ends_the_connection_is_not_handed_over() -> None:
    class NoiseError(Exception):
        pass

    def refuse(frame: bytes) -> None:
        if b"noise" in frame:
            raise NoiseError

    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        event = b'data: {"jsonrpc":"2.0","method":"notifications/noise"}\n\n'
        await reply.chunk(2 * event)
        await reply.until_gone()

    async with wired(script) as wire:
        await wire.initialize()
        wire.sink.on_frame = refuse
        wire.send(2, "tools/call")
        await wire.sink.until(lambda: wire.sink.lost)

    assert [type(error) for error in wire.sink.lost] == [NoiseError]
    assert len([frame for frame, _ in wire.sink.frames if b"noise" in frame]) == 1
