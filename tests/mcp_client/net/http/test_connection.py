"""The step of the first byte, with the socket's own `send` in the hands of the test."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from mcp_client.net.http.connection import Connection
from mcp_client.net.http.encoding import encode_head
from mcp_client.net.http.errors import ConnectionLostError
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.limits import HttpLimits
from mcp_client.net.http.messages import HttpRequest, LateHeaders, Target
from mcp_client.net.http.wires import PlainWire, TlsWire, Wire
from mcp_client.net.reactor import Reactor, open_reactor
from mcp_client.ports import SILENT
from mcp_client.protocol.errors import Delivery
from mcp_client.testing import RecordingGuard
from tests.mcp_client.garbage import Cycle
from tests.mcp_client.net.http.conftest import Certificates
from tests.mcp_client.net.http.harness import Call, RefusalError
from tests.mcp_client.net.http.servers import answer, application_records

TARGET = Target.parse("http://server.test/mcp")
KINDS = ("plain", "tls 1.2", "tls 1.3")
MARK = b"the-body"


class SpyWire:
    """A wire whose `send` first asks the test what to do."""

    def __init__(self, inner: Wire) -> None:
        self._inner = inner
        self.fd = inner.fd
        self.seals = inner.seals
        self.write_bytes_max = inner.write_bytes_max
        self.before_send: Callable[[], object] = lambda: None
        self.bytes_max: int | None = None
        self.seal = inner.seal
        self.receive = inner.receive
        self.alive = inner.alive
        self.close = inner.close
        self.reset = inner.reset
        self._send = inner.send

    @property
    def send(self) -> Callable[[memoryview], int]:
        return self._spy

    def _spy(self, view: memoryview) -> int:
        self.before_send()
        return self._send(view[: self.bytes_max])


class Owner:
    """Stands for the engine, of both a connection and an exchange."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def finished(self, exchange: Exchange) -> None:
        exchange.over = True
        exchange.carrier = None

    def deadline_set(self, deadline: float) -> None:
        pass

    def released(self, connection: Connection) -> None:
        self.events.append("released")

    def gone(self, connection: Connection) -> None:
        self.events.append("gone")

    def moved(self, exchange: Exchange) -> None:
        self.events.append("moved")


class Rig:
    """A connection, and the other end of its socket."""

    def __init__(self, kind: str, certificates: Certificates, reactor: Reactor) -> None:
        self.limits = HttpLimits()
        self.owner = Owner()
        ours, self.theirs = socket.socketpair()
        ours.settimeout(0)
        self.theirs.settimeout(0)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self.raw = b""
        if kind == "plain":
            wire: Wire = PlainWire(ours, reactor)
        else:
            wire = self._tls_wire(kind, certificates, ours, reactor)
        self.wire = SpyWire(wire)
        exchange = self.exchange()  # for its key
        self.connection = Connection(
            self.wire, exchange.exchange.key, self.owner, reactor, SILENT, self.limits
        )

    def _tls_wire(
        self, kind: str, certificates: Certificates, ours: socket.socket, reactor: Reactor
    ) -> TlsWire:
        newest = ssl.TLSVersion.TLSv1_2 if kind.endswith("1.2") else None
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = certificates.trust.new_context().wrap_bio(
            incoming, outgoing, server_hostname="server.test"
        )
        self._tls = certificates.context("server.test", newest=newest).wrap_bio(
            self._incoming, self._outgoing, server_side=True
        )
        for _ in range(4):
            for side in (tls, self._tls):
                with contextlib.suppress(ssl.SSLWantReadError):
                    side.do_handshake()
                self._incoming.write(outgoing.read())
                incoming.write(self._outgoing.read())
        return TlsWire(ours, reactor, tls, incoming, outgoing, write_bytes_max=65_536)

    def exchange(
        self,
        body: bytes = MARK,
        *,
        guard: RecordingGuard | None = None,
        late_headers: LateHeaders | None = None,
    ) -> Call:
        request = HttpRequest(method="POST", target=TARGET, body=body, late_headers=late_headers)
        call = Call(guard=guard or RecordingGuard())
        head = encode_head(request, self.limits, absolute=False)
        call.exchange = Exchange(self.owner, request, head, call.guard, call.ticket, call)
        return call

    def received(self) -> bytes:
        """What came to the other end by now, decrypted."""
        plain = b""
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            while data := self.theirs.recv(65_536):
                self.raw += data
                if self._tls is None:
                    plain += data
                else:
                    self._incoming.write(data)
                    with contextlib.suppress(ssl.SSLWantReadError):
                        while piece := self._tls.read(65_536):
                            plain += piece
        return plain

    def answer(self) -> None:
        """Answer the request."""
        if self._tls is None:
            self.theirs.send(answer())
        else:
            self._tls.write(answer())
            self.theirs.send(self._outgoing.read())

    async def serve_one(self) -> None:
        """Have the connection serve a request, so that it is kept alive."""
        call = self.exchange(b"first")
        self.connection.start(call.exchange)
        self.received()
        self.answer()
        assert (await call.finish()).end == "ended"
        self.owner.events.clear()
        self.raw = b""


@asynccontextmanager
async def a_rig(kind: str, certificates: Certificates) -> AsyncGenerator[Rig]:
    async with open_reactor() as reactor:
        rig = Rig(kind, certificates, reactor)
        yield rig
        rig.connection.stop()
        rig.theirs.close()


def block() -> None:
    raise BlockingIOError


# --------------------------------------------------------------- between the check and the write


class ArmingGuard(RecordingGuard):
    """Has the next container that is made anywhere collect garbage which takes its leave back."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at
        self._garbage = [Cycle(self._revoke)]

    def _revoke(self) -> None:
        self.error = RefusalError()

    def check(self) -> None:
        super().check()
        if self.checks == self._at:
            self._garbage.clear()
            gc.set_threshold(1)
            gc.enable()


def bearer() -> Sequence[tuple[str, str]]:
    return [("Authorization", "Bearer token")]


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I16")
@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("check", [1, 2])
@pytest.mark.parametrize("late_headers", [None, bearer], ids=["plain head", "late headers"])
@pytest.mark.parametrize("kind", KINDS)
async def test_no_collection_can_come_between_the_last_check_and_the_write(
    kind: str, late_headers: LateHeaders | None, check: int, certificates: Certificates
) -> None:
    revoked_at_the_write: list[bool] = []
    guard = ArmingGuard(check)
    async with a_rig(kind, certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = lambda: revoked_at_the_write.append(bool(guard.error))
        call = rig.exchange(guard=guard, late_headers=late_headers)
        rig.connection.start(call.exchange)
        gc.disable()
    if check == 1 and (late_headers or kind != "plain"):
        # it came while the head was made, and the last check saw it
        assert (call.end, revoked_at_the_write) == ("refused", [])
    else:
        assert (call.end, revoked_at_the_write) == ("written", [False])


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("late_headers", [None, bearer], ids=["plain head", "late headers"])
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_waited_for_room_is_checked_again(
    kind: str, late_headers: LateHeaders | None, certificates: Certificates
) -> None:
    guard = RecordingGuard()
    async with a_rig(kind, certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = block
        call = rig.exchange(guard=guard, late_headers=late_headers)
        rig.connection.start(call.exchange)
        assert call.ticket.delivery is Delivery.NOT_SENT
        guard.error = RefusalError()
        rig.wire.before_send = lambda: None
        await call.finish()
        assert rig.received() == b""
        assert application_records(rig.raw) == 0
        # what was sealed and never left would be missing in front of the next request
        assert rig.owner.events == ["released" if kind == "plain" else "gone"]
    assert (call.end, call.ticket.delivery) == ("refused", Delivery.NOT_SENT)
    assert call.error is guard.error


@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_waited_for_room_goes_out_when_there_is_some(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = block
        call = rig.exchange()
        rig.connection.start(call.exchange)
        rig.wire.before_send = lambda: None
        await call.until("written")
        assert rig.received().endswith(b"\r\n\r\n" + MARK)
        rig.answer()
        assert (await call.finish()).end == "ended"


async def test_the_headers_of_a_request_that_waited_are_those_of_its_first_byte(
    certificates: Certificates,
) -> None:
    tokens = ["old", "new"]
    async with a_rig("plain", certificates) as rig:
        rig.wire.before_send = block
        call = rig.exchange(late_headers=lambda: [("Authorization", tokens.pop(0))])
        rig.connection.start(call.exchange)
        rig.wire.before_send = lambda: None
        await call.until("written")
        received = rig.received()
    assert b"Authorization: new\r\n" in received
    assert b"old" not in received


@pytest.mark.requirement("I16")
@pytest.mark.parametrize("kind", KINDS)
async def test_no_credential_is_fetched_for_a_request_that_is_refused(
    kind: str, certificates: Certificates
) -> None:
    fetched: list[str] = []

    def fetch() -> Sequence[tuple[str, str]]:
        fetched.append("token")
        return bearer()

    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(guard=RecordingGuard(RefusalError()), late_headers=fetch)
        rig.connection.start(call.exchange)
        assert rig.received() == b""
        assert rig.owner.events == ["released"]  # nothing went into it
    assert (fetched, call.end) == ([], "refused")


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kind", KINDS)
async def test_late_headers_whose_making_ends_the_connection_go_nowhere(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:

        def end() -> Sequence[tuple[str, str]]:
            rig.connection.stop()
            return bearer()

        call = rig.exchange(late_headers=end)
        rig.connection.start(call.exchange)
        assert rig.received() == b""
    assert call.ticket.delivery is Delivery.NOT_SENT
    assert "first_byte_out" not in call.events


@pytest.mark.requirement("I3")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_body_that_takes_more_writes_than_one_step_has_leaves_whole(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:
        rig.wire.bytes_max = 64
        call = rig.exchange(b"x" * 4_000 + b"end")
        rig.connection.start(call.exchange)
        came = rig.received()
        assert not came.endswith(b"end")
        with anyio.fail_after(30):
            while "written" not in call.events:
                await anyio.lowlevel.checkpoint()
                came += rig.received()
        came += rig.received()
    assert came.endswith(b"x" * 4_000 + b"end")


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("kind", KINDS)
async def test_an_answer_that_comes_before_its_request_has_begun_answers_nothing(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = block
        call = rig.exchange()
        rig.connection.start(call.exchange)
        rig.answer()
        with anyio.fail_after(30):
            while "moved" not in rig.owner.events:
                await anyio.lowlevel.checkpoint()
    # it goes out over another connection, with leave anew
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


async def test_late_headers_that_cannot_be_had_refuse_the_request(
    certificates: Certificates,
) -> None:
    def fail() -> Sequence[tuple[str, str]]:
        raise LookupError("no token")

    async with a_rig("plain", certificates) as rig:
        call = rig.exchange(late_headers=fail)
        rig.connection.start(call.exchange)
        assert rig.received() == b""
    assert isinstance(call.error, LookupError)
    assert call.end == "refused"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_guard_that_aborts_from_within_its_check_stops_the_request(
    kind: str, certificates: Certificates
) -> None:
    class Aborting(RecordingGuard):
        def check(self) -> None:
            call.exchange.abort()

    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(guard=Aborting())
        rig.connection.start(call.exchange)
        assert rig.received() == b""
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


@pytest.mark.requirement("I3")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_that_was_begun_is_finished_whatever_its_guard_says_by_then(
    kind: str, certificates: Certificates
) -> None:
    guard = RecordingGuard()
    body = bytes(1024 * 1024)
    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(body, guard=guard)
        rig.connection.start(call.exchange)
        guard.error = RefusalError()
        received = b""
        with anyio.fail_after(30):
            while "written" not in call.events:
                received += rig.received()
                await anyio.lowlevel.checkpoint()
        received += rig.received()
    assert received.endswith(body)
    assert guard.spent == 1


@pytest.mark.requirement("I3")
@pytest.mark.parametrize("kind", KINDS)
async def test_a_request_of_which_half_is_out_is_cut_off_by_an_abort(
    kind: str, certificates: Certificates
) -> None:
    async with a_rig(kind, certificates) as rig:
        call = rig.exchange(bytes(8 * 1024 * 1024))
        rig.connection.start(call.exchange)
        taken = call.ticket.bytes_sent
        call.exchange.abort()
        rig.received()
        assert len(rig.raw) <= taken
        assert rig.theirs.recv(1) == b""
    assert "written" not in call.events


# ------------------------------------------------------------------- a first write that fails


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ECONNRESET])
async def test_a_kept_connection_that_was_closed_gives_its_request_to_another(
    number: int, certificates: Certificates
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    async with a_rig("plain", certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = fail
        call = rig.exchange()
        rig.connection.start(call.exchange)
        assert rig.owner.events == ["gone", "moved"]
    assert (call.events, call.ticket.delivery) == ([], Delivery.NOT_SENT)


@pytest.mark.parametrize(
    ("number", "delivery"),
    [
        (errno.EPIPE, Delivery.NOT_SENT),
        (errno.ECONNRESET, Delivery.NOT_SENT),
        (errno.ENOBUFS, Delivery.MAYBE_SENT),
    ],
)
async def test_a_new_connection_that_takes_nothing_fails_its_request(
    number: int, delivery: Delivery, certificates: Certificates
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number))

    async with a_rig("plain", certificates) as rig:
        rig.wire.before_send = fail
        call = rig.exchange()
        rig.connection.start(call.exchange)
    assert isinstance(call.error, ConnectionLostError)
    assert (call.error.stage, call.error.delivery) == ("send", delivery)


async def test_a_kept_connection_that_ends_before_the_first_byte_gives_its_request_to_another(
    certificates: Certificates,
) -> None:
    async with a_rig("plain", certificates) as rig:
        await rig.serve_one()
        rig.wire.before_send = block
        call = rig.exchange()
        rig.connection.start(call.exchange)
        rig.theirs.close()
        with anyio.fail_after(30):
            while "moved" not in rig.owner.events:
                await anyio.lowlevel.checkpoint()
    assert call.events == []
