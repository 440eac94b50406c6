"""Invariants I1, I2 and I3 on real sockets: authority is taken back before every step there is."""

from __future__ import annotations

import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from mcp_client.net.http.messages import Target
from mcp_client.net.reactor import Reactor
from mcp_client.protocol.errors import Delivery
from mcp_client.testing import RecordingGuard
from tests.mcp_client.net.http.conftest import Certificates
from tests.mcp_client.net.http.harness import Call, Kit, RefusalError, engine_kit
from tests.mcp_client.net.http.servers import (
    Peer,
    Server,
    answer,
    application_records,
    echo,
    proxy_to,
    serving,
)
from tests.mcp_client.stdio.harness import SteppedReactor

STEPS = 14
"""Steps before which authority is taken back: a request is begun or refused before the last."""
ROADS = ("plain", "unix", "tls 1.2", "tls 1.3", "proxy, tls 1.2", "proxy, tls 1.3")
LARGE_ROADS = ("plain", "unix", "tls 1.3", "proxy, tls 1.3")
LARGE = 8 * 1024 * 1024
MARK = b"the-body-of-the-one-that-is-revoked"


@dataclass(kw_only=True)
class Road:
    """One way from the engine to a server."""

    name: str
    server: Server
    target: Target
    proxy: Target | None

    @property
    def finished_records(self) -> int:
        """Records of application data that are the client's part of one handshake."""
        return 1 if self.name.endswith("1.3") else 0


@contextmanager
def road(
    name: str,
    handler: Callable[[Peer], None],
    certificates: Certificates,
    folder: Path,
) -> Generator[Road]:
    newest = ssl.TLSVersion.TLSv1_2 if name.endswith("1.2") else None
    tls = certificates.context("127.0.0.1", newest=newest) if "tls" in name else None
    place = folder / "socket" if name == "unix" else None
    if place is not None:
        place.unlink(missing_ok=True)
    with serving(handler, tls=tls, unix_socket=place, buffer=16_384) as server:
        url = (
            f"https://127.0.0.1:{server.port}/" if tls else f"http://127.0.0.1:{server.port or 80}/"
        )
        target = Target.parse(url, unix_socket=str(place or ""))
        if name.startswith("proxy"):
            with serving(proxy_to(server.port), buffer=16_384) as proxy:
                to = Target.parse(f"http://127.0.0.1:{proxy.port}")
                yield Road(name=name, server=server, target=target, proxy=to)
        else:
            yield Road(name=name, server=server, target=target, proxy=None)


@asynccontextmanager
async def stepped(
    way: Road, certificates: Certificates
) -> AsyncGenerator[tuple[Kit, SteppedReactor]]:
    reactors: list[SteppedReactor] = []

    def wrap(reactor: Reactor) -> Reactor:
        reactors.append(SteppedReactor(reactor))
        return reactors[0]

    async with engine_kit(wrap=wrap, tls=certificates.trust, proxy=way.proxy) as kit:
        yield kit, reactors[0]


def revoke_before(
    step: int, kit: Kit, reactor: SteppedReactor, target: Target, body: bytes
) -> tuple[Call, list[bool]]:
    """Start an exchange whose guard says no from one step on; a begun one is aborted there."""
    guard = RecordingGuard()
    call = kit.call(target, body, guard=guard)
    begun: list[bool] = []
    steps = 0

    def before_step() -> None:
        nonlocal steps
        if steps == step and not call.over.is_set():
            begun.append(call.ticket.bytes_sent > 0)
            guard.error = RefusalError()
            if begun[0]:
                call.exchange.abort()
                call.over.set()
        steps += 1

    reactor.before_step = before_step
    return call, begun


def request_came(way: Road, peers: int, before: int) -> bool:
    """True if a byte of the second request reached the server, in the clear or encrypted."""
    if any(MARK in peer.plain for peer in way.server.peers):
        return True
    records = sum(application_records(peer.raw) for peer in way.server.peers)
    return "tls" in way.name and records > before + way.finished_records * peers


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I3")
@pytest.mark.parametrize("kept_alive", [False, True], ids=["new", "kept alive"])
@pytest.mark.parametrize("name", ROADS)
async def test_no_request_begins_after_its_leave_was_taken_back_before_any_step(
    name: str, kept_alive: bool, certificates: Certificates, tmp_path: Path
) -> None:
    outcomes: set[bool] = set()
    for step in range(STEPS):
        with road(name, echo, certificates, tmp_path) as way:
            async with stepped(way, certificates) as (kit, reactor):
                if kept_alive:
                    await kit.ask(way.target, b"first")
                before = sum(application_records(peer.raw) for peer in way.server.peers)
                known = len(way.server.peers)
                call, flipped = revoke_before(step, kit, reactor, way.target, MARK)
                await call.finish()
                reactor.before_step = lambda: None
            way.server.wait_for_all()
            begun = flipped[0] if flipped else True
            came = request_came(way, len(way.server.peers) - known, before)
        if not begun:
            assert not came, f"step {step}"
            assert call.end == "refused", f"step {step}"
            assert call.ticket.delivery is Delivery.NOT_SENT
        else:
            assert call.end != "refused", f"step {step}"
        outcomes.add(begun)
        if not flipped:
            break
    # the injection covers both sides of the first byte
    assert outcomes == {False, True}


@pytest.mark.requirement("I2")
@pytest.mark.requirement("I3")
@pytest.mark.parametrize("kept_alive", [False, True], ids=["new", "kept alive"])
@pytest.mark.parametrize("name", LARGE_ROADS)
async def test_no_byte_leaves_after_a_large_request_was_revoked_and_reset_before_any_step(
    name: str, kept_alive: bool, certificates: Certificates, tmp_path: Path
) -> None:
    outcomes: set[str] = set()
    for step in range(STEPS):
        read_on = threading.Event()

        def slow(peer: Peer, read_on: threading.Event = read_on) -> None:
            if kept_alive:
                peer.read_request()
                peer.send(answer())
            peer.read_head()
            read_on.wait(5)
            peer.drain()

        with road(name, slow, certificates, tmp_path) as way:
            async with stepped(way, certificates) as (kit, reactor):
                if kept_alive:
                    await kit.ask(way.target, b"first")
                call, flipped = revoke_before(step, kit, reactor, way.target, bytes(LARGE))
                with anyio.move_on_after(0.2):
                    await call.over.wait()
                reactor.before_step = lambda: None
                if not flipped:  # it waits for the server, and no more steps come
                    call.exchange.abort()
                taken = call.ticket.bytes_sent
                read_on.set()
            way.server.wait_for_all()
            received = sum(len(peer.plain) for peer in way.server.peers)
        if flipped and not flipped[0]:
            assert (taken, call.end) == (0, "refused"), f"step {step}"
            assert received < 4096, f"step {step}"
        else:
            assert 0 < taken < LARGE
            assert received <= taken + 4096, f"step {step}"
            if way.proxy is None and name != "unix":  # there others hold what was taken
                assert way.server.peers[-1].end == "reset"
                assert received < taken // 4, f"step {step}"
        outcomes.add("refused" if flipped and not flipped[0] else "reset")
        if not flipped:
            break
    assert outcomes == {"refused", "reset"}
