"""HTTP+SSE, the transport of 2024-11-05: one stream in, a POST per message out. For old servers only.

It is cold code: what stands between two blank lines is counted and cut here, and read by httpx-sse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final

import httpx
from httpx_sse import EventSource, ServerSentEvent

from mcp_client.net.endpoint import name_server, within_origin
from mcp_client.net.getting import Getter
from mcp_client.net.http.messages import HttpRequest, Target
from mcp_client.net.link import HttpLink
from mcp_client.net.posting import MessagePost, PostsUnderWay
from mcp_client.ports import FrameSink, SendGuard, Ticket
from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    McpError,
    RemoteProtocolError,
    ServerGoneError,
)
from mcp_client.protocol.http.errors import HttpStatusError
from mcp_client.protocol.http.replies import EVENT_STREAM, JSON, Headers, failure, media_type
from mcp_client.protocol.http.sse import SseBlocks
from mcp_client.protocol.sending import (
    check_size,
    check_spoken,
    check_waiting,
    not_open,
    opened_twice,
)

__all__ = ["HttpSseTransport"]

VERSIONS: Final = ("2024-11-05",)
"""What may be spoken over it."""

PIECE_BYTES: Final = 256 * 1024
"""Of a block that is handed to its reader at a time: large enough to go back to the system at once."""

_POST: Final = (("Content-Type", JSON),)


class _State(Enum):
    NEW = "new"
    """Nothing was asked for: there was no leave to."""
    WAITING = "waiting"
    """The stream is on its way, or has not said where messages go."""
    READY = "ready"
    OVER = "over"


class HttpSseTransport:
    """See `mcp_client.ports.Transport`. Answers come in one stream, whose end is that of everything.

    The stream is asked for with the first message, under its guard; messages wait until the server
    has said where they go.
    """

    def __init__(self, link: HttpLink) -> None:
        self.link: Final = link
        self._state = _State.NEW
        self._sink: FrameSink | None = None
        self._get: Getter | None = None
        self._events: SseBlocks | None = None
        self._post_to: Target | None = None
        self._waiting: list[tuple[bytes, SendGuard, Ticket]] = []
        self._waiting_bytes = 0
        self._posts: PostsUnderWay[_Post] = PostsUnderWay()

    # ------------------------------------------------------------------------------- Transport

    @property
    def carries_headers(self) -> bool:
        """False: no version that is spoken over it mirrors anything."""
        return False

    @property
    def versions(self) -> Sequence[str]:
        """See `VERSIONS`."""
        return VERSIONS

    async def open(self, sink: FrameSink) -> None:
        """Take the sink. Never waits: the stream is asked for with the first message."""
        if self._sink is not None or self._state is _State.OVER:
            raise opened_twice(self.link.server)
        self._sink = sink

    def send(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        """Queue one message until the server has said where messages go."""
        if self._sink is None or self._state is _State.OVER:
            raise not_open(self.link.server)
        check_size(frame, self.link.limits, self.link.server)
        if self._state is _State.READY:
            self._post(frame, guard, ticket)
            return
        check_waiting(self._waiting_bytes + len(frame), self.link.limits, self.link.server)
        self._waiting.append((frame, guard, ticket))
        self._waiting_bytes += len(frame)
        if self._state is _State.NEW:
            self._state = _State.WAITING
            self._get = Getter(self.link, guard=guard, sink=self, headers=lambda: ())
            self._get.get()

    def negotiated(self, version: str) -> None:
        """Raise UnsupportedVersionError for a version of another transport."""
        check_spoken(version, VERSIONS, over="HTTP+SSE", server=self.link.server)

    def abandon(self, ticket: Ticket) -> bool:
        """Return False: the server has to be told."""
        return False

    async def close(self) -> None:
        """End everything. Idempotent."""
        self._lose(
            ServerGoneError("the connection was closed", server=self.link.server, stage="close")
        )

    # ---------------------------------------------------------------- ExchangeSink of the stream

    def refused(self, error: Exception) -> None:
        """The guard of the first message said no."""
        for _, _, ticket in self._waiting:
            ticket.refused(error)
        self._waiting.clear()
        self._lose(error)

    def first_byte_out(self) -> None:
        """Do nothing."""

    def written(self) -> None:
        """Do nothing."""

    def response_started(self, status: int, headers: Headers) -> None:
        """Read the stream. Raises McpError if there is none."""
        if self._get is not None and self._get.follow(status, headers):
            return
        if not 200 <= status < 300:
            raise self.failure(status, headers)
        if media_type(headers) != EVENT_STREAM:
            raise RemoteProtocolError("the server answered with no stream", stage="start")
        self._events = SseBlocks(self.link.limits.frame_bytes_max)

    def body(self, data: bytes) -> None:
        """Take more of the stream. Raises FrameTooLargeError or RemoteProtocolError."""
        assert self._events is not None  # an answer that is no stream was ended at its head
        for block in self._events.feed(data):
            for event in _read(block):
                if self._state is not _State.OVER:
                    self._event(event)

    def ended(self) -> None:
        """The stream is over, and with it the connection."""
        self._lose(ServerGoneError("the server closed its stream", server=self.link.server))

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """The stream broke, and with it the connection."""
        if not isinstance(error, HttpStatusError):
            name_server(error, self.link.server, Delivery.NOT_SENT)
        self._lose(error)

    # -------------------------------------------------------------------------------- reading

    def _event(self, event: ServerSentEvent) -> None:
        if event.event == "endpoint" and self._post_to is None:
            base = self.link.endpoint.target if self._get is None else self._get.target
            self._post_to = within_origin(base, event.data)
            self._begin()
        elif event.event == "message" and event.data and self._sink is not None:
            frame = event.data.encode()
            if len(frame) > self.link.limits.frame_bytes_max:
                raise FrameTooLargeError(
                    f"a message is over the bound of {self.link.limits.frame_bytes_max} bytes",
                    stage="receive",
                )
            try:
                self._sink.frame_received(frame)
            except Exception as error:  # noqa: BLE001  # whatever it is, this connection is over
                self._lose(error)

    def _begin(self) -> None:
        self._state = _State.READY
        waiting, self._waiting = self._waiting, []
        for frame, guard, ticket in waiting:
            try:
                self._post(frame, guard, ticket)
            except McpError as error:
                ticket.failed(error)

    # -------------------------------------------------------------------------------- writing

    def _post(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        deadline = self.link.reactor.now() + self.link.limits.request_seconds_max
        request = self.link.endpoint.request(
            "POST", _POST, frame, target=self._post_to, deadline=deadline
        )
        post = _Post(self, ticket)
        post.start(request, guard)
        self._posts.add(post)

    def over(self, post: _Post) -> None:
        """Forget a POST that has ended."""
        self._posts.forget(post)

    def failure(self, status: int, headers: Headers) -> McpError:
        """Return what a status that is no success means."""
        return failure(
            status,
            headers,
            None,
            in_session=False,
            first_send=True,
            limits=self.link.limits,
            server=self.link.server,
        )

    # --------------------------------------------------------------------------------- ending

    def _lose(self, error: Exception) -> None:
        if self._state is _State.OVER:
            return
        self._state = _State.OVER
        if self._get is not None:
            self._get.stop()
        posts = self._posts.take_all()
        waiting, self._waiting = self._waiting, []
        for post in posts:
            post.stop()
        self.link.engine.close()
        if self._sink is not None:
            self._sink.connection_lost(error)
        for ticket in [post.ticket for post in posts] + [ticket for _, _, ticket in waiting]:
            ticket.lost()


class _Post(MessagePost):
    """What matters of the response is the status. An `ExchangeSink`."""

    __slots__ = ("_bytes", "_transport")

    def __init__(self, transport: HttpSseTransport, ticket: Ticket) -> None:
        super().__init__(ticket)
        self._transport = transport
        self._bytes = 0

    def start(self, request: HttpRequest, guard: SendGuard) -> None:
        """Send the message. Raises what the engine raises."""
        self._begin(self._transport.link.engine, request, guard, self)

    def refused(self, error: Exception) -> None:
        self._transport.over(self)
        self.ticket.refused(error)

    def response_started(self, status: int, headers: Headers) -> None:
        if not 200 <= status < 300:
            raise self._transport.failure(status, headers)
        self._taken()

    def body(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > self._transport.link.http_limits.error_body_bytes_max:
            self.stop()
            self.ended()

    def ended(self) -> None:
        self._cut_short()
        self._transport.over(self)

    def failed(self, error: Exception, delivery: Delivery) -> None:
        self._cut_short()
        self._transport.over(self)
        # the answer comes in the stream: that this response broke off says nothing about it
        if not self.accepted and not self.ticket.settled:
            if not isinstance(error, HttpStatusError):
                name_server(error, self._transport.link.server, delivery)
            self.ticket.failed(error)


class _Pieces(httpx.SyncByteStream):
    """A block that goes away as it is read, or the largest would be there several times over."""

    def __init__(self, block: bytearray) -> None:
        self._block = block

    def __iter__(self) -> Iterator[bytes]:
        block = self._block
        while block:
            piece = bytes(block[:PIECE_BYTES])
            del block[:PIECE_BYTES]
            yield piece


def _read(block: bytearray) -> Sequence[ServerSentEvent]:
    """Return the events of a whole block: one, or none if it holds comments only. Uses it up."""
    response = httpx.Response(200, headers={"content-type": EVENT_STREAM}, stream=_Pieces(block))
    return [*EventSource(response).iter_sse()]
