"""One message of ours and all that comes back for it, over every stream that it takes; no other's."""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from mcp_client.net.endpoint import name_server
from mcp_client.net.getting import Getter
from mcp_client.net.http.errors import ConnectionLostError
from mcp_client.net.http.messages import HttpRequest
from mcp_client.net.posting import MessagePost
from mcp_client.ports import ResumableGuard, SendGuard, Ticket
from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    McpError,
    RemoteProtocolError,
)
from mcp_client.protocol.http.errors import HttpStatusError, SessionLostError
from mcp_client.protocol.http.replies import (
    EVENT_STREAM,
    JSON,
    Headers,
    error_in,
    failure,
    media_type,
    read_session_id,
)
from mcp_client.protocol.http.resumption import Resumption
from mcp_client.transports.streamable_http.events import EventReader
from mcp_client.transports.streamable_http.owner import NO_REQUEST, StreamOwner

__all__ = ["INITIALIZE", "MessageOwner", "MessageStream"]

INITIALIZE: Final = "initialize"
"""The method that begins a session."""


class _Body(Enum):
    """What a response's body is."""

    NONE = "none"
    """Nothing that anybody reads."""
    FRAME = "frame"
    """One JSON text: a message, or an array of them."""
    EVENTS = "events"
    FAILURE = "failure"
    """What comes with a status that is no success."""


class MessageOwner(StreamOwner, Protocol):
    """What the stream of a message needs of its transport."""

    def over(self, stream: MessageStream) -> None:
        """Nothing more comes in a stream."""
        ...

    def answered(self, stream: MessageStream) -> None:
        """Nobody waits for more of a stream, which has not ended: it may, for a little while."""
        ...


class MessageStream(MessagePost):
    """The POST of one message, its response, and the GETs that resume that.

    An `ExchangeSink`. A request is answered in here or ends with an error.
    """

    __slots__ = (
        "_body",
        "_get",
        "_guard",
        "_headers",
        "_kept",
        "_kept_max",
        "_owner",
        "_reader",
        "_resumption",
        "_state",
        "_status",
    )

    def __init__(self, owner: MessageOwner, guard: SendGuard, ticket: Ticket) -> None:
        super().__init__(ticket)
        self._owner = owner
        self._guard = guard
        self._state = owner.state
        self._body = _Body.NONE
        self._status = 0
        self._headers: Headers = ()
        self._kept: bytes | bytearray = b""
        self._kept_max = 0
        self._reader: EventReader | None = None
        self._resumption: Resumption | None = None
        self._get: Getter | None = None

    @property
    def answered(self) -> bool:
        """True once nobody waits for anything in here. A handshake goes on after its answer."""
        return self.ticket.settled or (
            self.ticket.method == INITIALIZE and self._state.version != ""
        )

    def start(self, request: HttpRequest) -> None:
        """Send the message. Raises what the engine raises; nothing is queued then."""
        self._begin(self._owner.link.engine, request, self._guard, self)

    def stop(self) -> None:
        """End it at once. The ticket is told no more than that no more of the message leaves."""
        if self._get is not None:
            self._get.stop()
        super().stop()

    # --------------------------------------------------------------------------- ExchangeSink

    def refused(self, error: Exception) -> None:
        """No byte left: neither of the message nor, later on, of a request to resume its stream."""
        self._exchange = None
        if self._get is None:
            self.ticket.refused(error)
            self._owner.over(self)
        else:
            # the message itself may well have been executed
            self._unanswered(
                "a stream broke, and there is no leave to ask for its rest", cause=error
            )

    def written(self) -> None:
        """Tell whoever waits for a request to be out: it is, once, and not the GETs after it."""
        if self._get is None:
            super().written()

    def response_started(self, status: int, headers: Headers) -> None:
        """Find out what the body is going to be. Raises RemoteProtocolError."""
        self._kept = b""
        self._status, self._headers = status, headers
        if not 200 <= status < 300:
            self._begin_failure()
            return
        if self.ticket.method == INITIALIZE and self._get is None:
            self._state.assigned(read_session_id(headers, self._owner.link.http_limits))
        if self.ticket.id is None:
            self._keep(_Body.NONE, self._owner.link.http_limits.error_body_bytes_max)
            self._taken()
            self._owner.answered(self)
            return
        kind = media_type(headers)
        if kind == JSON:
            self._keep(_Body.FRAME, self._owner.link.limits.frame_bytes_max)
        elif kind == EVENT_STREAM:
            self._begin_events()
        else:
            raise RemoteProtocolError(
                f"a request was answered with status {status} and neither JSON nor events",
                stage="receive",
                delivery=Delivery.MAYBE_SENT,
            )

    def body(self, data: bytes) -> None:
        """Take more of the body, counted before it is kept. Raises FrameTooLargeError."""
        if self._reader is not None:
            self._reader.feed(data)
            if self.answered:
                self._wanted_no_more()
            return
        if len(self._kept) + len(data) > self._kept_max:
            self._too_much()
            return
        if not self._kept:
            self._kept = data
            return
        if isinstance(self._kept, bytes):
            self._kept = bytearray(self._kept)
        self._kept += data

    def ended(self) -> None:
        """Make of the response what it is."""
        self._cut_short()
        # it knows us: together we would hold the answer until the collector comes
        self._exchange = None
        match self._body:
            case _Body.NONE:
                self._owner.over(self)
            case _Body.FRAME:
                self._owner.deliver(self._take(), self.ticket.id or NO_REQUEST)
                self._unanswered("the answer to a request does not hold it")
            case _Body.FAILURE:
                self._failure_ended()
            case _Body.EVENTS:
                self._broken("the stream of a request ended without its answer")

    def failed(self, error: Exception, delivery: Delivery) -> None:
        """Resume the stream if it broke and can be; else the message came to nothing."""
        self._cut_short()
        self._exchange = None
        if self._get is not None or delivery is not Delivery.NOT_SENT:
            delivery = Delivery.MAYBE_SENT
        if self._reader is not None and isinstance(error, ConnectionLostError):
            self._broken("the stream of a request broke off before its answer", cause=error)
        else:
            self._fail(name_server(error, self._owner.link.server, delivery))

    # -------------------------------------------------------------------------------- reading

    def _keep(self, body: _Body, bytes_max: int) -> None:
        self._body = body
        self._reader = None
        self._kept_max = bytes_max

    def _take(self) -> bytes:
        """Return what was kept, and keep it no longer: an answer is large enough once."""
        kept, self._kept = self._kept, b""
        return bytes(kept)

    def _begin_events(self) -> None:
        if self._resumption is None:
            self._resumption = Resumption(self._owner.link.http_limits, polled=True)
        self._keep(_Body.EVENTS, 0)
        self._reader = EventReader(
            self._owner.link.limits.frame_bytes_max, self._resumption, self._deliver
        )

    def _begin_failure(self) -> None:
        # a POST is never sent elsewhere; a GET within the origin is
        if self._get is None or not self._get.follow(self._status, self._headers):
            self._keep(_Body.FAILURE, self._owner.link.http_limits.error_body_bytes_max)

    def _deliver(self, frame: bytes) -> None:
        self._owner.deliver(frame, self.ticket.id or NO_REQUEST)

    def _too_much(self) -> None:
        if self._body is _Body.FRAME:
            raise FrameTooLargeError(
                f"an answer is over the bound of {self._kept_max} bytes",
                stage="receive",
                delivery=Delivery.MAYBE_SENT,
            )
        # the status says all that has to be known
        self._kept = b""
        self.stop()
        self.ended()

    # --------------------------------------------------------------------------------- ending

    def _wanted_no_more(self) -> None:
        if self._written:
            self._owner.answered(self)
        else:  # the rest of an answered request is in nobody's interest
            self.stop()
            self._owner.over(self)

    def _failure_ended(self) -> None:
        owner, ticket = self._owner, self.ticket
        body = self._take()
        try:
            error = error_in(body, owner.link.limits) if media_type(self._headers) == JSON else None
        except RemoteProtocolError:
            error = None
        found = failure(
            self._status,
            self._headers,
            error,
            in_session=bool(self._state.session_id),
            first_send=self._get is None,
            limits=owner.link.limits,
            server=owner.link.server,
        )
        if isinstance(found, SessionLostError):
            owner.session_lost(self._state)
        answers = error is not None and error.request_id == ticket.id and ticket.id is not None
        # the front needs the status of what comes of the first message, to find the server's kind
        if answers and type(found) is HttpStatusError and ticket.method != INITIALIZE:
            self._deliver(body)
        self._fail(found)

    def _broken(self, what: str, *, cause: Exception | None = None) -> None:
        """The stream of events is over. Resume it, if it is one that can be, and is still wanted."""
        resumption = self._resumption
        self._reader = None
        resumable = (
            resumption is not None
            and resumption.last_event_id
            and not self.answered
            and not self._state.modern
            and not self._state.lost
        )
        delay = resumption.next_delay() if resumable and resumption is not None else None
        if resumption is None or delay is None:
            self._unanswered(what, cause=cause)
            return
        guard = self._guard
        if self._get is None or isinstance(guard, ResumableGuard):
            owner, state = self._owner, self._state
            self._get = Getter(
                owner.link,
                guard=guard.resumed() if isinstance(guard, ResumableGuard) else guard,
                sink=self,
                headers=lambda: state.get_headers(resumption.last_event_id),
            )
        self._get.get_later(delay)

    def _unanswered(self, what: str, *, cause: Exception | None = None) -> None:
        """Nothing more comes. What was not answered by now is unknown, and is never sent again."""
        error = RemoteProtocolError(
            what, server=self._owner.link.server, stage="receive", delivery=Delivery.MAYBE_SENT
        )
        error.__cause__ = cause
        self._fail(error)

    def _fail(self, error: McpError | Exception) -> None:
        if not self.answered:
            self.ticket.failed(error)
        self._owner.over(self)
