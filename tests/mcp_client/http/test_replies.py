"""What a POST is answered with, kind by kind, over a real socket."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from mcp_client.net.endpoint import Endpoint
from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
)
from mcp_client.protocol.http.errors import (
    AuthorizationRequiredError,
    HttpStatusError,
    SessionLostError,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing.http_server import HttpCall, HttpReply
from tests.mcp_client.http.harness import SESSION, Script, Wire, result, rpc_error, wired


async def failed(wire: Wire, method: str = "tools/call") -> McpError:
    """Send a request and return the error that it ends with."""
    error = await wire.send(2, method).error()
    assert isinstance(error, McpError)
    return error


@pytest.mark.requirement("H-1")
async def test_each_message_is_a_post_of_its_own_that_takes_json_and_events() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        posts = wire.server.of("POST")

    assert [each.rpc_method for each in posts] == ["initialize", "notifications/initialized"]
    assert {each.headers["accept"] for each in posts} == {"application/json, text/event-stream"}
    assert {each.headers["content-type"] for each in posts} == {"application/json"}


@pytest.mark.requirement("H-2")
@pytest.mark.requirement("S-3")
async def test_a_json_answer_reaches_its_request() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        wire.send(2, "tools/list")

        assert (await wire.answer_to(2))["result"] == {"echo": "tools/list"}


@pytest.mark.requirement("H-2")
@pytest.mark.requirement("S-3")
async def test_an_answer_in_a_stream_comes_with_what_the_server_says_before_it() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.start_events()
        await reply.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}})
        await reply.event(result(call))
        await reply.end()

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")
        await wire.answer_to(2)
        came = wire.sink.frames[1:]

    assert [within for _, within in came] == [2, 2]


@pytest.mark.requirement("H-2")
@pytest.mark.parametrize("status", [200, 202, 204])
async def test_a_notification_is_written_once_the_server_has_taken_it(status: int) -> None:
    script, held = Script(), anyio.Event()

    @script.on("notifications/cancelled")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await held.wait()
        await reply.send(status, headers={} if status != 204 else {"Content-Length": "0"})

    async with wired(script) as wire:
        await wire.initialize()
        notice = wire.send(None, "notifications/cancelled")
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.posts("notifications/cancelled"))
        ends = [notice.end]
        held.set()
        with anyio.fail_after(30):
            await notice.ended.wait()

    assert [*ends, notice.end] == ["", "written"]


@pytest.mark.parametrize(
    ("status", "content_type"), [(200, "text/html"), (202, ""), (200, ""), (204, "")]
)
async def test_a_request_answered_with_neither_json_nor_events_ends_with_an_unknown_outcome(
    status: int, content_type: str
) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status, headers={"Content-Type": content_type} if content_type else {})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert (type(error), error.delivery) == (RemoteProtocolError, Delivery.MAYBE_SENT)


async def test_a_body_that_does_not_hold_the_answer_ends_the_request_with_an_unknown_outcome() -> (
    None
):
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json({"jsonrpc": "2.0", "id": 99, "result": {}})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert (type(error), error.delivery) == (RemoteProtocolError, Delivery.MAYBE_SENT)


async def test_a_content_coding_is_refused_before_a_byte_of_it_is_read() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        coded = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        await reply.send(200, b"\x1f\x8b", headers=coded)

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)
        asked = {each.headers["accept-encoding"] for each in wire.server.calls}

    assert (type(error), asked) == (RemoteProtocolError, {"identity"})


@pytest.mark.requirement("S-29")
@pytest.mark.parametrize("events", [False, True], ids=["JSON", "events"])
@pytest.mark.parametrize("past", [0, 1])
async def test_an_answer_may_have_as_many_bytes_as_the_bound_and_not_one_more(
    past: int, *, events: bool
) -> None:
    script = Script()
    limits = ClientLimits(frame_bytes_max=10_000)

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        head = b'{"jsonrpc":"2.0","id":2,"result":"'
        body = head + b"x" * (limits.frame_bytes_max + past - len(head) - 2) + b'"}'
        if events:
            await reply.start_events()
            await reply.event(data=body.decode())
            await reply.end()
        else:
            await reply.send(200, body, headers={"Content-Type": "application/json"})

    async with wired(script, limits=limits) as wire:
        await wire.initialize()
        if past:
            assert isinstance(await failed(wire), FrameTooLargeError)
        else:
            wire.send(2, "tools/call")
            await wire.answer_to(2)


@pytest.mark.requirement("S-29")
async def test_a_message_over_the_bound_is_not_sent() -> None:
    async with wired(Script(), limits=ClientLimits(frame_bytes_max=1_000)) as wire:
        await wire.initialize()
        before = len(wire.server.calls)
        with pytest.raises(FrameTooLargeError):
            wire.send(2, "tools/call", params={"text": "x" * 1_000})

        assert len(wire.server.calls) == before


@pytest.mark.requirement("H-13")
@pytest.mark.parametrize("status", [400, 405, 406, 409, 415, 429, 500, 502, 503])
async def test_a_status_that_is_no_success_ends_that_request_alone(status: int) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status, b"<html>", headers={"Content-Type": "text/html"})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)
        wire.send(3, "tools/list")
        await wire.answer_to(3)

    assert isinstance(error, HttpStatusError)
    assert (error.status, error.delivery, error.server) == (status, Delivery.MAYBE_SENT, "srv")


@pytest.mark.requirement("H-13")
@pytest.mark.parametrize("status", [400, 500])
async def test_an_error_of_the_protocol_counts_as_the_answer_whatever_the_status(
    status: int,
) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json(rpc_error(call, -32602, "unknown tool"), status=status)

    async with wired(script) as wire:
        await wire.initialize()
        wire.send(2, "tools/call")

        assert "error" in await wire.answer_to(2)


async def test_an_error_without_an_id_is_told_with_the_status() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        error = {"code": -32022, "message": "secret text", "data": {"supported": ["x"]}}
        await reply.json({"jsonrpc": "2.0", "id": None, "error": error}, status=400)

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert isinstance(error, HttpStatusError)
    # null is no id: what carries it is no message, and is not taken for one
    assert error.code in (-32022, None)
    assert "secret text" not in str(error)


@pytest.mark.requirement("H-13")
@pytest.mark.parametrize(
    ("status", "header", "delivery"),
    [
        (401, 'Bearer resource_metadata="https://a.example/x", scope="a b"', Delivery.REFUSED),
        (403, 'Bearer error="insufficient_scope", scope="a b"', Delivery.REFUSED),
        (403, "", Delivery.MAYBE_SENT),
    ],
)
async def test_a_refused_credential_is_an_error_of_its_own_with_what_the_server_asks_for(
    status: int, header: str, delivery: Delivery
) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status, headers={"WWW-Authenticate": header} if header else {})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert isinstance(error, AuthorizationRequiredError)
    scopes: list[str | None] = [each.parameters.get("scope") for each in error.challenges]
    assert (scopes, error.delivery) == (["a b"] if header else [], delivery)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_post_is_never_sent_elsewhere(status: int) -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(status, headers={"Location": "/elsewhere"})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)
        paths = {each.path for each in wire.server.calls}

    assert isinstance(error, HttpStatusError)
    assert (error.status, error.delivery, paths) == (status, Delivery.MAYBE_SENT, {"/mcp"})


@pytest.mark.requirement("H-5")
async def test_a_404_to_a_session_id_says_that_the_session_is_lost_and_nothing_was_done() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.json(rpc_error(call, -32001, "Session not found"), status=404)

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)
        with pytest.raises(SessionLostError) as later:
            wire.send(3, "tools/list")

    assert (type(error), error.delivery) == (SessionLostError, Delivery.REFUSED)
    assert later.value.delivery is Delivery.NOT_SENT


@pytest.mark.requirement("H-5")
async def test_a_400_that_names_a_dead_session_loses_it_too_but_nobody_knows_what_was_done() -> (
    None
):
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        text = "Bad Request: No valid session ID provided"
        await reply.json(rpc_error(call, -32000, text), status=400)

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert (type(error), error.delivery) == (SessionLostError, Delivery.MAYBE_SENT)


async def test_a_404_without_a_session_is_a_status_like_others() -> None:
    script = Script(session_id="")

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(404)

    async with wired(script) as wire:
        await wire.initialize()

        assert type(await failed(wire)) is HttpStatusError


async def test_a_failure_with_an_endless_body_is_known_by_its_status() -> None:
    script = Script()

    @script.on("tools/call")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(500, b"x" * 200_000, headers={"Content-Length": "99999999"})

    async with wired(script) as wire:
        await wire.initialize()
        error = await failed(wire)

    assert isinstance(error, HttpStatusError)


@pytest.mark.requirement("H-4")
@pytest.mark.parametrize("session_id", ["a b", "a\tb", "\xe9", "x" * 1_025])
async def test_a_session_id_that_is_not_visible_ascii_ends_the_handshake(session_id: str) -> None:
    async with wired(Script(session_id=session_id)) as wire:
        error = await wire.send(1, "initialize").error()

    assert isinstance(error, RemoteProtocolError)
    assert session_id not in str(error)


@pytest.mark.requirement("H-4")
async def test_the_session_id_goes_on_everything_after_and_is_shown_nowhere() -> None:
    async with wired(Script()) as wire:
        await wire.initialize()
        wire.send(2, "tools/list")
        await wire.answer_to(2)
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.of("GET"))
        shown = repr(wire.transport) + repr(wire.transport.state)

    ids = [(each.method, each.headers.get("mcp-session-id")) for each in wire.server.calls]
    assert ids[0] == ("POST", None)
    assert set(ids[1:]) == {("POST", SESSION), ("GET", SESSION), ("DELETE", SESSION)}
    assert SESSION not in shown


@pytest.mark.requirement("H-3")
@pytest.mark.parametrize(
    ("version", "named"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", None)],
)
@pytest.mark.requirement("S-4")
async def test_the_version_is_named_after_the_handshake_where_it_has_to_be(
    version: str, named: str | None
) -> None:
    async with wired(Script()) as wire:
        await wire.initialize(version)
        with anyio.fail_after(30):
            await wire.server.until(lambda: wire.server.of("GET"))

    versions: list[tuple[str, str | None]] = [
        (each.method, each.headers.get("mcp-protocol-version")) for each in wire.server.calls
    ]
    assert versions[0] == ("POST", None)
    assert set(versions[1:]) == {("POST", named), ("GET", named), ("DELETE", named)}


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "a"},
        {"Content-Length": "1"},
        {"Mcp-Session-Id": "a"},
        {"mcp-protocol-version": "a"},
        {"Last-Event-ID": "a"},
        {"X-A": "a\r\nX-B: b"},
        {"X A": "a"},
        {"": "a"},
        {"X-A": "\u00e9"},
    ],
)
def test_a_header_that_is_not_the_configurations_to_set_is_refused(
    headers: Mapping[str, str],
) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        Endpoint.parse("http://host/secret", headers=headers)

    assert not any(value in str(refused.value) for value in headers.values() if len(value) > 1)


async def test_configured_headers_go_on_everything_and_are_shown_nowhere() -> None:
    async with wired(Script(), headers={"Authorization": "Bearer sesame"}) as wire:
        await wire.initialize()
        shown = repr(wire.transport.link)

    assert {each.headers.get("authorization") for each in wire.server.calls} == {"Bearer sesame"}
    assert "sesame" not in shown
    assert "127.0.0.1" not in shown
