"""One request and where it got to: it is awaited by one task, and knows nothing of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from mcp_client.net.reactor import Reactor, Waiter
from mcp_client.ports import ClientObserver
from mcp_client.protocol.errors import Delivery, LocalProtocolError, PeerError

__all__ = ["PendingOwner", "PendingRequest"]

# a member of an enumeration that is looked up by name costs as much as a call
_NOT_SENT: Final = Delivery.NOT_SENT
_ANSWERED: Final = Delivery.ANSWERED


class PendingOwner(Protocol):
    """What a request needs of the session that made it."""

    @property
    def reactor(self) -> Reactor:
        """The running loop."""
        ...

    @property
    def observer(self) -> ClientObserver:
        """Who is told of what happens on the wire."""
        ...

    def forget(self, pending: PendingRequest) -> None:
        """Take a request that has ended out of the books."""
        ...

    def give_up(self, pending: PendingRequest) -> None:
        """End a request whose task was cancelled, and tell the server."""
        ...


class PendingRequest:
    """One request, from its place in the queue to its end. The transport keeps its ticket up to date.

    Attributes:
        id: the JSON-RPC id.
        method: the MCP method.
        name: what it is about, where a transport has to say it.
        headers: arguments that a transport has to mirror.
        delivery: what the server may have seen of it.
        settled: True once it has ended: answered, refused, failed or given up.
        deadline: the reactor's time at which it ends without an answer.
        told: True once the server was told that nobody waits for it any more.
    """

    __slots__ = (
        "_bytes_sent",
        "_drain_waiters",
        "_error",
        "_left",
        "_result",
        "_session",
        "_waiter",
        "deadline",
        "delivery",
        "headers",
        "id",
        "method",
        "name",
        "settled",
        "told",
    )

    def __init__(
        self,
        session: PendingOwner,
        request_id: int,
        method: str,
        deadline: float,  # by place: for a class, keywords cost as much again
        name: str = "",
        headers: Sequence[tuple[str, str]] = (),
    ) -> None:
        self.id = request_id
        self.method = method
        self.name = name
        self.headers = headers
        self.delivery: Delivery = _NOT_SENT
        self.settled = False
        self.deadline = deadline
        self.told = False
        self._session = session
        self._bytes_sent = 0
        self._left = False
        self._result: object = None
        self._error: Exception | None = None
        self._waiter: Waiter[None] | None = None
        self._drain_waiters: list[Waiter[None]] | None = None

    if TYPE_CHECKING:
        # to a type checker no property can stand for an attribute of a protocol
        bytes_sent: int
    else:

        @property
        def bytes_sent(self) -> int:
            """Bytes of the frame that the kernel took."""
            return self._bytes_sent

        @bytes_sent.setter
        def bytes_sent(self, count: int) -> None:
            first = count and not self._bytes_sent
            self._bytes_sent = count
            if first:
                self._session.observer.request_sent(self.id, self.method)

    @property
    def drained(self) -> bool:
        """True once no more byte of the frame will leave."""
        # one that has ended and not begun is dropped where it is queued
        return self._left or (self.settled and self.delivery is _NOT_SENT)

    async def wait(self) -> object:
        """Return the `result` member of the answer, as decoded.

        Raises PeerError, CallTimeoutError, ServerGoneError, RemoteProtocolError, what the guard
        raised, or what `fail` was given. One task waits. If it is cancelled the request ends, and
        the server is told under the session's cancel guard if a byte had gone out.
        """
        ended = self.ending()
        try:
            await ended
        except BaseException:
            self._session.give_up(self)
            raise
        return self.outcome()

    def ending(self) -> Waiter[None]:
        """Return what is awaited until the request has ended; `outcome` then says with what.

        For who can do without the coroutine of `wait`, and gives the request up if it is cancelled.
        Raises LocalProtocolError if another task waits.
        """
        waiter: Waiter[None] = self._session.reactor.waiter()
        if self.settled:
            waiter.set_result(None)
        elif self._waiter is not None:
            raise LocalProtocolError("another task waits for this request", stage="wait")
        else:
            self._waiter = waiter
        return waiter

    def outcome(self) -> object:
        """Return what `wait` returns, or raise what it raises, once the request has ended."""
        assert self.settled
        if self._error is not None:
            raise self._error
        return self._result

    def fail(self, error: Exception) -> None:
        """End the request with `error`, in this step. Nothing happens if it has ended already.

        A frame that has not begun never leaves; an answer that comes later is dropped.
        """
        if self.settled:
            return
        self._error = error
        self._end()
        self._session.observer.request_failed(self.id, self.method, error)

    def succeed(self, result: object) -> None:
        """End the request with its result, in this step. For the session."""
        self.delivery = _ANSWERED
        self._result = result
        self._end()
        failed = (
            self.method == "tools/call"
            and isinstance(result, dict)
            and result.get("isError") is True  # pyright: ignore[reportUnknownMemberType]  # a cast is a call
        )
        self._session.observer.request_answered(
            self.id, self.method, "tool_error" if failed else ""
        )

    def reject(self, error: PeerError) -> None:
        """End the request with the server's error, in this step. For the session."""
        self.delivery = Delivery.ANSWERED
        self._error = error
        self._end()
        self._session.observer.request_answered(self.id, self.method, str(error.code))

    async def wait_drained(self) -> None:
        """Wait until no more byte of the frame will leave."""
        while not self.drained:
            waiter: Waiter[None] = self._session.reactor.waiter()
            if self._drain_waiters is None:
                self._drain_waiters = []
            self._drain_waiters.append(waiter)
            await waiter

    def refused(self, error: Exception) -> None:
        """Take the guard's own error: no byte left (Ticket)."""
        self._left = True
        self.fail(error)
        self._wake_drained()

    def written(self) -> None:
        """The whole frame was taken by the kernel (Ticket)."""
        self._left = True
        if self._drain_waiters is not None:
            self._wake_drained()

    def failed(self, error: Exception) -> None:
        """Take what the transport says became of this request alone (Ticket)."""
        self._left = True
        self.fail(error)
        self._wake_drained()

    def lost(self) -> None:
        """The connection ended before the whole frame was taken (Ticket)."""
        self._left = True
        self._wake_drained()

    def _end(self) -> None:
        self.settled = True
        self._session.forget(self)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        if self._drain_waiters is not None:
            self._wake_drained()

    def _wake_drained(self) -> None:
        if self._drain_waiters is None or not self.drained:
            return
        waiters, self._drain_waiters = self._drain_waiters, None
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
