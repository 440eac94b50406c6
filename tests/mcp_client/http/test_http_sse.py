"""HTTP+SSE of 2024-11-05 over a real socket: one stream in, posts out, one origin."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    ServerGoneError,
    UnsupportedVersionError,
)
from mcp_client.protocol.http.errors import AuthorizationRequiredError, HttpStatusError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.mcp_client.http.harness import RevokedError, result, sse_wired

NOTICE: Mapping[str, object] = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


class SseServer:
    """A server of 2024-11-05 that answers each request in its stream; parts of it can be changed."""

    def __init__(self, endpoint: str = "/messages?session=secret") -> None:
        self.endpoint = endpoint
        self.stream: HttpReply | None = None
        self.status = 202
        self.silent = False

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        if call.method == "GET":
            await reply.start_events()
            self.stream = reply
            if self.endpoint:
                await reply.event(kind="endpoint", data=self.endpoint)
            await reply.until_gone()
            return
        await reply.send(self.status)
        if self.stream is not None and "id" in call.message and not self.silent:
            await self.stream.event(result(call))


@pytest.mark.requirement("H-20")
@pytest.mark.requirement("S-1")
@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("/messages?session=secret", "/messages?session=secret"),
        ("messages", "/v1/messages"),
        ("?s=1", "/v1/sse?s=1"),
    ],
)
@pytest.mark.requirement("S-31")
async def test_messages_go_where_the_first_event_says_and_answers_come_in_the_stream(
    endpoint: str, path: str
) -> None:
    async with sse_wired(SseServer(endpoint), path="/v1/sse") as wire:
        wire.send(1, "initialize")
        frame, within = await wire.sink.frame(0)
        wire.transport.negotiated("2024-11-05")

    assert (b'"id":1' in frame, within) == (True, None)
    assert [each.path for each in wire.server.of("POST")] == [path]


@pytest.mark.requirement("H-20")
async def test_an_endpoint_may_be_a_whole_address_of_the_same_origin() -> None:
    server = SseServer("")

    async with sse_wired(server) as wire:
        server.endpoint = wire.server.url.replace("/sse", "/other")
        wire.send(1, "initialize")
        await wire.sink.frame(0)

    assert [each.path for each in wire.server.of("POST")] == ["/other"]


@pytest.mark.requirement("H-20")
async def test_nothing_is_sent_to_an_endpoint_of_another_origin() -> None:
    async def elsewhere(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(202)

    async with (
        serve_http(elsewhere) as other,
        sse_wired(SseServer(other.url), headers={"Authorization": "Bearer sesame"}) as wire,
    ):
        ticket = wire.send(1, "initialize")
        await wire.sink.until(lambda: wire.sink.lost)
        error = wire.sink.lost[0]

    assert isinstance(error, RemoteProtocolError)
    assert (other.connections, wire.server.of("POST"), ticket.end) == (0, [], "lost")


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1@evil.example/",
        "//evil.example/x",
        "javascript:alert(1)",
        "https://127.0.0.1/x",
        "http://[::1",
        "/a b",
    ],
)
async def test_an_endpoint_that_is_no_address_of_the_origin_ends_the_connection(
    endpoint: str,
) -> None:
    async with sse_wired(SseServer(endpoint)) as wire:
        wire.send(1, "initialize")
        await wire.sink.until(lambda: wire.sink.lost)

    assert isinstance(wire.sink.lost[0], RemoteProtocolError)
    assert wire.server.of("POST") == []


async def test_the_stream_and_each_message_go_under_their_guards() -> None:
    async with sse_wired(SseServer()) as wire:
        wire.session_guard.revoked = True
        ticket = wire.send(1, "initialize")
        error = await ticket.error()

    assert (type(error), ticket.delivery) == (RevokedError, Delivery.NOT_SENT)
    assert (wire.server.calls, wire.server.connections <= 1) == ([], True)


@pytest.mark.requirement("H-13")
@pytest.mark.parametrize("status", [401, 404, 405, 500])
async def test_a_server_without_a_stream_ends_the_connection_with_its_status(status: int) -> None:
    async def refusing(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status)

    async with sse_wired(refusing) as wire:
        wire.send(1, "initialize")
        await wire.sink.until(lambda: wire.sink.lost)
        error = wire.sink.lost[0]

    assert isinstance(error, HttpStatusError)
    assert (error.status, isinstance(error, AuthorizationRequiredError)) == (status, status == 401)


async def test_what_is_no_stream_is_not_read_whatever_stands_in_it() -> None:
    async def answer(call: HttpCall, reply: HttpReply) -> None:
        looks_like_one = b"event: endpoint\ndata: /messages\n\n"
        await reply.send(200, looks_like_one, headers={"Content-Type": "text/plain"})

    async with sse_wired(answer) as wire:
        wire.send(1, "initialize")
        await wire.sink.until(lambda: wire.sink.lost)

    assert isinstance(wire.sink.lost[0], RemoteProtocolError)
    assert wire.server.of("POST") == []


async def test_a_message_that_is_turned_away_ends_that_request_alone() -> None:
    server = SseServer()
    async with sse_wired(server) as wire:
        wire.send(1, "initialize")
        await wire.sink.frame(0)
        server.status, server.silent = 500, True
        error = await wire.send(2, "tools/call").error()
        server.status, server.silent = 202, False
        wire.send(3, "tools/list")
        await wire.sink.frame(1)

    assert isinstance(error, HttpStatusError)
    assert (error.status, error.delivery) == (500, Delivery.MAYBE_SENT)


@pytest.mark.requirement("H-8")
async def test_the_end_of_the_stream_is_the_end_of_the_connection() -> None:
    server = SseServer()
    async with sse_wired(server) as wire:
        wire.send(1, "initialize")
        await wire.sink.frame(0)
        assert server.stream is not None
        await server.stream.end()
        await wire.sink.until(lambda: wire.sink.lost)
        with pytest.raises(LocalProtocolError):
            wire.send(2, "tools/list")

    assert isinstance(wire.sink.lost[0], ServerGoneError)


@pytest.mark.requirement("S-29")
async def test_an_event_over_the_bound_ends_the_connection() -> None:
    server = SseServer()
    async with sse_wired(server, limits=ClientLimits(frame_bytes_max=1_000)) as wire:
        wire.send(1, "initialize")
        await wire.sink.frame(0)
        assert server.stream is not None
        await server.stream.event(data="x" * 1_001)
        await wire.sink.until(lambda: wire.sink.lost)

    assert isinstance(wire.sink.lost[0], FrameTooLargeError)


async def test_what_waits_for_the_endpoint_is_bounded() -> None:
    limits = ClientLimits(outbox_bytes_max=200)
    async with sse_wired(SseServer(""), limits=limits) as wire:
        wire.send(1, "initialize", params={"text": "x" * 60})
        with pytest.raises(LocalProtocolError):
            wire.send(2, "tools/call", params={"text": "x" * 60})


async def test_events_of_other_kinds_and_a_second_endpoint_are_nothing() -> None:
    server = SseServer()
    async with sse_wired(server) as wire:
        wire.send(1, "initialize")
        await wire.sink.frame(0)
        assert server.stream is not None
        await server.stream.event(kind="endpoint", data="/other")
        await server.stream.event(kind="ping", data="{}")
        await server.stream.event(NOTICE)
        frame, _ = await wire.sink.frame(1)
        wire.send(2, "tools/list")
        await wire.sink.frame(2)

    assert b"notifications/message" in frame
    assert {each.path for each in wire.server.of("POST")} == {"/messages?session=secret"}


async def test_a_notification_is_written_once_the_server_has_taken_it() -> None:
    async with sse_wired(SseServer()) as wire:
        wire.send(1, "initialize")
        await wire.sink.frame(0)
        notice = wire.send(None, "notifications/initialized")
        with anyio.fail_after(30):
            await notice.ended.wait()

    assert notice.end == "written"


@pytest.mark.requirement("S-2")
async def test_only_2024_11_05_is_spoken_over_it() -> None:
    async with sse_wired(SseServer()) as wire:
        with pytest.raises(UnsupportedVersionError):
            wire.transport.negotiated("2025-11-25")


async def test_a_close_ends_what_waits_and_what_is_in_flight() -> None:
    server = SseServer()
    server.silent = True
    async with sse_wired(server) as wire:
        asked = wire.send(1, "initialize")
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.of("POST"))

    assert isinstance(wire.sink.lost[0], McpError)
    assert (len(wire.sink.lost), asked.delivery) == (1, Delivery.MAYBE_SENT)


async def test_a_connection_is_opened_once_and_not_after_its_end_which_is_told_once() -> None:
    async with sse_wired(SseServer()) as wire:
        with pytest.raises(LocalProtocolError):
            await wire.transport.open(wire.sink)
        await wire.transport.close()
        with pytest.raises(LocalProtocolError):
            await wire.transport.open(wire.sink)
        await wire.transport.close()

    assert len(wire.sink.lost) == 1
