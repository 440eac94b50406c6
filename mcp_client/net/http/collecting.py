"""What came of one exchange, kept until somebody waits for it: between the engine and HTTP libraries.

It knows no library.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from mcp_client.net.http.exchange import Exchange
from mcp_client.net.reactor import Reactor, Waiter
from mcp_client.protocol.errors import Delivery

__all__ = ["BUFFERED_BYTES_MAX", "Collector", "QuietTicket"]

BUFFERED_BYTES_MAX: Final = 256 * 1024
"""Of a response that nobody reads yet: four reads, then the socket is left alone."""


class QuietTicket:
    """A `Ticket` of something that is no frame of the protocol: nobody else looks at it."""

    id: int | None = None
    method = ""
    name = ""
    headers: Sequence[tuple[str, str]] = ()
    settled = False

    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0

    def refused(self, error: Exception) -> None:
        """Do nothing."""

    def written(self) -> None:
        """Do nothing."""

    def failed(self, error: Exception) -> None:
        """Do nothing."""

    def lost(self) -> None:
        """Do nothing."""


class Collector:
    """An `ExchangeSink` that keeps what came until somebody asks for it.

    Attributes:
        exchange: what it is the sink of; set by its owner.
        head: status and headers, once they are here.
        complete: True once all of the body is here.
        error: what ended the exchange, if something did.
    """

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._waiter: Waiter[None] | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self.exchange: Exchange | None = None
        self.head: tuple[int, Sequence[tuple[str, str]]] | None = None
        self.complete = False
        self.error: Exception | None = None

    def refused(self, error: Exception) -> None:
        """Keep why nothing was sent."""
        self.error = error
        self._wake()

    def first_byte_out(self) -> None:
        """Do nothing."""

    def written(self) -> None:
        """Do nothing."""

    def response_started(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Keep the head."""
        self.head = (status, headers)
        self._wake()

    def body(self, data: bytes) -> None:
        """Keep a piece; past the bound no more is read for now."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > BUFFERED_BYTES_MAX and self.exchange is not None:
            self.exchange.pause()
        self._wake()

    def ended(self) -> None:
        """Note that all is here."""
        self.complete = True
        self._wake()

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """Keep what ended it."""
        self.error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    @property
    def has_data(self) -> bool:
        """True if something can be taken."""
        return bool(self._pieces)

    async def until(self, ready: Callable[[], bool]) -> None:
        """Wait until something holds, or the exchange has failed."""
        while self.error is None and not ready():
            self._waiter = self._reactor.waiter()
            await self._waiter

    def take(self) -> bytes:
        """Take what is here, and have more read."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self.exchange is not None:
            self.exchange.resume()
        return data
