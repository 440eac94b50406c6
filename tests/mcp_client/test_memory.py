"""The connection within one process behaves as any other: opened once, silent before and after, lost once."""

from __future__ import annotations

import pytest

from mcp_client.ports import SILENT
from mcp_client.protocol.errors import LocalProtocolError, McpError, ServerGoneError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ManualReactor, RecordingGuard
from mcp_client.transports.memory import MemoryTransport
from tests.mcp_client.stdio.harness import Ticket


class Far:
    """The server's side, and the client's sink: notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.fails = False

    def opened(self, transport: MemoryTransport) -> None:
        self.told.append("opened")

    def closed(self) -> None:
        self.told.append("closed")

    def frame_arrived(self, frame: bytes) -> None:
        self.told.append(f"arrived {frame.decode()}")

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        self.told.append(f"received {frame.decode()}")
        if self.fails:
            raise LookupError

    def connection_lost(self, error: Exception) -> None:
        self.told.append(f"lost {type(error).__name__}")


def wire() -> tuple[MemoryTransport, Far, ManualReactor]:
    far, reactor = Far(), ManualReactor()
    made = MemoryTransport(
        far, reactor=reactor, limits=ClientLimits(), observer=SILENT, server="far"
    )
    return made, far, reactor


async def test_it_is_opened_once() -> None:
    transport, far, _ = wire()
    await transport.open(far)

    with pytest.raises(LocalProtocolError):
        await transport.open(far)

    assert far.told == ["opened"]


async def test_before_it_is_open_and_after_its_loss_nothing_is_sent_or_delivered() -> None:
    transport, far, reactor = wire()
    with pytest.raises(McpError):
        transport.send(b"early", RecordingGuard(), Ticket())
    transport.deliver(b"early\n")
    await transport.open(far)
    transport.lose(ServerGoneError("gone", server="far", stage="test"))

    with pytest.raises(McpError):
        transport.send(b"late", RecordingGuard(), Ticket())
    transport.deliver(b"late\n")
    reactor.run()

    assert far.told == ["opened", "lost ServerGoneError"]
    assert transport.writes == []


@pytest.mark.requirement("I1")
async def test_what_was_queued_when_it_was_lost_is_neither_asked_for_nor_sent() -> None:
    transport, far, reactor = wire()
    guard, ticket = RecordingGuard(), Ticket()
    await transport.open(far)
    transport.send(b"queued", guard, ticket)
    transport.lose(ServerGoneError("gone", server="far", stage="test"))
    reactor.run()

    assert (guard.checks, transport.writes, ticket.end) == (0, [], "lost")


async def test_its_loss_and_its_end_are_told_once() -> None:
    transport, far, _ = wire()
    await transport.open(far)
    transport.lose(LookupError())
    transport.lose(ValueError())
    await transport.close()
    await transport.close()

    assert far.told == ["opened", "lost LookupError", "closed"]


async def test_frames_behind_one_that_nobody_could_take_are_not_taken() -> None:
    transport, far, _ = wire()
    await transport.open(far)
    far.fails = True
    transport.deliver(b"one\ntwo\n")
    transport.deliver(b"three\n")

    assert far.told == ["opened", "received one", "lost LookupError"]


@pytest.mark.requirement("I3")
async def test_a_wire_that_takes_nothing_counts_as_full_and_writes_nothing() -> None:
    transport, far, reactor = wire()
    guard, ticket = RecordingGuard(), Ticket()
    await transport.open(far)
    transport.block(after_bytes=0)
    transport.send(b"frame", guard, ticket)
    reactor.run()
    assert (transport.writes, guard.spent, ticket.end) == ([], 0, "")

    transport.unblock()
    reactor.run()

    assert far.told == ["opened", "arrived frame"]
