"""The pool and its connections, on real sockets: what is used again, what never is, what waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from mcp_client.net.http.errors import (
    ConnectionLostError,
    ExchangeTimeoutError,
    HttpProtocolError,
    RequestRefusedError,
)
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import Target
from mcp_client.protocol.errors import Delivery
from mcp_client.testing import EventRecorder, RecordingGuard
from tests.mcp_client.net.http.harness import RefusalError, engine_kit
from tests.mcp_client.net.http.servers import Peer, Server, answer, echo, serving


def url(server: Server, path: str = "/mcp") -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def answering(*responses: bytes) -> Callable[[Peer], None]:
    """Answer one request after the other with these, then wait for the end."""

    def handle(peer: Peer) -> None:
        for response in responses:
            if not peer.read_request()[0]:
                return
            peer.send(response)
        peer.drain()

    return handle


# ------------------------------------------------------------------------------- one exchange


async def test_an_exchange_tells_its_sink_everything_in_order() -> None:
    with serving(answering(answer(b"hello", "X-Thing: a"))) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), b"body")
    assert call.events == ["first_byte_out", "written", "started", "body", "ended"]
    assert (call.status, bytes(call.data)) == (200, b"hello")
    assert ("x-thing", "a") in call.headers


async def test_a_request_goes_out_as_one_head_and_its_body() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            await kit.ask(url(server, "/a?b=c"), b"body", headers=[("Accept", "text/plain")])
            received = bytes(server.peers[0].plain)
    assert received == (
        b"POST /a?b=c HTTP/1.1\r\n"
        b"Host: 127.0.0.1:%d\r\n"
        b"Accept-Encoding: identity\r\n"
        b"Content-Length: 4\r\n"
        b"Accept: text/plain\r\n"
        b"\r\n"
        b"body" % server.port
    )


async def test_nothing_happens_before_the_exchange_was_returned() -> None:
    async with engine_kit() as kit:
        call = kit.call("http://127.0.0.1:9/", guard=RecordingGuard(RefusalError()))
        assert call.events == []
        await call.finish()
    assert call.events == ["refused"]


async def test_a_large_body_arrives_whole_both_ways() -> None:
    body = bytes(range(256)) * 32 * 1024
    with serving(echo) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), body)
    assert bytes(call.data) == body
    assert call.ticket.bytes_sent > len(body)


async def test_a_name_is_looked_up() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            call = await kit.ask(f"http://localhost:{server.port}/")
    assert call.end == "ended"


async def test_a_unix_socket_is_spoken_to(tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with serving(echo, unix_socket=place):
        async with engine_kit() as kit:
            target = Target.parse("http://service/mcp", unix_socket=str(place))
            call = await kit.ask(target, b"over there")
    assert bytes(call.data) == b"over there"


async def test_a_continue_before_the_answer_is_passed_over() -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
    with serving(answering(early + answer(b"real"))) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
    assert (call.status, bytes(call.data)) == (200, b"real")


async def test_an_answer_that_comes_before_the_request_was_written_is_an_answer() -> None:
    def refuse_early(peer: Peer) -> None:
        peer.read_head()
        peer.send(answer(b"too large", status="413 Content Too Large"))
        peer.drain()

    with serving(refuse_early, buffer=4096) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), bytes(8 * 1024 * 1024))
            peer = await server.until_over()
    assert (call.status, call.end, "written" in call.events) == (413, "ended", False)
    assert peer.end == "reset"


async def test_an_answer_of_one_who_closes_before_reading_all_is_still_an_answer() -> None:
    def refuse_and_close(peer: Peer) -> None:
        peer.read_head()
        peer.send(answer(b"too large", status="413 Content Too Large"))
        peer.drain()

    with serving(refuse_and_close) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), bytes(1024 * 1024))
    assert call.status == 413


# ------------------------------------------------------------------------------- used again


async def test_a_connection_is_used_again() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            for number in range(3):
                assert (await kit.ask(url(server), b"%d" % number)).data == b"%d" % number
            assert kit.engine.open_connections == 1
        assert len(server.peers) == 1


async def test_the_connection_used_last_is_used_first() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            calls = [kit.call(url(server)) for _ in range(3)]
            for call in calls:
                await call.finish()
            before = [len(peer.plain) for peer in server.peers]
            for _ in range(4):
                await kit.ask(url(server))
            grown = [
                len(peer.plain) > size for peer, size in zip(server.peers, before, strict=True)
            ]
    assert sum(grown) == 1


@pytest.mark.parametrize(
    "response",
    [
        answer(b"one", "Connection: close"),
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive, Close\r\nContent-Length: 3\r\n\r\none",
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\none",
        answer(b"one") + b"left over",
        answer(b"one") + answer(b"two"),
    ],
)
async def test_a_connection_that_is_not_clean_is_not_used_again(response: bytes) -> None:
    with serving(answering(response)) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
            assert kit.engine.open_connections == 0
    assert (call.end, bytes(call.data)) == ("ended", b"one")


async def test_bytes_that_come_later_end_an_idle_connection() -> None:
    speak = threading.Event()

    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(answer())
        speak.wait(5)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworse")
        peer.drain()

    with serving(handle) as server:
        async with engine_kit() as kit:
            await kit.ask(url(server))
            speak.set()
            await server.until_over()
            assert kit.engine.open_connections == 0


async def test_an_idle_connection_that_the_server_closes_is_let_go() -> None:
    close = threading.Event()

    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(answer())
        close.wait(5)

    with serving(handle) as server:
        async with engine_kit() as kit:
            await kit.ask(url(server))
            assert kit.engine.open_connections == 1
            close.set()
            with anyio.fail_after(30):
                while kit.engine.open_connections:
                    await anyio.lowlevel.checkpoint()


async def test_a_connection_closed_in_the_same_step_is_noticed_before_it_is_used() -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(answer(b"only one"))

    with serving(handle) as server:
        async with engine_kit() as kit:
            await kit.ask(url(server))
            # without a turn of the loop in between: the read watch has seen nothing
            server.wait_for_end()
            call = kit.call(url(server))
            assert (await call.finish()).end == "ended"
        assert len(server.peers) == 2


async def test_a_half_closed_connection_still_brings_its_answer() -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")

    with serving(handle) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
            assert kit.engine.open_connections == 0
    assert (call.end, bytes(call.data)) == ("ended", b"until the end")


async def test_credentials_never_share_a_connection() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            for credential in ("alice 1", "bob 1", "alice 2", "alice 1"):
                await kit.ask(url(server), credential=credential)
        assert len(server.peers) == 3


async def test_requests_of_one_step_go_out_in_one_step_on_connections_of_their_own() -> None:
    observer = EventRecorder()
    with serving(echo) as server:
        async with engine_kit(observer=observer) as kit:
            for call in [kit.call(url(server)) for _ in range(8)]:
                await call.finish()
            observer.flushes = 0
            for call in [kit.call(url(server)) for _ in range(8)]:
                await call.finish()
    assert observer.flushes == 1


# ------------------------------------------------------------------------------- bounds


async def test_a_connection_is_closed_after_its_last_request() -> None:
    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(requests_per_connection_max=2)) as kit:
            for _ in range(3):
                await kit.ask(url(server))
        assert len(server.peers) == 2


async def test_more_requests_than_connections_wait_in_line() -> None:
    order: list[int] = []
    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(connections_per_origin_max=2)) as kit:
            calls = [
                kit.call(
                    url(server), on_event=lambda event, n=n: event == "written" and order.append(n)
                )
                for n in range(7)
            ]
            for call in calls:
                await call.finish()
        assert len(server.peers) == 2
    assert sorted(order[:2]) == [0, 1]
    assert order[2:] == [2, 3, 4, 5, 6]


async def test_a_request_that_waits_is_checked_when_its_turn_comes() -> None:
    guard = RecordingGuard()

    def revoke(event: str) -> None:
        guard.error = RefusalError() if event == "written" else guard.error

    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(connections_per_origin_max=1)) as kit:
            first = kit.call(url(server), b"first", on_event=revoke)
            second = kit.call(url(server), b"second", guard=guard)
            third = kit.call(url(server), b"third")
            for call in (first, second, third):
                await call.finish()
        assert b"second" not in server.peers[0].plain
    assert (first.end, second.end, third.end) == ("ended", "refused", "ended")


async def test_one_who_gives_up_leaves_the_line() -> None:
    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(connections_per_origin_max=1)) as kit:
            first = kit.call(url(server), b"first")
            second = kit.call(url(server), b"second")
            third = kit.call(url(server), b"third")
            await first.until("written")
            second.exchange.abort()
            await first.finish()
            await third.finish()
        assert b"second" not in server.peers[0].plain
    assert second.events == []


async def test_one_exchange_too_many_is_turned_away() -> None:
    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(exchanges_max=2)) as kit:
            calls = [kit.call(url(server)), kit.call(url(server))]
            with pytest.raises(RequestRefusedError, match="more than 2 exchanges"):
                kit.call(url(server))
            for call in calls:
                assert (await call.finish()).end == "ended"
            assert (await kit.ask(url(server))).end == "ended"


async def test_one_idle_connection_too_many_is_closed() -> None:
    with serving(echo) as server:
        async with engine_kit(limits=HttpLimits(idle_connections_max=2)) as kit:
            for call in [kit.call(url(server)) for _ in range(4)]:
                await call.finish()
            assert kit.engine.open_connections == 2


@pytest.mark.parametrize(
    ("header", "limits"),
    [
        ("X-Nothing: 1", HttpLimits(idle_seconds_unstated=0.01)),
        ("Keep-Alive: timeout=100", HttpLimits(idle_seconds_max=0.01)),
        ("Keep-Alive: timeout=1", HttpLimits()),
    ],
)
async def test_an_idle_connection_is_closed_before_the_server_would(
    header: str, limits: HttpLimits
) -> None:
    with serving(answering(answer(b"{}", header))) as server:
        async with engine_kit(limits=limits) as kit:
            await kit.ask(url(server))
            peer = await server.until_over()
            assert kit.engine.open_connections == 0
    assert peer.end == "closed"


async def test_a_body_one_byte_too_large_is_not_taken() -> None:
    async with engine_kit(limits=HttpLimits(request_body_bytes_max=10)) as kit:
        with pytest.raises(RequestRefusedError, match="over the bound of 10"):
            kit.call("http://127.0.0.1:9/", b"x" * 11)


# ------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "differ"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "malformed"),
        (b"SSH-2.0-OpenSSH\r\n", "not HTTP"),
    ],
)
async def test_what_is_not_http_is_an_error_of_its_own(response: bytes, reason: str) -> None:
    with serving(answering(response)) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
            peer = await server.until_over()
    assert isinstance(call.error, HttpProtocolError)
    assert reason in str(call.error)
    assert (call.error.stage, call.error.delivery) == ("receive", Delivery.MAYBE_SENT)
    assert peer.end == "reset"


@pytest.mark.parametrize(
    ("response", "stage"),
    [
        (b"", "wait"),
        (b"HTTP/1.1 200", "receive"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfive!", "receive"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfive!\r\n", "receive"),
    ],
)
async def test_a_connection_that_breaks_off_is_never_a_complete_answer(
    response: bytes, stage: str
) -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(response)

    with serving(handle) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
            assert len(server.peers) == 1  # nothing is sent again
    assert isinstance(call.error, ConnectionLostError)
    assert (call.error.stage, call.error.delivery) == (stage, Delivery.MAYBE_SENT)


async def test_an_error_of_the_sink_ends_its_exchange_alone() -> None:
    class TooLargeError(Exception):
        pass

    def refuse(event: str) -> None:
        if event == "body":
            raise TooLargeError

    with serving(echo) as server:
        async with engine_kit() as kit:
            bad = kit.call(url(server), on_event=refuse)
            good = kit.call(url(server))
            await bad.finish()
            await good.finish()
    assert isinstance(bad.error, TooLargeError)
    assert good.end == "ended"


async def test_a_coded_body_is_refused_and_its_status_is_not() -> None:
    with serving(answering(answer(b"\x1f\x8b...", "Content-Encoding: gzip"))) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server))
    assert call.events[-2:] == ["started", "failed"]
    assert isinstance(call.error, HttpProtocolError)


async def test_the_deadline_covers_the_answer() -> None:
    with serving(lambda peer: peer.drain()) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), seconds=0.05)
            peer = await server.until_over()
    assert isinstance(call.error, ExchangeTimeoutError)
    assert (call.error.stage, call.error.delivery) == ("wait", Delivery.MAYBE_SENT)
    assert peer.end == "reset"


async def test_the_deadline_covers_the_write() -> None:
    go = threading.Event()

    def waiting(_peer: Peer) -> None:
        go.wait(5)

    with serving(waiting, buffer=4096) as server:
        async with engine_kit() as kit:
            call = await kit.ask(url(server), bytes(8 * 1024 * 1024), seconds=0.05)
            go.set()
    assert isinstance(call.error, ExchangeTimeoutError)
    assert "written" not in call.events


async def test_the_deadline_covers_the_wait_for_a_connection() -> None:
    with serving(lambda peer: peer.drain()) as server:
        async with engine_kit(limits=HttpLimits(connections_per_origin_max=1)) as kit:
            kit.call(url(server))
            call = await kit.ask(url(server), seconds=0.05)
    assert isinstance(call.error, ExchangeTimeoutError)
    assert call.error.delivery is Delivery.NOT_SENT


async def test_a_deadline_can_be_moved_while_the_answer_comes() -> None:
    go = threading.Event()

    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n..")
        go.wait(5)
        peer.send(b"..")
        peer.drain()

    with serving(handle) as server:
        async with engine_kit() as kit:
            call = kit.call(url(server), seconds=0.2)
            other = kit.call(url(server), seconds=0.3)
            await call.until("body")
            call.exchange.deadline = None
            await other.finish()  # by its own deadline, which is later than the first
            assert call.end == "body"
            go.set()
            await call.finish()
    assert call.end == "ended"


async def test_closing_fails_what_is_under_way_and_takes_nothing_new() -> None:
    with serving(lambda peer: peer.drain()) as server:
        async with engine_kit() as kit:
            call = kit.call(url(server))
            await call.until("written")
            kit.engine.close()
            assert isinstance(call.error, ConnectionLostError)
            with pytest.raises(RequestRefusedError, match="closed"):
                kit.call(url(server))


# ------------------------------------------------------------------------------- giving up


async def test_an_abort_resets_the_connection_and_tells_nothing_more() -> None:
    with serving(lambda peer: peer.drain()) as server:
        async with engine_kit() as kit:
            call = kit.call(url(server))
            await call.until("written")
            call.exchange.abort()
            peer = await server.until_over()
    assert (peer.end, call.end) == ("reset", "written")


async def test_an_abort_from_within_the_sink_is_an_abort() -> None:
    with serving(answering(answer(b"{}"))) as server:
        async with engine_kit() as kit:
            call = kit.call(
                url(server),
                on_event=lambda event: event == "started" and call.exchange.abort(),
            )
            await call.until("started")
            peer = await server.until_over()
            assert kit.engine.open_connections == 0
    assert (peer.end, call.end) == ("reset", "started")


async def test_an_abort_of_what_is_over_harms_nobody() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            first = await kit.ask(url(server))
            second = kit.call(url(server))
            await second.until("first_byte_out")
            first.exchange.abort()
            first.exchange.pause()
            assert (await second.finish()).end == "ended"
        assert len(server.peers) == 1


async def test_a_frame_that_nobody_waits_for_is_not_sent() -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            await kit.ask(url(server), b"first")
            call = kit.call(url(server), b"second")
            call.ticket.settled = True
            await kit.ask(url(server), b"third")
        assert b"second" not in server.peers[0].plain
    assert call.events == []


async def test_what_is_not_read_stops_the_server() -> None:
    size = 64 * 1024 * 1024
    with serving(answering(answer(bytes(size)))) as server:
        async with engine_kit() as kit:
            call = kit.call(
                url(server), on_event=lambda event: event == "started" and call.exchange.pause()
            )
            await call.until("started")
            for _ in range(20):
                await kit.ask(
                    url(server).replace("/mcp", "/other"), credential="another", seconds=0.01
                )
            paused_at = len(call.data)
            call.exchange.resume()
            await call.finish()
    assert paused_at <= 1024 * 1024
    assert len(call.data) == size


# ------------------------------------------------------------------------------- the record


async def test_a_record_that_cannot_be_made_refuses_the_requests_of_its_step() -> None:
    class Full(EventRecorder):
        def flushing(self) -> None:
            super().flushing()
            if self.flushes > 1:
                raise OSError("the disk is full")

    with serving(echo) as server:
        async with engine_kit(observer=Full()) as kit:
            first = await kit.ask(url(server), b"first")
            second = await kit.ask(url(server), b"second")
            assert kit.engine.open_connections == 1
        assert b"second" not in server.peers[0].plain
    assert (first.end, second.end) == ("ended", "refused")
