"""`connect` by URL: which transport, sessions that are lost and begin anew, secrets that stay ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    AuthorizationRequiredError,
    Delivery,
    Dialect,
    HttpKind,
    HttpSpec,
    HttpStatusError,
    ListKind,
    LocalProtocolError,
    McpError,
    SessionLostError,
    UnsupportedVersionError,
    connect,
)
from mcp_client.net.http.errors import (
    CertificateError,
    ConnectError,
    ConnectionLostError,
    ConnectStep,
)
from mcp_client.testing.http_server import HttpCall, HttpReply, HttpServer, serve_http
from tests.mcp_client.http.harness import Guard, Mcp, RevokedError, rpc_error


def spec(server: HttpServer, kind: HttpKind = HttpKind.AUTO, **more: Any) -> HttpSpec:
    return HttpSpec(name="srv", url=server.url, kind=kind, **more)


# ------------------------------------------------------------------------------------- lost session


@pytest.mark.requirement("H-5")
@pytest.mark.requirement("S-3")
@pytest.mark.requirement("S-9", "S-4")
async def test_a_lost_session_begins_anew_and_the_call_is_sent_once_more() -> None:
    script = Mcp()
    changed: list[ListKind] = []
    async with (
        serve_http(script) as server,
        connect(spec(server), guard=UNGUARDED, on_list_changed=changed.append) as client,
    ):
        epoch = client.epoch
        script.forgotten.add(script.present)
        with anyio.fail_after(30):
            answer = await client.call_tool("add", {})
        sessions = [each.headers.get("mcp-session-id", "") for each in server.of("POST")]

    assert answer.text == "session-2"
    assert sessions == ["", "session-1", "session-1", "", "session-2", "session-2"]
    # what was listed before has to be listed again
    assert (changed, client.epoch > epoch) == ([ListKind.TOOLS], True)


@pytest.mark.requirement("H-5")
async def test_all_who_find_out_at_once_share_one_handshake() -> None:
    script = Mcp()
    texts: list[str] = []
    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:

        async def call() -> None:
            texts.append((await client.call_tool("add", {})).text)

        script.forgotten.add(script.present)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(20):
                    group.start_soon(call)

    assert (texts, script.sessions) == (["session-2"] * 20, 2)


@pytest.mark.requirement("H-5")
async def test_a_second_404_is_an_error_and_not_a_loop() -> None:
    script = Mcp()
    script.forgotten |= {"session-1", "session-2", "session-3"}

    @script.on("notifications/initialized")
    async def _(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(202)

    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:
        with anyio.fail_after(30), pytest.raises(SessionLostError) as lost:
            await client.call_tool("add", {})
        calls = server.posts("tools/call")

    assert (lost.value.delivery, len(calls), script.sessions) == (Delivery.REFUSED, 2, 2)


@pytest.mark.requirement("I15")
async def test_a_call_under_a_guard_of_its_own_is_not_sent_again_by_itself() -> None:
    script = Mcp()
    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:
        script.forgotten.add(script.present)
        with anyio.fail_after(30), pytest.raises(SessionLostError) as lost:
            await client.call_tool("add", {}, guard=Guard())
        answer = await client.call_tool("add", {}, guard=Guard())
        calls = server.posts("tools/call")

    assert (lost.value.delivery, answer.text, len(calls)) == (Delivery.REFUSED, "session-2", 2)


@pytest.mark.requirement("I15")
async def test_no_session_begins_anew_once_the_leave_is_gone() -> None:
    script, guard = Mcp(), Guard()
    async with serve_http(script) as server, connect(spec(server), guard=guard) as client:
        script.forgotten.add(script.present)

        @script.on("tools/call")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            guard.revoked = True
            await reply.send(404)

        with anyio.fail_after(30), pytest.raises(RevokedError):
            await client.call_tool("add", {})

    assert (script.sessions, server.of("DELETE")) == (1, [])


async def test_a_400_for_a_dead_session_begins_anew_but_the_call_is_not_sent_again() -> None:
    script = Mcp()
    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:

        @script.on("tools/call")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            del script.special["tools/call"]
            text = "Bad Request: No valid session ID provided"
            await reply.json(rpc_error(call, -32000, text), status=400)

        with anyio.fail_after(30), pytest.raises(SessionLostError) as lost:
            await client.call_tool("add", {})
        answer = await client.call_tool("add", {})

    assert (lost.value.delivery, answer.text) == (Delivery.MAYBE_SENT, "session-2")


async def test_a_handshake_that_fails_fails_all_who_wait_for_it_and_can_be_tried_again() -> None:
    script = Mcp()
    errors: list[Exception] = []
    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:
        script.forgotten.add(script.present)

        @script.on("initialize")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            await server.until(lambda: len(server.posts("tools/call")) == 5)
            await anyio.wait_all_tasks_blocked()  # all have found out
            await reply.send(503)

        async def call() -> None:
            try:
                await client.call_tool("add", {})
            except McpError as error:
                errors.append(error)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _number in range(5):
                    group.start_soon(call)
            tried = len(server.posts("initialize")) - 1
            del script.special["initialize"]
            answer = await client.call_tool("add", {})

    assert {type(error) for error in errors} == {HttpStatusError}
    assert (len(errors), tried, answer.text) == (5, 1, "session-2")


async def test_if_the_task_that_begins_anew_is_cancelled_another_one_does() -> None:
    script = Mcp()
    held = anyio.Event()
    async with serve_http(script) as server, connect(spec(server), guard=UNGUARDED) as client:
        script.forgotten.add(script.present)

        @script.on("initialize")
        async def _(call: HttpCall, reply: HttpReply) -> None:
            del script.special["initialize"]
            held.set()
            await reply.until_gone()

        texts: list[str] = []

        async def call() -> None:
            texts.append((await client.call_tool("add", {})).text)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group, anyio.create_task_group() as first:
                first.start_soon(call)
                await held.wait()
                group.start_soon(call)
                await anyio.wait_all_tasks_blocked()
                first.cancel_scope.cancel()

    assert texts == ["session-2"]


# ----------------------------------------------------------------------------------------- fallback


class OldServer:
    """A server of 2024-11-05 that answers the POST of a newer client in its own way."""

    def __init__(self, refuse: Callable[[HttpReply], Any]) -> None:
        self._refuse = refuse
        self._stream: HttpReply | None = None

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        if call.method == "GET":
            self._stream = reply
            await reply.start_events()
            await reply.event(kind="endpoint", data="/messages")
            await reply.until_gone()
        elif call.path != "/messages":
            await self._refuse(reply)
        else:
            await reply.send(202)
            if self._stream is not None and call.rpc_method == "initialize":
                result: Any = {"protocolVersion": "2024-11-05", "capabilities": {}}
                answer = {"jsonrpc": "2.0", "id": call.message["id"], "result": result}
                await self._stream.event(answer)


@pytest.mark.requirement("H-14")
@pytest.mark.requirement("H-21")
@pytest.mark.requirement("S-2")
@pytest.mark.parametrize("status", [400, 404, 405])
async def test_a_status_that_means_an_old_server_leads_to_http_sse(status: int) -> None:
    async with (
        serve_http(OldServer(lambda reply: reply.send(status, b"no"))) as server,
        connect(spec(server), guard=UNGUARDED) as client,
    ):
        version = client.protocol_version
        asked: list[Any] = [each.message["params"] for each in server.posts("initialize")]

    assert version == "2024-11-05"
    assert [each["protocolVersion"] for each in asked] == ["2025-11-25", "2024-11-05"]


@pytest.mark.requirement("L-25")
async def test_an_old_server_is_asked_as_one_the_next_time() -> None:
    dialect = Dialect()
    async with serve_http(OldServer(lambda reply: reply.send(405))) as server:
        for _ in range(2):
            async with connect(spec(server), guard=UNGUARDED, dialect=dialect):
                pass
        refused = [each for each in server.of("POST") if each.path != "/messages"]

    assert (len(refused), dialect.memory.is_old_http) == (1, True)


@pytest.mark.requirement("L-25")
async def test_an_old_server_that_is_new_by_now_is_found_out() -> None:
    dialect = Dialect()
    dialect.memory.is_old_http = True
    async with (
        serve_http(Mcp()) as server,
        connect(spec(server), guard=UNGUARDED, dialect=dialect) as client,
    ):
        version = client.protocol_version

    assert (version, dialect.memory.is_old_http) == ("2025-11-25", False)


@pytest.mark.requirement("L-25")
async def test_another_configuration_remembers_nothing_of_an_old_server() -> None:
    async with serve_http(OldServer(lambda reply: reply.send(405))) as server:
        for _ in range(2):
            async with connect(spec(server), guard=UNGUARDED, dialect=Dialect()):
                pass
        refused = [each for each in server.of("POST") if each.path != "/messages"]

    assert len(refused) == 2


async def test_credentials_that_a_remembered_server_wants_lead_to_no_other_way() -> None:
    dialect = Dialect()
    dialect.memory.is_old_http = True

    async def deny(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(401)

    async with serve_http(deny) as server:
        with pytest.raises(AuthorizationRequiredError):
            async with connect(spec(server), guard=UNGUARDED, dialect=dialect):
                pass

    assert [each.method for each in server.calls] == ["GET"]


@pytest.mark.requirement("H-14")
@pytest.mark.parametrize("status", [401, 403, 406, 409, 429, 500, 502, 503])
async def test_no_other_status_leads_to_http_sse(status: int) -> None:
    async with serve_http(OldServer(lambda reply: reply.send(status))) as server:
        with pytest.raises(HttpStatusError) as refused:
            async with connect(spec(server), guard=UNGUARDED):
                pass

    assert refused.value.status == status
    assert isinstance(refused.value, AuthorizationRequiredError) is (status in (401, 403))
    assert {each.method for each in server.calls} == {"POST"}


@pytest.mark.requirement("H-14")
@pytest.mark.parametrize("code", [-32020, -32021])
async def test_an_error_that_only_newer_servers_know_does_not_lead_to_http_sse(code: int) -> None:
    async def refuse(reply: HttpReply) -> None:
        error: Any = {"code": code, "message": "no"}
        await reply.json({"jsonrpc": "2.0", "id": 1, "error": error}, status=400)

    async with serve_http(OldServer(refuse)) as server:
        with pytest.raises(McpError):
            async with connect(spec(server), guard=UNGUARDED):
                pass

    assert server.of("GET") == []


@pytest.mark.requirement("H-14")
async def test_a_server_that_is_said_to_be_streamable_is_not_spoken_to_otherwise() -> None:
    async with serve_http(OldServer(lambda reply: reply.send(405))) as server:
        with pytest.raises(HttpStatusError):
            async with connect(spec(server, HttpKind.STREAMABLE), guard=UNGUARDED):
                pass

    assert server.of("GET") == []


@pytest.mark.requirement("H-14")
@pytest.mark.parametrize(
    "error",
    [
        CertificateError("not trusted", step=ConnectStep.TLS),
        ConnectError("not there", step=ConnectStep.CONNECT),
        ConnectionLostError("cut"),
    ],
)
def test_no_failure_of_a_connection_leads_to_http_sse(error: McpError) -> None:
    assert HttpSpec(name="srv", url="https://host/").fallback(error) is None


async def test_an_error_of_the_block_is_no_reason_to_fall_back() -> None:
    async with serve_http(Mcp()) as server:
        with pytest.raises(HttpStatusError):
            async with connect(spec(server), guard=UNGUARDED):
                raise HttpStatusError("ours", status=404)

    assert len(server.posts("initialize")) == 1


@pytest.mark.requirement("S-2")
@pytest.mark.parametrize("version", ["2024-11-05", "2023-01-01", "2099-01-01"])
async def test_another_version_is_an_error_and_ends_the_connection(version: str) -> None:
    async with serve_http(Mcp(version)) as server:
        with pytest.raises(UnsupportedVersionError):
            async with connect(spec(server), guard=UNGUARDED):
                pass

    assert [each.rpc_method for each in server.of("POST")] == ["initialize"]


# ------------------------------------------------------------------------------------ configuration


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ftp://host/secret",
        "http://user:secret@host/",
        "http://host/secret path",
        "file:///secret",
        "http:///secret",
        "http://host:99999/secret",
    ],
)
def test_what_is_no_url_of_a_server_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(LocalProtocolError) as refused:
        HttpSpec(name="srv", url=url)

    assert "secret" not in str(refused.value)
    assert refused.value.server == "srv"


def test_a_server_shows_neither_its_url_nor_its_headers() -> None:
    source = HttpSpec(
        name="srv",
        url="https://host/secret",
        headers={"Authorization": "Bearer secret"},
        proxy="http://secret.example:3128",
    )

    assert "secret" not in repr(source)


@pytest.mark.parametrize("proxy", ["https://host/", "socks5://host/", "nothing"])
def test_a_proxy_is_an_http_proxy(proxy: str) -> None:
    with pytest.raises(LocalProtocolError):
        HttpSpec(name="srv", url="https://host/", proxy=proxy)


@pytest.mark.requirement("S-2")
async def test_nothing_is_sent_before_its_leave_is_asked_for() -> None:
    guard = Guard()
    guard.revoked = True
    async with serve_http(Mcp()) as server:
        with pytest.raises(RevokedError):
            async with connect(spec(server), guard=guard):
                pass

    assert server.calls == []
