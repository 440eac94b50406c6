"""httpx over the engine: no guard, no byte; streams, timeouts and errors as httpx has them."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from mcp_client.net.http.errors import ConnectError, HttpError
from mcp_client.net.http.httpx_transport import GuardedTransport, guarded_client
from mcp_client.net.http.limits import HttpLimits
from mcp_client.ports import UNGUARDED
from mcp_client.testing import RecordingGuard
from tests.mcp_client.net.http.harness import Kit, RefusalError, engine_kit
from tests.mcp_client.net.http.servers import Peer, Server, answer, echo, serving

OPEN = {"guard": UNGUARDED}


def url(server: Server, path: str = "/") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


@asynccontextmanager
async def a_client(
    *, seconds: float = 5, limits: HttpLimits | None = None
) -> AsyncGenerator[tuple[httpx.AsyncClient, Kit]]:
    async with (
        engine_kit(limits=limits) as kit,
        guarded_client(kit.engine, seconds=seconds) as client,
    ):
        yield client, kit


async def test_a_request_and_its_response_are_as_httpx_has_them() -> None:
    with serving(echo) as server:
        async with a_client() as (client, _):
            response = await client.post(url(server), content=b"body", extensions=OPEN)
        received = bytes(server.peers[0].plain)
    assert (response.status_code, response.content) == (200, b"body")
    assert received.count(b"Host:") == received.count(b"Content-Length:") == 1
    assert b"Accept-Encoding: identity" in received
    assert b"gzip" not in received


@pytest.mark.requirement("I14")
async def test_a_request_without_a_guard_reaches_nobody() -> None:
    with serving(echo) as server:
        async with a_client() as (client, _):
            with pytest.raises(httpx.LocalProtocolError, match="without a guard"):
                await client.get(url(server))
        assert server.peers == []


async def test_a_refusal_comes_out_as_it_is() -> None:
    guard = RecordingGuard(RefusalError())
    with serving(echo) as server:
        async with a_client() as (client, _):
            with pytest.raises(RefusalError) as caught:
                await client.get(url(server), extensions={"guard": guard})
        assert server.peers == []
    assert caught.value is guard.error


@pytest.mark.requirement("I15")
async def test_a_redirect_has_no_guard_of_its_own_and_is_not_followed() -> None:
    def redirect(peer: Peer) -> None:
        while peer.read_request()[0]:
            peer.send(answer(b"", "Location: /elsewhere", status="307 Temporary Redirect"))

    with serving(redirect) as server:
        async with a_client() as (client, _):
            response = await client.get(url(server), extensions=OPEN)
            with pytest.raises(httpx.LocalProtocolError, match="without a guard"):
                await client.get(url(server), extensions=OPEN, follow_redirects=True)
        assert not any(b"/elsewhere" in peer.plain for peer in server.peers)
    assert response.status_code == 307


async def test_a_body_is_streamed_piece_by_piece() -> None:
    go = threading.Event()

    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        go.wait(5)
        peer.send(b"3\r\ntwo\r\n0\r\n\r\n")
        peer.drain()

    pieces: list[bytes] = []
    with serving(handle) as server:
        async with (
            a_client() as (client, _),
            client.stream("GET", url(server), extensions=OPEN) as response,
        ):
            async for piece in response.aiter_raw():
                pieces.append(piece)
                go.set()
    assert pieces == [b"one", b"two"]


async def test_a_body_that_nobody_reads_stops_the_server_and_arrives_whole() -> None:
    size = 16 * 1024 * 1024
    with serving(
        lambda peer: (peer.read_request(), peer.send(answer(bytes(size))), None)[2]
    ) as server:
        async with (
            a_client() as (client, kit),
            client.stream("GET", url(server), extensions=OPEN) as response,
        ):
            for _ in range(50):
                await anyio.lowlevel.checkpoint()
            assert kit.engine.open_connections == 1
            body = await response.aread()
    assert len(body) == size


async def test_a_response_that_is_left_resets_its_connection() -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")
        peer.drain()

    with serving(handle) as server:
        async with a_client() as (client, kit):
            async with client.stream("GET", url(server), extensions=OPEN):
                pass
            assert kit.engine.open_connections == 0
            assert (await server.until_over()).end == "reset"


async def test_one_who_is_cancelled_leaves_nothing_open() -> None:
    with serving(lambda peer: peer.drain()) as server:
        async with a_client() as (client, kit):
            with anyio.move_on_after(0.05):
                await client.get(url(server), extensions=OPEN)
            assert kit.engine.open_connections == 0


async def test_no_cookie_is_kept() -> None:
    def handle(peer: Peer) -> None:
        while peer.read_request()[0]:
            peer.send(answer(b"", "Set-Cookie: a=b"))

    with serving(handle) as server:
        async with a_client() as (client, _):
            for _ in range(2):
                await client.get(url(server), extensions=OPEN)
        assert b"ookie" not in server.peers[0].plain


async def test_no_url_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with serving(echo) as server:
        async with a_client() as (client, _):
            await client.get(url(server, "/?secret"), extensions=OPEN)
    assert "secret" not in caplog.text


class Pieces:
    """A body that comes five bytes at a time."""

    def __init__(self, count: int) -> None:
        self._left = count

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        self._left -= 1
        return b"12345"


async def test_a_body_is_read_piece_by_piece_up_to_its_bound() -> None:
    with serving(echo) as server:
        async with a_client(limits=HttpLimits(request_body_bytes_max=10)) as (client, _):
            response = await client.post(url(server), content=Pieces(2), extensions=OPEN)
            assert response.content == b"1234512345"
            with pytest.raises(httpx.LocalProtocolError, match="over the bound of 10"):
                await client.post(url(server), content=Pieces(3), extensions=OPEN)


@pytest.mark.parametrize("bad", ["http://user:word@127.0.0.1/", "ftp://127.0.0.1/"])
async def test_a_url_that_is_refused_is_httpxs_own_error(bad: str) -> None:
    async with a_client() as (client, _):
        with pytest.raises((httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
            await client.get(bad, extensions=OPEN)


async def test_a_host_that_is_not_the_urls_is_refused() -> None:
    async with a_client() as (client, _):
        with pytest.raises(httpx.LocalProtocolError, match="another host"):
            await client.get("http://a.test/", headers={"Host": "b.test"}, extensions=OPEN)


# ------------------------------------------------------------------------------- errors


async def get_error(handler: bytes | None, seconds: float = 5) -> httpx.TransportError:
    """What a GET raises if the server says this and closes, or, for None, says nothing."""

    def handle(peer: Peer) -> None:
        peer.read_request()
        if handler is None:
            peer.drain()
        else:
            peer.send(handler)

    with serving(handle) as server:
        async with a_client(seconds=seconds) as (client, _):
            with pytest.raises(httpx.TransportError) as caught:
                await client.get(url(server), extensions=OPEN)
    assert isinstance(caught.value.__cause__, HttpError)
    assert caught.value.request.method == "GET"
    return caught.value


async def test_nobody_there_is_a_connect_error() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    async with a_client() as (client, _):
        with pytest.raises(httpx.ConnectError) as caught:
            await client.get(f"http://127.0.0.1:{port}/", extensions=OPEN)
    assert isinstance(caught.value.__cause__, ConnectError)


async def test_a_server_that_leaves_is_a_read_error() -> None:
    assert isinstance(await get_error(b""), httpx.ReadError)


async def test_a_body_that_breaks_off_is_a_read_error() -> None:
    response = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome"
    assert isinstance(await get_error(response), httpx.ReadError)


async def test_what_is_not_http_is_a_remote_protocol_error() -> None:
    assert isinstance(await get_error(b"nonsense\r\n\r\n"), httpx.RemoteProtocolError)


async def test_no_answer_in_time_is_a_read_timeout() -> None:
    assert isinstance(await get_error(None, seconds=0.02), httpx.ReadTimeout)


async def test_a_body_that_stops_is_a_read_timeout() -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome")
        peer.drain()

    with serving(handle) as server:
        async with a_client(seconds=0.05) as (client, _):
            with pytest.raises(httpx.ReadTimeout):
                await client.get(url(server), extensions=OPEN)


async def test_the_transport_alone_takes_a_plain_request() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            transport = GuardedTransport(kit.engine)
            request = httpx.Request(
                "POST", url(server), stream=httpx.ByteStream(b"body"), extensions=OPEN
            )
            response = await transport.handle_async_request(request)
            assert await response.aread() == b"body"
