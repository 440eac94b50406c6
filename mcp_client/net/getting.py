"""A stream asked for by GET: redirects within its origin, another try later; it reads no event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mcp_client.net.endpoint import RunningExchange, within_origin
from mcp_client.net.http.messages import ExchangeSink, Target
from mcp_client.net.http.side_ticket import SideTicket
from mcp_client.net.link import HttpLink
from mcp_client.net.reactor import TimerHandle
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.http.replies import EVENT_STREAM, Headers, header, is_redirect

__all__ = ["Getter"]

REDIRECTS_MAX: Final = 5
"""Redirects of one GET: what a server has moved is found after one or two."""

_STREAM: Final = (("Accept", EVENT_STREAM), ("Cache-Control", "no-store"))


class Getter:
    """One stream over all the GETs that it takes. Each is a send of its own under the guard.

    Args:
        link: where it is, and what sends requests.
        guard: leave for each of them.
        sink: is told of them.
        headers: called for each of them, for what they carry beside asking for a stream.
    """

    __slots__ = (
        "_exchange",
        "_guard",
        "_headers",
        "_link",
        "_redirects",
        "_sink",
        "_ticket",
        "_timer",
        "target",
    )

    def __init__(
        self,
        link: HttpLink,
        *,
        guard: SendGuard,
        sink: ExchangeSink,
        headers: Callable[[], Sequence[tuple[str, str]]],
    ) -> None:
        self.target: Target = link.endpoint.target
        self._link = link
        self._guard = guard
        self._sink = sink
        self._headers = headers
        self._redirects = 0
        self._ticket = SideTicket()
        self._exchange: RunningExchange | None = None
        self._timer: TimerHandle | None = None

    def get(self) -> None:
        """Ask for the stream. Never raises: what goes wrong is told to the sink, in a later step."""
        self._timer = None
        self._ticket = SideTicket()
        try:
            headers = (*_STREAM, *self._headers())
            request = self._link.endpoint.request("GET", headers, target=self.target)
            self._exchange = self._link.engine.exchange(
                request, self._guard, self._ticket, self._sink
            )
        except Exception as error:  # noqa: BLE001  # told below
            self._link.reactor.soon(self._failed, self._ticket, error)

    def get_later(self, seconds: float) -> None:
        """Ask for it after a pause, where it was asked for first."""
        self.target = self._link.endpoint.target
        self._redirects = 0
        self._timer = self._link.reactor.at(self._link.reactor.now() + seconds, self.get)

    def follow(self, status: int, headers: Headers) -> bool:
        """Ask where a redirect sends us, if it is one: the sink hears of that next.

        Raises RemoteProtocolError if it leaves the origin, which is checked at each hop, or if
        there are too many.
        """
        location = header(headers, "location")
        if not is_redirect(status) or not location:
            return False
        self._redirects += 1
        if self._redirects > REDIRECTS_MAX:
            raise RemoteProtocolError("the server redirects without end", stage="receive")
        self.target = within_origin(self.target, location)
        self.stop()
        self.get()
        return True

    def stop(self) -> None:
        """End what is under way; the sink is told nothing more."""
        self._ticket.settled = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._exchange is not None:
            self._exchange.abort()
            self._exchange = None

    def _failed(self, ticket: SideTicket, error: Exception) -> None:
        if not ticket.settled:
            self._sink.failed(error, ticket.delivery)
