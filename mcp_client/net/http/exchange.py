"""One request and its response: where it stands, and how its owner gives it up. It does no I/O."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from mcp_client.net.http.messages import ExchangeSink, HttpRequest
from mcp_client.ports import SendGuard, Ticket

__all__ = ["Carrier", "Exchange", "ExchangeOwner", "PoolKey"]


class PoolKey(NamedTuple):
    """Which connections an exchange may use. An engine has one proxy, which need not be named."""

    origin: str
    unix_socket: str
    credential: str


class Carrier(Protocol):
    """What an exchange is on: a connection, or the making of one."""

    def stop(self) -> None:
        """Reset it, in this step."""
        ...

    def pause(self) -> None:
        """Read no more for now."""
        ...

    def resume(self) -> None:
        """Read on."""
        ...


class ExchangeOwner(Protocol):
    """The engine, as an exchange sees it."""

    def finished(self, exchange: Exchange) -> None:
        """Forget the exchange, wherever it stands."""
        ...

    def deadline_set(self, deadline: float) -> None:
        """Have the exchange ended at this time."""
        ...


class Exchange:
    """One request on its way. `abort`, `pause`, `resume` and `deadline` are for its owner.

    What else is public is for the modules of this package.

    Attributes:
        over: True once its sink has been told the last, or it was aborted.
        key: which connections it may use.
        head: the request's head without late headers and without the line that ends it.
        recorded: True once the observer has put it on record.
        carrier: what it is on; None while it waits for something.
    """

    __slots__ = (
        "_deadline",
        "_owner",
        "carrier",
        "guard",
        "head",
        "key",
        "over",
        "recorded",
        "request",
        "sink",
        "ticket",
    )

    def __init__(
        self,
        owner: ExchangeOwner,
        request: HttpRequest,
        head: bytes,
        guard: SendGuard,
        ticket: Ticket,
        sink: ExchangeSink,
    ) -> None:
        self._owner = owner
        self._deadline = request.deadline
        target = request.target
        self.key = PoolKey(target.origin, target.unix_socket, request.credential)
        self.request = request
        self.head = head
        self.guard = guard
        self.ticket = ticket
        self.sink = sink
        self.over = False
        self.recorded = False
        self.carrier: Carrier | None = None

    @property
    def deadline(self) -> float | None:
        """The reactor's time at which it fails with ExchangeTimeoutError. May be set anew."""
        return self._deadline

    @deadline.setter
    def deadline(self, when: float | None) -> None:
        self._deadline = when
        if when is not None and not self.over:
            self._owner.deadline_set(when)

    def abort(self) -> None:
        """Give up, in this step: no byte leaves after it, and the sink hears no more.

        A connection on which it was begun is reset, so that the kernel drops what it has not sent.
        Harmless once the exchange is over.
        """
        if not self.over:
            carrier = self.carrier
            self._owner.finished(self)
            if carrier is not None:
                carrier.stop()

    def pause(self) -> None:
        """Have no more read; what was read by then may still come."""
        if self.carrier is not None:
            self.carrier.pause()

    def resume(self) -> None:
        """Read on after `pause`."""
        if self.carrier is not None:
            self.carrier.resume()
