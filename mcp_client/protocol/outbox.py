"""What stands between a queued frame and its first byte: order, bounds, checks; it does no I/O."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol

from mcp_client.protocol.errors import Delivery, LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.sending import check_size, check_waiting

__all__ = ["FlushObserver", "FlushState", "FrameGuard", "FrameTicket", "Outbox"]

_NOTHING = memoryview(b"")
_MAYBE_SENT: Final = Delivery.MAYBE_SENT  # looked up by name it would cost as much as a call

# The ports stand above this package; these are what the outbox needs of them.


class FrameGuard(Protocol):
    """The outbox's part of `mcp_client.ports.SendGuard`."""

    def check(self) -> None:
        """Raise if the frame may not go out now."""
        ...

    def sent(self) -> None:
        """Take note that the first byte is out."""
        ...


class FrameTicket(Protocol):
    """The outbox's part of `mcp_client.ports.Ticket`."""

    delivery: Delivery
    bytes_sent: int

    @property
    def settled(self) -> bool:
        """True once nobody waits for the frame any more."""
        ...

    def refused(self, error: Exception) -> None:
        """No byte left, and none will."""
        ...

    def written(self) -> None:
        """The whole frame was taken."""
        ...

    def lost(self) -> None:
        """The whole frame was not taken, and will not be."""
        ...


class FlushObserver(Protocol):
    """The outbox's part of `mcp_client.ports.ClientObserver`."""

    def flushing(self) -> None:
        """Put on record what must come before the frames; raise to refuse them."""
        ...


class FlushState(Enum):
    """Where a flush ended."""

    IDLE = "idle"
    """Nothing is queued."""
    BLOCKED = "blocked"
    """The other side takes no more now: wait until it does, then flush again."""


class _Entry:
    __slots__ = ("guard", "recorded", "ticket", "wire")

    def __init__(self, wire: bytes, guard: FrameGuard, ticket: FrameTicket) -> None:
        self.wire = wire
        self.guard = guard
        self.ticket = ticket
        self.recorded = False


class Outbox:
    """The frames of one connection that are not yet written, and the gate before each first byte.

    A frame whose first byte was taken is finished, whatever its guard says by then; one that was
    not begun is checked again in every flush. `write` must return the number of bytes taken, or
    raise BlockingIOError; hand in a function written in C, since no Python may run between the
    last check and the write.
    """

    def __init__(
        self,
        limits: ClientLimits,
        observer: FlushObserver,
        *,
        server: str = "",
        delimiter: bytes = b"\n",
    ) -> None:
        self._limits = limits
        self._observer = observer
        self._server = server
        self._delimiter = delimiter
        self._queue: deque[_Entry] = deque()
        self._batch: list[_Entry] = []
        self._begun: _Entry | None = None
        self._rest = _NOTHING
        self._queued_bytes = 0
        self._writing = False

    @property
    def queued_bytes(self) -> int:
        """Bytes queued and not yet taken, delimiters counted."""
        return self._queued_bytes

    @property
    def mid_frame(self) -> bool:
        """True while the first bytes of a frame are out and its last are not."""
        return self._begun is not None

    def push(self, frame: bytes, guard: FrameGuard, ticket: FrameTicket) -> None:
        """Queue one frame, without its delimiter.

        Raises FrameTooLargeError past `frame_bytes_max`, LocalProtocolError past
        `outbox_bytes_max` or for a frame that contains the delimiter; nothing is queued then.
        """
        limits, delimiter = self._limits, self._delimiter
        if len(frame) > limits.frame_bytes_max:  # a call for each frame would be one too many
            check_size(frame, limits, self._server)
        # MCP, stdio: messages are delimited by newlines and must not contain any
        if delimiter in frame:
            raise LocalProtocolError(
                "a frame contains its delimiter", server=self._server, stage="send"
            )
        wire = frame + delimiter
        queued = self._queued_bytes + len(wire)
        if queued > limits.outbox_bytes_max:
            check_waiting(queued, limits, self._server)
        self._queue.append(_Entry(wire, guard, ticket))
        self._queued_bytes = queued

    def flush(self, write: Callable[[memoryview], int]) -> FlushState:
        """Write what may be written, until nothing is queued or the other side takes no more.

        What `write` raises otherwise is raised again, with the tickets up to date; call `fail_all`
        then. Raises RuntimeError if an earlier flush never learned what its write took.
        """
        if self._writing:
            # a write whose outcome is unknown: to write again might send bytes twice
            raise RuntimeError("an earlier flush did not end")
        self._writing = True
        state = self._flush(write)
        self._writing = False
        return state

    def fail_all(self) -> None:
        """Drop everything that is queued: `lost()` on each ticket. For when the connection is over.

        May be called from within a flush, by a guard or a ticket: nothing is written after it.
        """
        entries = [*self._batch, *self._queue]
        if self._begun is not None:
            entries.insert(0, self._begun)
        self._begun = None
        self._rest = _NOTHING
        self._batch.clear()
        self._queue.clear()
        self._queued_bytes = 0
        for entry in entries:
            entry.ticket.lost()

    def _flush(self, write: Callable[[memoryview], int]) -> FlushState:
        while True:
            if self._begun is not None:
                if not self._write_rest(self._begun, write):
                    return FlushState.BLOCKED
                continue
            self._gather()
            if not self._batch:
                return FlushState.IDLE
            if self._record() and not self._write_checked(write):
                return FlushState.BLOCKED

    def _write_rest(self, entry: _Entry, write: Callable[[memoryview], int]) -> bool:
        """Go on with a frame that was begun. False: the other side takes no more now."""
        try:
            taken = write(self._rest)
        except BlockingIOError:
            return False
        if not taken:
            return False
        self._queued_bytes -= taken
        self._rest = self._rest[taken:]
        whole = not self._rest
        if whole:
            self._begun = None
            self._rest = _NOTHING
        entry.ticket.bytes_sent += taken
        if whole:
            entry.ticket.written()
        return True

    def _gather(self) -> None:
        """Move frames for one write from the queue to the batch: at least one, if there is any."""
        queue, batch, most = self._queue, self._batch, self._limits.flush_bytes_max
        size = 0
        while queue:
            entry = queue[0]
            if entry.ticket.settled:
                queue.popleft()
                self._queued_bytes -= len(entry.wire)
                continue
            size += len(entry.wire)
            if batch and size > most:
                break
            batch.append(queue.popleft())

    def _record(self) -> bool:
        """Ask the observer, once for each frame; what it raises refuses the whole batch."""
        fresh = [entry for entry in self._batch if not entry.recorded]
        if not fresh:
            return True
        try:
            self._observer.flushing()
        except Exception as error:  # noqa: BLE001  # whatever it is, the frames are not on record
            self._refuse([(entry, error) for entry in self._batch])
            return False
        for entry in fresh:
            entry.recorded = True
        return True

    def _write_checked(self, write: Callable[[memoryview], int]) -> bool:
        """Check and write the batch in one step. False: the other side takes no more now."""
        batch = self._batch
        while batch:
            wires = [entry.wire for entry in batch if not entry.ticket.settled]
            if len(wires) < len(batch):
                self._drop_settled()
                continue
            view = memoryview(wires[0] if len(wires) == 1 else b"".join(wires))
            for entry in batch:
                entry.ticket.delivery = _MAYBE_SENT
            # From the last check to the write nothing else is called, and nothing is allocated:
            # a collection could run a finaliser that takes the authority back.
            refusals = _check_all(batch)
            if not refusals:
                if not batch:  # a guard ended the connection
                    return True
                try:
                    taken = write(view)
                except BlockingIOError:
                    taken = 0
                except OSError as error:
                    if error.errno in (errno.EPIPE, errno.ECONNRESET):
                        self._put_back()  # broken before the first byte of any of them
                    raise
                self._account(taken)
                return taken > 0
            for entry in batch:
                entry.ticket.delivery = Delivery.NOT_SENT
            self._refuse(refusals)
        return True

    def _drop_settled(self) -> None:
        """Drop what ended while the record was made, or with the refusal of another."""
        waiting = [entry for entry in self._batch if not entry.ticket.settled]
        self._queued_bytes -= sum(len(entry.wire) for entry in self._batch if entry.ticket.settled)
        self._batch[:] = waiting

    def _refuse(self, refusals: Sequence[tuple[_Entry, Exception]]) -> None:
        errors = {id(entry): error for entry, error in refusals}
        # without those that a guard's end of the connection has told already
        dropped = [entry for entry in self._batch if id(entry) in errors]
        self._batch[:] = [entry for entry in self._batch if id(entry) not in errors]
        self._queued_bytes -= sum(len(entry.wire) for entry in dropped)
        # our own books are in order before anybody else runs
        for entry in dropped:
            entry.ticket.refused(errors[id(entry)])

    def _put_back(self) -> None:
        """No byte of the batch is out: it waits again, at the head of the queue."""
        for entry in reversed(self._batch):
            entry.ticket.delivery = Delivery.NOT_SENT
            self._queue.appendleft(entry)
        self._batch.clear()

    def _account(self, taken: int) -> None:
        """Note what the kernel took of the batch, then tell guards and tickets."""
        self._queued_bytes -= taken
        whole: list[tuple[_Entry, int]] = []
        begun: _Entry | None = None
        left = taken
        for entry in self._batch:
            size = len(entry.wire)
            if left < size:
                begun = entry if left else None
                break
            left -= size
            whole.append((entry, size))
        if begun is not None:
            self._begun = begun
            self._rest = memoryview(begun.wire)[left:]
        del self._batch[: len(whole) + (begun is not None)]
        if self._batch:
            self._put_back()
        for entry, size in whole:
            entry.guard.sent()
            ticket = entry.ticket
            ticket.bytes_sent = size
            ticket.written()
        if begun is not None:
            begun.guard.sent()
            begun.ticket.bytes_sent = left


def _check_all(batch: Sequence[_Entry]) -> list[tuple[_Entry, Exception]]:
    """Ask every guard; return the refusals. An empty list means: all said yes, just now.

    With several frames all are asked twice, since the check of one might, by a finaliser that it
    sets off, take back another that had said yes before it.
    """
    refusals: list[tuple[_Entry, Exception]] = []
    for entry in batch:
        try:
            entry.guard.check()
        except Exception as error:  # noqa: BLE001  # a refusal is whatever a guard raises
            refusals.append((entry, error))
    if len(batch) > 1 and not refusals:
        for entry in batch:
            try:
                entry.guard.check()
            except Exception as error:  # noqa: BLE001
                refusals.append((entry, error))
    return refusals
