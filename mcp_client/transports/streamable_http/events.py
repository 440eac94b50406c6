"""A stream of events over its requests: redirects, resumption, messages; whose it is, others say."""

from __future__ import annotations

from collections.abc import Callable

from mcp_client.net.endpoint import RunningExchange, within_origin
from mcp_client.net.http.messages import ExchangeSink, Target
from mcp_client.net.reactor import TimerHandle
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.http_replies import Headers, header, is_redirect
from mcp_client.protocol.resumption import Resumption
from mcp_client.protocol.sse import SseDecoder
from mcp_client.transports.streamable_http.owner import SessionState, SideTicket, StreamOwner

__all__ = ["EventReader", "Getter"]


class EventReader:
    """Bytes of one response in, messages out; it remembers where to resume."""

    __slots__ = ("_decoder", "_deliver", "_resumption")

    def __init__(
        self, bound: int, resumption: Resumption, deliver: Callable[[bytes], object]
    ) -> None:
        self._decoder = SseDecoder(bound)
        self._resumption = resumption
        self._deliver = deliver

    def feed(self, data: bytes) -> None:
        """Take more. Raises FrameTooLargeError."""
        for event in self._decoder.feed(data):
            self._resumption.note(event)
            # MCP 2025-11-25: an event without data primes the client to reconnect
            if event.data and event.kind == "message":
                self._deliver(event.data)


class Getter:
    """A GET for a stream of events, asked again after redirects and pauses; each is a new send."""

    __slots__ = (
        "_exchange",
        "_guard",
        "_owner",
        "_redirects",
        "_sink",
        "_state",
        "_target",
        "_ticket",
        "_timer",
    )

    def __init__(
        self, owner: StreamOwner, state: SessionState, guard: SendGuard, sink: ExchangeSink
    ) -> None:
        self._owner = owner
        self._state = state
        self._guard = guard
        self._sink = sink
        self._target: Target | None = None
        self._redirects = 0
        self._ticket = SideTicket()
        self._exchange: RunningExchange | None = None
        self._timer: TimerHandle | None = None

    def get(self, last_event_id: str) -> None:
        """Ask for the stream, after that event if there is one, under the guard. Never raises."""
        self._timer = None
        self._ticket = SideTicket()
        owner = self._owner
        try:
            request = owner.endpoint.request(
                "GET", self._state.get_headers(last_event_id), target=self._target
            )
            self._exchange = owner.engine.exchange(request, self._guard, self._ticket, self._sink)
        except Exception as error:  # noqa: BLE001  # the sink hears of it, in a step of its own
            owner.reactor.soon(self._failed, self._ticket, error)

    def get_later(self, seconds: float, last_event_id: str) -> None:
        """Ask for it after a pause."""
        self._target, self._redirects = None, 0
        owner = self._owner
        self._timer = owner.reactor.at(
            owner.reactor.now() + seconds, lambda: self.get(last_event_id)
        )

    def follow(self, status: int, headers: Headers, last_event_id: str) -> bool:
        """Ask where a redirect sends us, if it is one. Raises RemoteProtocolError if it may not be.

        The origin is checked at each hop.
        """
        location = header(headers, "location")
        if not is_redirect(status) or not location:
            return False
        self._redirects += 1
        if self._redirects > self._owner.http_limits.redirects_max:
            raise RemoteProtocolError("the server redirects without end", stage="receive")
        self._target = within_origin(self._target or self._owner.endpoint.target, location)
        self.stop()
        self.get(last_event_id)
        return True

    def stop(self) -> None:
        """End what is under way; the sink is told nothing more."""
        self._ticket.dropped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._exchange is not None:
            self._exchange.abort()
            self._exchange = None

    def _failed(self, ticket: SideTicket, error: Exception) -> None:
        if not ticket.dropped:
            self._sink.failed(error, ticket.delivery)
