"""The server's own stream: asked for once, again after it ends, and not at all if there is none."""

from __future__ import annotations

import math

from mcp_client.net.getting import Getter
from mcp_client.net.http.errors import CertificateError, ConnectError, ConnectionLostError
from mcp_client.ports import SendGuard
from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.http.replies import EVENT_STREAM, Headers, media_type
from mcp_client.protocol.http.resumption import Resumption
from mcp_client.transports.streamable_http.events import EventReader
from mcp_client.transports.streamable_http.owner import NO_REQUEST, SessionState, StreamOwner

__all__ = ["ListeningStream"]


class ListeningStream:
    """A GET under the session's own guard, for as long as the session lasts. An `ExchangeSink`.

    That it fails ends nothing: a server need not offer one. After the last reconnection there is
    none any more; attempts are counted anew only after a stream that lasted a while.
    """

    __slots__ = ("_began", "_get", "_owner", "_reader", "_resumption", "_state")

    def __init__(self, owner: StreamOwner, guard: SendGuard) -> None:
        self._owner = owner
        self._state: SessionState = owner.state
        self._resumption = Resumption(owner.link.http_limits, polled=False)
        self._get = Getter(
            owner.link,
            guard=guard,
            sink=self,
            headers=lambda: self._state.get_headers(self._resumption.last_event_id),
        )
        self._reader: EventReader | None = None
        self._began = math.inf

    def start(self) -> None:
        """Ask for the stream."""
        self._get.get()

    def stop(self) -> None:
        """End it at once."""
        self._get.stop()

    # --------------------------------------------------------------------------- ExchangeSink

    def refused(self, error: Exception) -> None:
        """Do nothing more: the leave is gone."""

    def first_byte_out(self) -> None:
        """Do nothing."""

    def written(self) -> None:
        """Do nothing."""

    def response_started(self, status: int, headers: Headers) -> None:
        """Read the stream if there is one. Raises RemoteProtocolError for what is none."""
        self._reader = None
        if self._get.follow(status, headers):
            return
        # MCP 2025-03-26, session management: 404 means start again
        if status == 404 and self._state.session_id:
            self._get.stop()
            self._owner.session_lost(self._state)
            return
        if status != 200 or media_type(headers) != EVENT_STREAM:
            raise RemoteProtocolError("the server offers no stream of its own", stage="receive")
        self._began = self._owner.link.reactor.now()
        self._reader = EventReader(
            self._owner.link.limits.frame_bytes_max, self._resumption, self._deliver
        )

    def body(self, data: bytes) -> None:
        """Take more of the stream. Raises FrameTooLargeError."""
        if self._reader is not None:
            self._reader.feed(data)

    def ended(self) -> None:
        """Reconnect."""
        self._again()

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """Reconnect, if it was there before."""
        if isinstance(error, CertificateError):
            return  # another server than before answers there
        # one that is being started anew takes no connections for a moment
        if self._reader is not None and isinstance(error, ConnectionLostError | ConnectError):
            self._again()

    def _again(self) -> None:
        lasted, self._began = self._owner.link.reactor.now() - self._began, math.inf
        delay = self._resumption.next_delay(lasted)
        if delay is not None and not self._state.lost:
            self._get.get_later(delay)

    def _deliver(self, frame: bytes) -> None:
        # no request's stream: an answer comes in its own, or where that was resumed
        self._owner.deliver(frame, NO_REQUEST)
