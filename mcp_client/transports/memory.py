"""A connection inside one process: the real outbox and framing, faults on demand; no descriptors."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mcp_client.net.reactor import Reactor
from mcp_client.ports import ClientObserver, FrameSink, SendGuard, Ticket
from mcp_client.protocol.errors import ServerGoneError
from mcp_client.protocol.framing import LineFramer
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.outbox import Outbox
from mcp_client.protocol.sending import not_open, opened_twice
from mcp_client.protocol.versions import SUPPORTED_VERSIONS

__all__ = ["FarEnd", "MemoryTransport", "WireWrite"]


@dataclass(frozen=True, slots=True)
class WireWrite:
    """Bytes that left the client in one write, and the number of the step in which they did.

    Steps are counted by the transport: one for each time that it began to check and write.
    """

    step: int
    data: bytes


class FarEnd(Protocol):
    """The server's side. Its functions are called in steps of their own, never within a write."""

    def opened(self, transport: MemoryTransport) -> None:
        """The client has opened the connection."""
        ...

    def frame_arrived(self, frame: bytes) -> None:
        """One frame of the client came whole."""
        ...

    def closed(self) -> None:
        """The client has closed the connection."""
        ...


class MemoryTransport:
    """See `mcp_client.ports.Transport`. A write is a step in which the bytes are taken and kept.

    Attributes:
        writes: all that was written, in order.
        carries_headers: as if frames travelled with headers; their tickets have them.
    """

    def __init__(
        self,
        far_end: FarEnd,
        *,
        reactor: Reactor,
        limits: ClientLimits,
        observer: ClientObserver,
        server: str,
        carries_headers: bool = False,
    ) -> None:
        self.carries_headers = carries_headers
        self.writes: list[WireWrite] = []
        self._far_end = far_end
        self._reactor = reactor
        self._server = server
        self._outbox = Outbox(limits, observer, server=server)
        self._to_server = LineFramer(limits.frame_bytes_max)
        self._to_client = LineFramer(limits.frame_bytes_max)
        self._sink: FrameSink | None = None
        self._allowance: int | None = None
        self._take_bytes_max: int | None = None
        self._on_the_way: deque[bytes] = deque()
        self._steps = 0
        self._flush_due = False
        self._lost = False
        self._closed = False

    # ------------------------------------------------------------------------------- Transport

    @property
    def versions(self) -> Sequence[str]:
        """All that begin with a handshake."""
        return SUPPORTED_VERSIONS

    async def open(self, sink: FrameSink) -> None:
        """Tell the far end. Never waits."""
        if self._sink is not None:
            raise opened_twice(self._server)
        self._sink = sink
        self._far_end.opened(self)

    def send(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        """Queue one frame. It is checked and written in a later step."""
        if self._sink is None or self._lost:
            raise not_open(self._server)
        self._outbox.push(frame, guard, ticket)
        self._flush_soon()

    def negotiated(self, version: str) -> None:
        """Do nothing: no frame has to say it here."""

    def abandon(self, ticket: Ticket) -> bool:
        """Return False: the server has to be told."""
        return False

    async def close(self) -> None:
        """Lose the connection and tell the far end. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self.lose(ServerGoneError("the connection was closed", server=self._server, stage="close"))
        self._far_end.closed()

    # ---------------------------------------------------------------------------------- faults

    def block(self, *, after_bytes: int = 0) -> None:
        """Take so many bytes more, then none until `unblock`: a pipe that fills up."""
        self._allowance = after_bytes

    def unblock(self) -> None:
        """Take everything again, and go on in a later step."""
        self._allowance = None
        self._flush_soon()

    def take_at_most(self, bytes_max: int | None) -> None:
        """Take at most so many bytes with each write; None for no bound."""
        self._take_bytes_max = bytes_max

    def deliver(self, data: bytes) -> None:
        """Hand bytes of the server to the client, in this step, however they are cut."""
        if self._sink is None or self._lost:
            return
        try:
            for frame in self._to_client.feed(data):
                self._sink.frame_received(frame)
        except Exception as error:  # noqa: BLE001  # whatever it is, this connection is over
            self.lose(error)

    def lose(self, error: Exception) -> None:
        """End the connection, in this step: no byte leaves after it."""
        if self._lost:
            return
        self._lost = True
        self._outbox.fail_all()
        if self._sink is not None:
            self._sink.connection_lost(error)

    # --------------------------------------------------------------------------------- writing

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._reactor.soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        self._steps += 1
        # blocked or idle: `unblock` and `send` come back; nothing is left of what was lost
        self._outbox.flush(self._write)

    def _write(self, view: memoryview) -> int:
        count = len(view)
        if self._take_bytes_max is not None:
            count = min(count, self._take_bytes_max)
        if self._allowance is not None:
            count = min(count, self._allowance)
            self._allowance -= count
        if count == 0:
            raise BlockingIOError
        data = bytes(view[:count])
        self.writes.append(WireWrite(self._steps, data))
        self._on_the_way.append(data)
        self._reactor.soon(self._arrive)
        return count

    def _arrive(self) -> None:
        # Which write arrives is the queue's to say: a simulation shuffles steps, a pipe never bytes.
        for frame in self._to_server.feed(self._on_the_way.popleft()):
            self._far_end.frame_arrived(frame)
