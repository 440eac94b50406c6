"""An HTTP server that misbehaves harms its own calls, in bounded time, and gets no byte twice."""

from __future__ import annotations

import gzip
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
import pytest

from mcp_client.client import Client, HttpKind, HttpSpec, connect
from mcp_client.net.http.errors import ConnectionLostError, HttpProtocolError
from mcp_client.ports import UNGUARDED
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    FrameTooLargeError,
    McpError,
    RemoteProtocolError,
    ServerGoneError,
)
from mcp_client.protocol.http.errors import AuthorizationRequiredError, HttpStatusError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.hostile.raw_server import Evil, RawServer, ok, raw_server, reply_to, tool_text

Stream = anyio.abc.SocketStream
Message = Mapping[str, object]

SECONDS = 0.3
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def a_client(
    evil: Evil, *, read_body: bool = True, seconds: float = SECONDS
) -> AsyncGenerator[tuple[Client, RawServer]]:
    """A client of such a server, which is still of use after all the rest."""
    limits = ClientLimits(close_seconds_max=0.1, request_seconds_max=seconds)
    async with raw_server(evil, read_body=read_body) as server:
        spec = HttpSpec(name="evil", url=server.url, kind=HttpKind.STREAMABLE)
        async with connect(spec, guard=UNGUARDED, limits=limits) as client:
            yield client, server
            with anyio.fail_after(30):
                await client.ping()


async def failed(evil: Evil) -> tuple[McpError, RawServer]:
    async with a_client(evil) as (client, server):
        with anyio.fail_after(30), pytest.raises(McpError) as raised:
            await client.call_tool("any", {})
    assert server.came("POST") == 4, "a call is sent once"
    return raised.value, server


def sending(data: bytes) -> Evil:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(data)

    return evil


# ---- what is no answer


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"220 smtp.example ESMTP\r\n\r\n", HttpProtocolError),
        (b"\0" * 100, HttpProtocolError),
        (b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", HttpProtocolError),
        (b"HTTP/1.1 99999 OK\r\n\r\n", HttpProtocolError),
        (b"HTTP/1.1 -20 OK\r\n\r\n", HttpProtocolError),
        (b"HTTP/9.9 200 OK\r\n\r\n", HttpProtocolError),
        (b"HTTP/1.1 200\0OK\r\n\r\n", HttpProtocolError),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", HttpProtocolError),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, HttpProtocolError),
        (HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", HttpProtocolError),
        (HEAD + b"Content-Length: 2, 02\r\n\r\n{}", HttpProtocolError),
        (HEAD + b"Content-Length: -1\r\n\r\n{}", HttpProtocolError),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n{}", HttpProtocolError),
        (
            HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            HttpProtocolError,
        ),
        (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", HttpProtocolError),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}\r\n", HttpProtocolError),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}!!\r\n", HttpProtocolError),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
            HttpProtocolError,
        ),
        (HEAD + b"A: b\r\n folded\r\nContent-Length: 0\r\n\r\n", HttpProtocolError),
        (HEAD + b"Bad Name: b\r\nContent-Length: 0\r\n\r\n", HttpProtocolError),
        (HEAD + b"Content-Length: 2\r\n\r\n{}", RemoteProtocolError),
        (HEAD + b"Content-Length: 0\r\n\r\n", RemoteProtocolError),
        (b"HTTP/1.1 204 No Content\r\n\r\n", RemoteProtocolError),
        (b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", RemoteProtocolError),
        (ok(b"<html>", "text/html"), RemoteProtocolError),
        (ok(b"[" * 100_000), RemoteProtocolError),
        (ok(b'{"jsonrpc":"2.0","id":1,"result":{}}'), RemoteProtocolError),
        (EVENTS + b"0\r\n\r\n", RemoteProtocolError),
        (EVENTS + b"5\r\n:hi\n\n\r\n0\r\n\r\n", RemoteProtocolError),
        (ok(b"{}", status="500 Oops"), HttpStatusError),
        (ok(b"{}", status="307 Elsewhere"), HttpStatusError),
        (HEAD + b"Content-Length: 9000000\r\n\r\n" + b"x" * 9_000_000, FrameTooLargeError),
    ],
)
async def test_what_is_no_answer_is_a_typed_error_and_nothing_is_sent_again(
    data: bytes, kind: type[McpError]
) -> None:
    error, _ = await failed(sending(data))
    assert isinstance(error, kind)
    assert (error.delivery, error.server) == (Delivery.MAYBE_SENT, "evil")


async def test_a_connection_that_breaks_off_leaves_the_outcome_unknown() -> None:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(HEAD + b"Content-Length: 100\r\n\r\n{")
        await stream.aclose()

    error, _ = await failed(evil)
    assert isinstance(error, ConnectionLostError)
    assert error.delivery is Delivery.MAYBE_SENT


# ---- what never ends


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"", b""),
        (b"HTTP/1.1 200", b""),
        (HEAD + b"Content-Length: 1000000\r\n\r\n", b"x"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (EVENTS, b"7\r\n: ping\n\r\n"),
        (EVENTS, b"9\r\ndata: x\n\n\r\n"),
    ],
    ids=["silence", "half a head", "a length", "chunks", "comments", "events of noise"],
)
async def test_a_reply_that_never_ends_ends_the_call_at_its_deadline(
    start: bytes, more: bytes
) -> None:
    gone = anyio.Event()

    async def evil(stream: Stream, message: Message) -> None:
        try:
            await stream.send(start or b"H")
            while more:
                await stream.send(more)
                await anyio.wait_all_tasks_blocked()  # a piece, then nothing until it was read
            while True:
                await stream.receive()
        finally:
            gone.set()

    async with a_client(evil) as (client, _):
        with anyio.fail_after(30), pytest.raises(CallTimeoutError) as raised:
            await client.call_tool("any", {})
        with anyio.fail_after(30):
            await gone.wait()
    assert raised.value.delivery is Delivery.MAYBE_SENT


@pytest.mark.parametrize(
    ("start", "more", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"A: b\r\n" * 1_000, HttpProtocolError),
        (b"HTTP/1.1 200 OK\r\nA: ", b"x" * 10_000, HttpProtocolError),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0" * 1_000, HttpProtocolError),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"A: b\r\n" * 1_000, HttpProtocolError),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
            b"1;x=yyyyyyyy\r\n \r\n" * 90,
            HttpProtocolError,
        ),
        (HEAD + b"\r\n", b" " * 65_536, FrameTooLargeError),
        (EVENTS, b"10000\r\n" + b"x" * 65_536 + b"\r\n", FrameTooLargeError),
        (EVENTS, b"10006\r\ndata: " + b"x" * 65_535 + b"\n\r\n", FrameTooLargeError),
    ],
    ids=["headers", "a header", "a size", "trailers", "extensions", "a body", "a line", "an event"],
)
async def test_a_flood_ends_at_its_bound_and_not_at_the_deadline(
    start: bytes, more: bytes, kind: type[McpError]
) -> None:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(start)
        while True:
            await stream.send(more)

    async with a_client(evil, seconds=60) as (client, _):
        with anyio.fail_after(10), pytest.raises(kind):
            await client.call_tool("any", {})


# ---- what was not asked for


async def test_a_content_coding_that_was_not_asked_for_is_refused_before_it_is_inflated() -> None:
    bomb = gzip.compress(b" " * 50_000_000, 1)
    data = HEAD + f"Content-Encoding: gzip\r\nContent-Length: {len(bomb)}\r\n\r\n".encode()
    error, server = await failed(sending(data + bomb))
    assert isinstance(error, RemoteProtocolError | HttpProtocolError)
    assert all("accept-encoding: identity" in head.lower() for head in server.heads)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_call_is_never_sent_elsewhere(status: int) -> None:
    lines = ("Location: /mcp", "Location: http://127.0.0.1:9/mcp")
    for line in lines:
        data = ok(b"", "text/plain", line, status=f"{status} Moved")
        error, server = await failed(sending(data))
        assert isinstance(error, HttpStatusError)
        assert server.came("POST /mcp") == 4


async def test_a_storm_of_401_costs_one_request_for_each_call() -> None:
    data = ok(b"", "text/plain", *['WWW-Authenticate: Bearer realm="x"'] * 100, status="401 No")
    async with a_client(sending(data)) as (client, server):
        with anyio.fail_after(30):
            for _ in range(20):
                with pytest.raises(AuthorizationRequiredError):
                    await client.call_tool("any", {})
        assert server.came("POST") == 2 + 20


async def test_an_answer_that_comes_before_the_request_was_written_is_an_answer() -> None:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(ok(reply_to({"id": 2}, tool_text("early")), "application/json"))
        while True:
            await stream.receive()

    async with a_client(evil, read_body=False, seconds=5) as (client, _):
        with anyio.fail_after(30):
            result = await client.call_tool("any", {"x": "x" * 7_000_000})
    assert result.text == "early"


async def test_bytes_behind_an_answer_are_nobodys_answer() -> None:
    async def evil(stream: Stream, message: Message) -> None:
        mine = ok(reply_to(message, tool_text("mine")))
        next_id = {"id": int(str(message["id"])) + 1}
        await stream.send(mine + ok(reply_to(next_id, tool_text("planted"))))

    async with a_client(evil) as (client, _):
        with anyio.fail_after(30):
            texts = [(await client.call_tool("any", {})).text for _ in range(5)]
    assert texts == ["mine"] * 5


# ---- whose answer it is


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_no_answer_reaches_another_caller_whatever_comes_in_whose_reply(kind: str) -> None:
    waiting: dict[str, Message] = {}
    all_there = anyio.Event()
    callers = 8

    async def evil(stream: Stream, message: Message) -> None:
        waiting[str(message["id"])] = message
        if len(waiting) == callers:
            all_there.set()
        await all_there.wait()
        foreign = [
            reply_to(other, tool_text("stolen"))
            for request_id, other in waiting.items()
            if request_id != str(message["id"])
        ]
        mine = reply_to(message, tool_text(str(message["id"])))
        if kind == "json":
            # an array is no message at this version, so the one that is alone counts
            await stream.send(ok(mine if int(str(message["id"])) % 2 else foreign[0]))
            return
        frames = [*foreign, mine, mine, reply_to(message, tool_text("again")), *foreign]
        body = b"".join(b"data: " + frame + b"\n\n" for frame in frames)
        await stream.send(ok(body, "text/event-stream"))

    got: list[str] = []
    async with a_client(evil, seconds=5) as (client, _):

        async def call() -> None:
            try:
                got.append((await client.call_tool("any", {})).text)
            except RemoteProtocolError:
                got.append("nothing")

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(callers):
                    group.start_soon(call)
    own = sorted(waiting) if kind == "events" else [i for i in waiting if int(i) % 2]
    assert sorted(got) == sorted([*own, *["nothing"] * (callers - len(own))])


class OldServer:
    """HTTP+SSE. What `answer` returns for a call goes out in the one stream, frame by frame."""

    def __init__(self) -> None:
        self.stream: HttpReply | None = None
        self.calls: list[Message] = []
        self.callers = 1
        self.status = 202

    async def __call__(self, call: HttpCall, reply: HttpReply) -> None:
        if call.method == "GET":
            await reply.start_events()
            self.stream = reply
            await reply.event(kind="endpoint", data="/post")
            await reply.until_gone()
            return
        stream = self.stream
        assert stream is not None
        if call.rpc_method == "tools/call":
            await reply.send(self.status)
            self.calls.append(call.message)
            if len(self.calls) == self.callers:
                await self.evil(stream, self.calls)
            return
        await reply.send(202)
        if call.rpc_method == "initialize":
            result: object = {
                "protocolVersion": "2024-11-05",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"},
            }
        else:
            result = {}
        if "id" in call.message:
            await stream.event({"jsonrpc": "2.0", "id": call.message["id"], "result": result})

    async def evil(self, stream: HttpReply, calls: list[Message]) -> None:
        """Answer everybody in the wrong order, each twice, strangers in between."""
        for message in [*reversed(calls), *calls]:
            stranger = {**message, "id": f"{message['id']}"}
            for each, text in ((stranger, "stolen"), (message, str(message["id"]))):
                await stream.event(data=reply_to(each, tool_text(text)).decode())


@asynccontextmanager
async def an_old_client(server: OldServer, seconds: float = SECONDS) -> AsyncGenerator[Client]:
    limits = ClientLimits(close_seconds_max=0.1, request_seconds_max=seconds)
    async with serve_http(server, path="/sse") as running:
        spec = HttpSpec(name="old", url=running.url, kind=HttpKind.SSE)
        async with connect(spec, guard=UNGUARDED, limits=limits) as client:
            yield client


async def test_over_http_sse_every_caller_gets_its_own_answer_in_any_order() -> None:
    server = OldServer()
    server.callers = 8
    got: list[str] = []
    async with an_old_client(server, seconds=5) as client:

        async def call() -> None:
            got.append((await client.call_tool("any", {})).text)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _ in range(8):
                    group.start_soon(call)
            await client.ping()
    assert sorted(got) == sorted(str(message["id"]) for message in server.calls)


async def test_over_http_sse_a_call_that_nobody_answers_ends_at_its_deadline() -> None:
    class Silent(OldServer):
        async def evil(self, stream: HttpReply, calls: list[Message]) -> None:
            await stream.event(data=": nothing")

    async with an_old_client(Silent()) as client:
        with anyio.fail_after(30), pytest.raises(CallTimeoutError):
            await client.call_tool("any", {})
        with anyio.fail_after(30):
            await client.ping()


@pytest.mark.parametrize("way", ["end", "cut", "line", "lines", "chunk"])
async def test_over_http_sse_a_stream_that_breaks_ends_every_call(way: str) -> None:
    class Breaking(OldServer):
        async def evil(self, stream: HttpReply, calls: list[Message]) -> None:
            match way:
                case "end":
                    await stream.end()
                case "cut":
                    await stream.cut()
                case "line":
                    while True:
                        await stream.chunk(b"x" * 65_536)
                case "lines":
                    await stream.chunk(b"data:\n" * 70_000)
                case _:
                    await stream.raw(b"not a size\r\n")

    server = Breaking()
    server.callers = 3
    errors: list[McpError] = []
    async with an_old_client(server, seconds=60) as client:

        async def call() -> None:
            with pytest.raises(McpError) as raised:
                await client.call_tool("any", {})
            errors.append(raised.value)

        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                for _ in range(3):
                    group.start_soon(call)
    assert [error.delivery for error in errors] == [Delivery.MAYBE_SENT] * 3
    kinds = {"end": ServerGoneError, "cut": ConnectionLostError, "chunk": HttpProtocolError}
    assert {type(error) for error in errors} == {kinds.get(way, FrameTooLargeError)}


async def test_over_http_sse_a_stream_that_is_sent_elsewhere_without_end_is_given_up() -> None:
    async def loop(call: HttpCall, reply: HttpReply) -> None:
        await reply.send(307, headers={"Location": f"/sse?{len(server.calls)}"})

    limits = ClientLimits(initialize_seconds_max=30)
    async with serve_http(loop, path="/sse") as server:
        spec = HttpSpec(name="old", url=server.url, kind=HttpKind.SSE)
        with anyio.fail_after(30), pytest.raises(RemoteProtocolError, match="without end"):
            async with connect(spec, guard=UNGUARDED, limits=limits):
                pass
    assert len(server.calls) == 6
