"""The server's own stream on a loop turned by hand: how often it is asked for, and when again."""

from __future__ import annotations

import pytest

from mcp_client import UNGUARDED
from mcp_client.net.endpoint import Endpoint
from mcp_client.net.http.errors import (
    CertificateError,
    ConnectError,
    ConnectionLostError,
    ConnectStep,
)
from mcp_client.net.link import HttpLink
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ManualReactor
from mcp_client.transports.streamable_http.listening import ListeningStream
from mcp_client.transports.streamable_http.owner import SessionState
from tests.mcp_client.http.harness import CountingEngine

LIMITS = HttpTransportLimits(
    reconnects_max=3, retry_seconds=1.0, retry_seconds_max=1.0, settled_seconds=10.0
)
EVENTS = (("content-type", "text/event-stream"),)


class Owner:
    """What a stream needs of its transport."""

    def __init__(self) -> None:
        self.engine = CountingEngine()
        self.reactor = ManualReactor()
        self.link = HttpLink(
            endpoint=Endpoint.parse("http://127.0.0.1:1/mcp", headers={}, credential="srv"),
            engine=self.engine,
            server="srv",
            reactor=self.reactor,
            limits=ClientLimits(),
            http_limits=LIMITS,
        )
        self.state = SessionState()

    @property
    def asked(self) -> int:
        return len(self.engine.requests)

    def deliver(self, frame: bytes, within: int) -> None:
        pass

    def session_lost(self, state: SessionState) -> None:
        state.lost = True


def listening() -> tuple[Owner, ListeningStream]:
    """A stream that was asked for and is there."""
    owner = Owner()
    stream = ListeningStream(owner, UNGUARDED)
    stream.start()
    stream.response_started(200, EVENTS)
    return owner, stream


def refused() -> ConnectError:
    return ConnectError("nobody is there", step=ConnectStep.CONNECT)


@pytest.mark.requirement("S-9", "H-9")
@pytest.mark.parametrize("error", [refused(), ConnectionLostError("cut")])
def test_a_server_that_is_not_there_for_a_moment_is_asked_again(error: Exception) -> None:
    owner, stream = listening()
    stream.ended()
    owner.reactor.advance(1.0)
    stream.failed(error, Delivery.NOT_SENT)
    owner.reactor.advance(1.0)
    stream.response_started(200, EVENTS)

    assert owner.asked == 3


def test_a_server_that_stays_away_is_asked_so_often_and_no_more() -> None:
    owner, stream = listening()
    stream.ended()
    for _ in range(10):
        owner.reactor.advance(5.0)
        stream.failed(refused(), Delivery.NOT_SENT)

    assert owner.asked == 1 + LIMITS.reconnects_max


@pytest.mark.parametrize(("lasts", "asked"), [(9.0, 1 + LIMITS.reconnects_max), (10.0, 11)])
def test_only_a_stream_that_lasts_is_asked_for_without_an_end(lasts: float, asked: int) -> None:
    owner, stream = listening()
    for _ in range(10):
        owner.reactor.advance(lasts)
        stream.body(b"id: 1\ndata: {}\n\n")
        stream.ended()
        before = owner.asked
        owner.reactor.advance(1.0)
        if owner.asked == before:
            break
        stream.response_started(200, EVENTS)

    assert owner.asked == asked


def test_the_time_in_which_nothing_was_there_is_not_that_of_a_stream() -> None:
    owner, stream = listening()
    stream.ended()
    for _ in range(10):
        owner.reactor.advance(20.0)
        stream.failed(refused(), Delivery.NOT_SENT)

    assert owner.asked == 1 + LIMITS.reconnects_max


def test_a_server_that_was_never_there_is_not_asked_again() -> None:
    owner = Owner()
    stream = ListeningStream(owner, UNGUARDED)
    stream.start()
    stream.failed(refused(), Delivery.NOT_SENT)
    owner.reactor.advance(60.0)

    assert owner.asked == 1


def test_a_certificate_that_is_not_trusted_is_no_server_that_is_away() -> None:
    owner, stream = listening()
    stream.ended()
    owner.reactor.advance(1.0)
    stream.failed(CertificateError("not trusted", step=ConnectStep.TLS), Delivery.NOT_SENT)
    owner.reactor.advance(60.0)

    assert owner.asked == 2
