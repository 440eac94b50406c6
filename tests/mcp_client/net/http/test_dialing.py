"""Connections that do not come about: the step that failed, and no byte of the request out."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import trustme

from mcp_client.net.http.errors import (
    CertificateError,
    ConnectError,
    ConnectionLostError,
    ConnectStep,
    ConnectTimeoutError,
)
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import Target
from mcp_client.net.http.resolving import Address, Resolver
from mcp_client.net.http.tls import TlsSettings
from mcp_client.net.reactor import Reactor, Waiter, open_reactor
from mcp_client.protocol.errors import Delivery
from mcp_client.testing import RecordingGuard
from tests.mcp_client.net.http.conftest import Certificates, server_context
from tests.mcp_client.net.http.harness import Call, RefusalError, TellingEarly, engine_kit
from tests.mcp_client.net.http.servers import Peer, Server, answer, echo, proxy_to, serving


def failed(call: Call, step: ConnectStep) -> ConnectError:
    """The error of a call that must have failed in a step, with nothing sent."""
    error = call.error
    assert isinstance(error, ConnectError)
    assert (call.events, error.step, error.stage) == (["failed"], step, "start")
    assert error.delivery is call.ticket.delivery is Delivery.NOT_SENT
    return error


def closed_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def full_backlog() -> Generator[int]:
    """A port that answers no more: its queue of connections is full."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0)
            filler.connect_ex(("127.0.0.1", port))
        yield port


def at(server: Server, scheme: str = "https", host: str = "127.0.0.1") -> str:
    return f"{scheme}://{host}:{server.port}/"


async def test_a_port_that_nobody_listens_on_is_a_refused_connection() -> None:
    async with engine_kit() as kit:
        call = await kit.ask(f"http://127.0.0.1:{closed_port()}/")
    assert "connection refused" in str(failed(call, ConnectStep.CONNECT))


async def test_a_unix_socket_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    async with engine_kit() as kit:
        call = await kit.ask(Target.parse("http://a/", unix_socket=str(tmp_path / "none")))
    assert "no such file" in str(failed(call, ConnectStep.CONNECT))


async def test_a_name_that_does_not_exist_is_an_error() -> None:
    async with engine_kit() as kit:
        call = await kit.ask("http://no-such-name.invalid/")
    failed(call, ConnectStep.RESOLVE)


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    # "localhost" is ::1 first where there is IPv6; the server listens on 127.0.0.1 alone
    with serving(echo) as server:
        async with engine_kit() as kit:
            call = await kit.ask(at(server, "http", "localhost"))
    assert call.end == "ended"


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_that_takes_too_long_ends_in_its_step(scheme: str) -> None:
    with full_backlog() as port:
        async with engine_kit(limits=HttpLimits(connect_seconds_max=0.05)) as kit:
            call = await kit.ask(f"{scheme}://127.0.0.1:{port}/")
    assert isinstance(failed(call, ConnectStep.CONNECT), ConnectTimeoutError)


async def test_a_handshake_that_nobody_answers_ends_in_its_step(certificates: Certificates) -> None:
    with serving(lambda peer: peer.drain()) as server:
        limits = HttpLimits(connect_seconds_max=0.05)
        async with engine_kit(limits=limits, tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    assert isinstance(failed(call, ConnectStep.TLS), ConnectTimeoutError)


async def test_a_handshake_waits_on_where_a_socket_is_called_readable_and_has_nothing(
    certificates: Certificates,
) -> None:
    with serving(lambda peer: peer.drain()) as server:
        limits = HttpLimits(connect_seconds_max=0.05)
        async with engine_kit(limits=limits, tls=certificates.trust, wrap=TellingEarly) as kit:
            call = await kit.ask(at(server))
    # the end of the connection would have been told at once
    assert isinstance(failed(call, ConnectStep.TLS), ConnectTimeoutError)


async def test_a_certificate_for_another_name_is_not_trusted(certificates: Certificates) -> None:
    with serving(echo, tls=certificates.context("other.test")) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    error = failed(call, ConnectStep.TLS)
    assert isinstance(error, CertificateError)
    assert "mismatch" in str(error)


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(
    certificates: Certificates,
) -> None:
    stranger = server_context(trustme.CA().issue_cert("127.0.0.1"))
    with serving(echo, tls=stranger) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
        assert server.peers[0].plain == b""
    assert isinstance(failed(call, ConnectStep.TLS), CertificateError)


async def test_the_systems_authorities_do_not_know_ours(certificates: Certificates) -> None:
    with serving(echo, tls=certificates.context("127.0.0.1")) as server:
        async with engine_kit() as kit:
            call = await kit.ask(at(server))
    assert isinstance(failed(call, ConnectStep.TLS), CertificateError)


async def test_a_server_that_does_not_speak_tls_is_an_error(certificates: Certificates) -> None:
    def plain(peer: Peer) -> None:
        peer.receive()
        peer.send(answer(status="400 Bad Request"))
        peer.drain()

    with serving(plain) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    assert not isinstance(failed(call, ConnectStep.TLS), CertificateError)


async def test_a_server_that_closes_in_the_handshake_is_an_error(
    certificates: Certificates,
) -> None:
    def leave(peer: Peer) -> None:
        peer.receive()

    with serving(leave) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    failed(call, ConnectStep.TLS)


async def test_authorities_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    with serving(echo) as server:
        settings = TlsSettings(authorities_file=str(tmp_path / "none.pem"))
        async with engine_kit(tls=settings) as kit:
            call = await kit.ask(at(server))
    failed(call, ConnectStep.TLS)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
async def test_an_old_version_of_tls_is_not_spoken(certificates: Certificates) -> None:
    context = server_context(certificates.authority.issue_cert("127.0.0.1"))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving(echo, tls=context) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    failed(call, ConnectStep.TLS)


# ------------------------------------------------------------------------------- TLS that ends


@pytest.mark.parametrize("orderly", [True, False])
async def test_a_body_until_the_end_is_whole_only_after_an_orderly_end(
    orderly: bool, certificates: Certificates
) -> None:
    def handle(peer: Peer) -> None:
        peer.read_request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
        if orderly:
            peer.close()

    with serving(handle, tls=certificates.context("127.0.0.1")) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            call = await kit.ask(at(server))
    assert bytes(call.data) == b"until the end"
    if orderly:
        assert call.end == "ended"
    else:  # anybody on the way can cut a connection
        assert isinstance(call.error, ConnectionLostError)


async def test_a_kept_tls_connection_is_used_again(certificates: Certificates) -> None:
    # with TLS 1.3, whose tickets come after the handshake and must not pass for an answer
    with serving(echo, tls=certificates.context("127.0.0.1")) as server:
        async with engine_kit(tls=certificates.trust) as kit:
            for body in (b"one", b"two", bytes(300_000)):
                assert (await kit.ask(at(server), body)).data == body
        assert len(server.peers) == 1


# ------------------------------------------------------------------------------- proxies


async def test_https_goes_through_a_tunnel(certificates: Certificates) -> None:
    with (
        serving(echo, tls=certificates.context("origin.test")) as server,
        serving(proxy_to(server.port)) as proxy,
    ):
        way = Target.parse(at(proxy, "http"))
        async with engine_kit(tls=certificates.trust, proxy=way) as kit:
            for body in (b"one", b"two"):
                call = await kit.ask("https://origin.test:9999/mcp", body)
                assert bytes(call.data) == body
        assert len(proxy.peers) == 1
        assert b"one" not in proxy.peers[0].raw


async def test_http_goes_to_the_proxy_with_its_whole_url() -> None:
    with serving(echo) as proxy:
        async with engine_kit(proxy=Target.parse(at(proxy, "http"))) as kit:
            call = await kit.ask("http://origin.test/mcp")
        received = bytes(proxy.peers[0].plain)
    assert call.end == "ended"
    assert received.startswith(b"POST http://origin.test/mcp HTTP/1.1\r\nHost: origin.test\r\n")


async def test_a_unix_socket_is_never_reached_through_a_proxy(tmp_path: Path) -> None:
    place = str(tmp_path / "socket")
    with serving(echo, unix_socket=Path(place)) as server:
        proxy = Target.parse(f"http://127.0.0.1:{closed_port()}")
        async with engine_kit(proxy=proxy) as kit:
            call = await kit.ask(Target.parse("http://a/mcp", unix_socket=place))
        assert bytes(server.peers[0].plain).startswith(b"POST /mcp HTTP/1.1\r\n")
    assert call.end == "ended"


@pytest.mark.parametrize(
    "status", ["407 Proxy Authentication Required", "502 Bad Gateway", "302 Found"]
)
async def test_a_tunnel_that_is_refused_says_the_proxys_status(
    status: str, certificates: Certificates
) -> None:
    with serving(proxy_to(0, status)) as proxy:
        way = Target.parse(at(proxy, "http"))
        async with engine_kit(tls=certificates.trust, proxy=way) as kit:
            call = await kit.ask("https://origin.test/")
    assert failed(call, ConnectStep.PROXY).proxy_status == int(status[:3])


@pytest.mark.parametrize(
    ("says", "told"),
    [
        (b"", "the proxy closed the connection"),
        (b"nonsense\r\n", "the proxy broke HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nspoken in the tunnel", "the proxy spoke in the tunnel"),
    ],
)
async def test_a_proxy_that_gives_no_tunnel_is_an_error_that_says_why(
    says: bytes, told: str, certificates: Certificates
) -> None:
    def handle(peer: Peer) -> None:
        peer.read_head()
        peer.send(says)

    with serving(handle) as proxy:
        way = Target.parse(at(proxy, "http"))
        async with engine_kit(tls=certificates.trust, proxy=way) as kit:
            call = await kit.ask("https://origin.test/")
    error = failed(call, ConnectStep.PROXY)
    assert error.proxy_status is None
    assert told in str(error)


async def test_a_proxy_that_is_not_there_is_named() -> None:
    proxy = Target.parse(f"http://127.0.0.1:{closed_port()}")
    async with engine_kit(proxy=proxy) as kit:
        call = await kit.ask("https://origin.test/")
    assert "the proxy" in str(failed(call, ConnectStep.CONNECT))


# ------------------------------------------------------------------------------- the guard


@pytest.mark.requirement("I14")
@pytest.mark.parametrize("url", ["http://localhost:{}/", "http://127.0.0.1:{}/"])
async def test_nobody_is_looked_up_or_connected_to_without_leave(url: str) -> None:
    with serving(echo) as server:
        async with engine_kit() as kit:
            guard = RecordingGuard(RefusalError())
            call = await kit.ask(url.format(server.port), guard=guard)
            assert kit.engine.open_connections == 0
        assert server.peers == []
    assert (call.events, call.error) == (["refused"], guard.error)


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("through", ["tls", "tunnel"])
@pytest.mark.parametrize("how", ["refused", "given up"])
async def test_no_byte_of_a_handshake_or_a_tunnel_leaves_without_leave(
    through: str, how: str, certificates: Certificates
) -> None:
    class Second(RecordingGuard):
        """Gives leave to connect, and none for what comes then."""

        def check(self) -> None:
            super().check()
            if self.checks == 2 and how == "refused":
                raise RefusalError
            call.ticket.settled = self.checks == 2

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
        way = Target.parse(f"http://127.0.0.1:{port}") if through == "tunnel" else None
        url = "https://origin.test/" if way else f"https://127.0.0.1:{port}/"
        async with engine_kit(tls=certificates.trust, proxy=way) as kit:
            guard = Second()
            call = kit.call(url, guard=guard)
            with anyio.fail_after(30):
                while not (call.over.is_set() or call.exchange.over):
                    await anyio.lowlevel.checkpoint()
        peer, _ = listener.accept()
        with peer, contextlib.suppress(ConnectionResetError):
            peer.settimeout(5)
            assert peer.recv(1) == b""
    assert guard.checks == 2
    assert call.events == (["refused"] if how == "refused" else [])
    assert call.ticket.delivery is Delivery.NOT_SENT


async def test_one_who_gives_up_while_a_name_is_looked_up_connects_nowhere() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        async with engine_kit() as kit:
            call = kit.call(f"http://localhost:{listener.getsockname()[1]}/")
            call.exchange.abort()
            # a name that is asked for later is answered later
            other = await kit.ask(f"http://localhost:{closed_port()}/")
            assert kit.engine.open_connections == 0
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert (call.events, other.end) == ([], "failed")


async def test_one_who_gives_up_while_connecting_leaves_nothing_open() -> None:
    with full_backlog() as port:
        async with engine_kit() as kit:
            call = kit.call(f"http://127.0.0.1:{port}/")
            other = await kit.ask(f"http://127.0.0.1:{closed_port()}/")
            assert kit.engine.open_connections == 1
            call.exchange.abort()
            assert kit.engine.open_connections == 0
    assert (call.events, other.end) == ([], "failed")


# ------------------------------------------------------------------------------- names


async def look_up(reactor: Reactor, resolver: Resolver, host: str) -> object:
    answered: Waiter[object] = reactor.waiter()
    resolver.look_up(host, 80, answered.set_result)
    with anyio.fail_after(30):
        return await answered


async def test_more_names_than_threads_wait_for_their_turn() -> None:
    async with open_reactor() as reactor:
        resolver = Resolver(reactor, threads_max=1)
        answers: list[object] = []
        all_there: Waiter[None] = reactor.waiter()

        def report(answer: object) -> None:
            answers.append(answer)
            if len(answers) == 4:
                all_there.set_result(None)

        for _ in range(3):
            resolver.look_up("localhost", 80, report)
        forgotten = resolver.look_up("localhost", 80, lambda _: answers.append("forgotten"))
        resolver.look_up("localhost", 80, report)
        forgotten.forget()
        with anyio.fail_after(30):
            await all_there
        resolver.close()
    assert "forgotten" not in answers


async def test_a_name_has_addresses_or_an_error() -> None:
    async with open_reactor() as reactor:
        resolver = Resolver(reactor, threads_max=2)
        found = await look_up(reactor, resolver, "localhost")
        missing = await look_up(reactor, resolver, "no-such-name.invalid")
        unspeakable = await look_up(reactor, resolver, "x" * 300)
        resolver.close()
    assert isinstance(found, list)
    assert Address(socket.AF_INET, ("127.0.0.1", 80)) in found
    assert isinstance(missing, OSError)
    assert isinstance(unspeakable, OSError)
