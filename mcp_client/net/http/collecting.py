"""What came of one exchange, kept until somebody waits for it: between the engine and HTTP libraries.

It knows no library.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.exchange import Exchange
from mcp_client.net.http.messages import HttpRequest
from mcp_client.net.http.side_ticket import SideTicket
from mcp_client.net.reactor import Waiter
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import Delivery

__all__ = ["BUFFERED_BYTES_MAX", "Collector"]

BUFFERED_BYTES_MAX: Final = 256 * 1024
"""Of a response that nobody reads yet: four reads, then the socket is left alone."""


class Collector:
    """One exchange, of which is kept what came until somebody asks for it. An `ExchangeSink`.

    Attributes:
        complete: True once all of the body is here.
    """

    def __init__(self, engine: HttpEngine, request: HttpRequest, guard: SendGuard) -> None:
        self._reactor = engine.reactor
        self._waiter: Waiter[None] | None = None
        self._pieces: deque[bytes] = deque()
        self._buffered = 0
        self._head: tuple[int, Sequence[tuple[str, str]]] | None = None
        self._error: Exception | None = None
        self.complete = False
        # nothing is told before this has returned
        self._exchange: Exchange = engine.exchange(request, guard, SideTicket(), self)

    async def head(self) -> tuple[int, Sequence[tuple[bytes, bytes]]]:
        """Wait for the head; return the status, and the headers as they came.

        From then on the exchange has no deadline: each wait for the body has its own. Raises what
        ended the exchange. One whose head nobody waits for any more is ended.
        """
        try:
            await self._until(lambda: self._head is not None)
        except BaseException:
            self._exchange.abort()
            raise
        if self._head is None:
            assert self._error is not None
            raise self._error
        self._exchange.deadline = None
        status, headers = self._head
        return status, [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers
        ]

    async def piece(self, seconds: float | None = None) -> bytes:
        """Wait for some of the body, at most so long; return nothing once all of it was taken.

        Raises what ended the exchange.
        """
        while True:
            if data := self.take():
                return data
            if self.complete:
                return b""
            if self._error is not None:
                raise self._error
            if seconds is not None:
                self._exchange.deadline = self._reactor.now() + seconds
            await self._until(lambda: self.complete or bool(self._pieces))

    def take(self) -> bytes:
        """Take what is here, and have more read."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        self._exchange.resume()
        return data

    def abort(self) -> None:
        """End the exchange now. Harmless if it is over."""
        self._exchange.abort()

    # --------------------------------------------------------------------------- ExchangeSink

    def refused(self, error: Exception) -> None:
        """Keep why nothing was sent."""
        self._error = error
        self._wake()

    def first_byte_out(self) -> None:
        """Do nothing."""

    def written(self) -> None:
        """Do nothing."""

    def response_started(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Keep the head."""
        self._head = (status, headers)
        self._wake()

    def body(self, data: bytes) -> None:
        """Keep a piece; past the bound no more is read for now."""
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > BUFFERED_BYTES_MAX:
            self._exchange.pause()
        self._wake()

    def ended(self) -> None:
        """Note that all is here."""
        self.complete = True
        self._wake()

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """Keep what ended it."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _until(self, ready: Callable[[], bool]) -> None:
        while self._error is None and not ready():
            self._waiter = self._reactor.waiter()
            await self._waiter
