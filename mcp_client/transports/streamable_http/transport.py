"""One connection to one URL: its session, its streams, its end; it reads no message."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import anyio

from mcp_client.net.http.messages import ExchangeSink
from mcp_client.net.http.side_ticket import SideTicket
from mcp_client.net.link import HttpLink
from mcp_client.net.posting import PostsUnderWay
from mcp_client.net.reactor import Reactor, TimerHandle, Waiter
from mcp_client.ports import FrameSink, SendGuard, Ticket
from mcp_client.protocol.errors import (
    Delivery,
    LocalProtocolError,
    ServerGoneError,
)
from mcp_client.protocol.http.errors import SessionLostError
from mcp_client.protocol.http.replies import Headers
from mcp_client.protocol.sending import check_size, check_spoken, not_open, opened_twice
from mcp_client.protocol.versions import MODERN_VERSIONS
from mcp_client.transports.streamable_http.listening import ListeningStream
from mcp_client.transports.streamable_http.owner import SessionState
from mcp_client.transports.streamable_http.request import INITIALIZE, MessageStream

__all__ = ["StreamableHttpTransport"]

INITIALIZED: Final = "notifications/initialized"
VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""What may be agreed on over it with a handshake."""


class StreamableHttpTransport:
    """See `mcp_client.ports.Transport`. Each message is a POST of its own; nothing is ever resent.

    The guard of `initialize` is also the leave for what the session itself needs: the server's own
    stream, and the end of the session. A message `initialize` begins a session anew, without the id
    of the one before.
    """

    def __init__(self, link: HttpLink) -> None:
        self.link: Final = link
        self._state = SessionState()
        self._sink: FrameSink | None = None
        self._session_guard: SendGuard | None = None
        self._streams: PostsUnderWay[MessageStream] = PostsUnderWay()
        self._lingering: dict[MessageStream, float] = {}
        self._linger_timer: TimerHandle | None = None
        self._listening: ListeningStream | None = None
        self._over = False

    # ------------------------------------------------------------------------------- Transport

    @property
    def carries_headers(self) -> bool:
        """True: since 2026-07-28 headers say what a message says."""
        return True

    @property
    def versions(self) -> Sequence[str]:
        """See `VERSIONS`."""
        return VERSIONS

    async def open(self, sink: FrameSink) -> None:
        """Take the sink. Never waits: the first connection is made for the first message."""
        if self._sink is not None or self._over:
            raise opened_twice(self.link.server)
        self._sink = sink

    def send(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        """Queue one message. Raises SessionLostError until `initialize` begins a new session."""
        if self._sink is None or self._over:
            raise not_open(self.link.server)
        check_size(frame, self.link.limits, self.link.server)
        if ticket.method == INITIALIZE:
            self._begin_session(guard)
        elif self._state.lost:
            raise SessionLostError(
                "the server no longer knows the session", server=self.link.server, stage="send"
            )
        stream = MessageStream(self, guard, ticket)
        deadline = None
        if ticket.id is None:
            deadline = self.link.reactor.now() + self.link.limits.request_seconds_max
        request = self.link.endpoint.request(
            "POST", self._state.post_headers(ticket), frame, deadline=deadline
        )
        stream.start(request)
        self._streams.add(stream)

    def negotiated(self, version: str) -> None:
        """Say the version from now on. Raises UnsupportedVersionError for one of another transport."""
        spoken = (*VERSIONS, *MODERN_VERSIONS)
        check_spoken(version, spoken, over="Streamable HTTP", server=self.link.server)
        self._state.negotiated(version)

    def abandon(self, ticket: Ticket) -> bool:
        """Close the stream of a request. Since 2026-07-28 that alone tells the server."""
        stream = self._streams.of(ticket)
        if stream is not None:
            stream.stop()
            self.over(stream)
        # MCP 2025-03-26, Streamable HTTP: a disconnection is no cancellation
        return self._state.modern

    async def close(self) -> None:
        """End the session at the server if it has one, then everything. Idempotent."""
        if self._over:
            return
        self._lose(
            ServerGoneError("the connection was closed", server=self.link.server, stage="close")
        )
        with anyio.CancelScope(shield=True):
            try:
                await self._end_session()
            finally:
                self.link.engine.close()

    # ------------------------------------------------------------------------ for its streams

    @property
    def state(self) -> SessionState:
        """The present session."""
        return self._state

    def deliver(self, frame: bytes, within: int) -> None:
        """Hand a frame to the session; what that raises ends the connection."""
        if self._sink is None or self._over:
            return
        try:
            self._sink.frame_received(frame, within)
        except Exception as error:  # noqa: BLE001  # whatever it is, this connection is over
            self._lose(error)

    def over(self, stream: MessageStream) -> None:
        """Forget a stream that has ended."""
        self._streams.forget(stream)
        self._lingering.pop(stream, None)
        if stream.accepted and stream.ticket.method == INITIALIZED:
            self._listen()

    def answered(self, stream: MessageStream) -> None:
        """Let a stream end by itself, but not for long."""
        if stream in self._lingering or stream not in self._streams:
            return
        self._lingering[stream] = self.link.reactor.now() + self.link.http_limits.linger_seconds_max
        if self._linger_timer is None:
            self._sweep()

    def session_lost(self, state: SessionState) -> None:
        """Take no more messages in a session; those under way come to their own ends."""
        state.lost = True
        if state is self._state and self._listening is not None:
            self._listening.stop()
            self._listening = None

    # -------------------------------------------------------------------------------- session

    def _begin_session(self, guard: SendGuard) -> None:
        if self._listening is not None:
            self._listening.stop()
            self._listening = None
        self._state = SessionState()
        self._session_guard = guard

    def _listen(self) -> None:
        """Ask for the server's own stream, now that the handshake is complete."""
        if self._over or self._state.modern or self._state.lost or self._session_guard is None:
            return
        if self._listening is None:
            self._listening = ListeningStream(self, self._session_guard)
            self._listening.start()

    async def _end_session(self) -> None:
        """Tell the server that its session is over, if there is leave to."""
        state, guard = self._state, self._session_guard
        if not state.session_id or state.modern or state.lost or guard is None:
            return
        farewell = _Farewell(self.link.reactor)
        request = self.link.endpoint.request(
            "DELETE",
            state.common,
            deadline=self.link.reactor.now() + self.link.limits.close_seconds_max,
        )
        with contextlib.suppress(LocalProtocolError):
            exchange = self.link.engine.exchange(request, guard, SideTicket(), farewell)
            try:
                await farewell.over
            finally:
                exchange.abort()

    def _sweep(self) -> None:
        """End the streams that have stayed open too long, and come back when the next will have."""
        self._linger_timer = None
        now = self.link.reactor.now()
        for stream, until in [*self._lingering.items()]:
            if until <= now:
                stream.stop()
                self.over(stream)
        if self._lingering:
            self._linger_timer = self.link.reactor.at(min(self._lingering.values()), self._sweep)

    def _lose(self, error: Exception) -> None:
        """End everything but the session at the server, in this step: no byte leaves after it."""
        if self._over:
            return
        self._over = True
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        if self._listening is not None:
            self._listening.stop()
        streams = self._streams.take_all()
        self._lingering.clear()
        for stream in streams:
            stream.stop()
        if self._sink is not None:
            self._sink.connection_lost(error)
        for stream in streams:
            stream.ticket.lost()


class _Farewell(ExchangeSink):
    """Waits for the end of a DELETE, whatever that is: 405 is fine, and so is no answer."""

    def __init__(self, reactor: Reactor) -> None:
        self.over: Waiter[None] = reactor.waiter()

    def refused(self, error: Exception) -> None:
        self._end()

    def first_byte_out(self) -> None:
        pass

    def written(self) -> None:
        pass

    def response_started(self, status: int, headers: Headers) -> None:
        self._end()

    def body(self, data: bytes) -> None:
        pass

    def ended(self) -> None:
        self._end()

    def failed(self, error: Exception, delivery: Delivery) -> None:
        self._end()

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)
