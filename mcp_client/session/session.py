"""One connection at work: pending requests, deadlines, answers; it never asks who is calling."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from mcp_client.net.reactor import Reactor
from mcp_client.ports import NO_HANDLERS, SILENT, ClientObserver, Handlers, SendGuard, Transport
from mcp_client.protocol.connection.frames import OutgoingRequest
from mcp_client.protocol.connection.legacy import ClientConnection, ConnectionState
from mcp_client.protocol.connection.modern import ModernConnection, ModernState
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.errors import (
    CallCancelledError,
    CallTimeoutError,
    Delivery,
    LocalProtocolError,
    McpError,
    ServerGoneError,
)
from mcp_client.protocol.events import (
    RequestId,
    Violation,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogLevel
from mcp_client.protocol.meta import trace_member
from mcp_client.protocol.modern.subscriptions import (
    SubscriptionFilter,
)
from mcp_client.protocol.owners import Owner
from mcp_client.protocol.peer.requests import Refusal
from mcp_client.protocol.progress import Progress
from mcp_client.session.answers import Answers
from mcp_client.session.bulletin import Bulletin
from mcp_client.session.copies import copy_error
from mcp_client.session.deadlines import Deadlines
from mcp_client.session.desk import Outcome, PeerDesk
from mcp_client.session.handshake import Handshake
from mcp_client.session.mirroring import Mirror
from mcp_client.session.notices import Notice
from mcp_client.session.pending import PendingRequest
from mcp_client.session.progressing import ProgressBook, Progressing
from mcp_client.session.recalling import Recall
from mcp_client.session.receiving import Receiver
from mcp_client.session.renewal import Renewal
from mcp_client.session.streams import NoticeStream, StreamBook
from mcp_client.session.tally import Tally

__all__ = ["ClientSession"]

_LISTEN: Final = "subscriptions/listen"
"""The request of a stream of notices."""


class ClientSession:
    """Requests to one server and their answers, each to its own caller.

    `on_lost` is called once the connection is over and every request has ended. What the server
    tells unasked goes to `bulletin`, what it asks to `desk`. `renewal` begins anew with one that
    has forgotten the session. Where requests say so, it may log from `log_level` on. `traceparent`
    returns what a request says of the trace it belongs to, if anything (W3C Trace Context, MCP SEP-414).

    It is the transport's `FrameSink`: a frame is decoded and its caller woken in the same step.
    What a server does wrong is counted in `violations` and ends at most the request concerned.

    Args:
        transport: the connection; opened by `open`, closed by whoever made it.
        reactor: the running loop.
        guard: leave for what the session sends by itself: the handshake and answers to the server.
        observer: told of what happens on the wire.
        limits: the bounds of the connection.
        server: the host's label of the server, for errors.
        cancel_guard: leave to tell the server that a request was given up; `guard` if None.
        handlers: what the server may ask of us.
        dialect: which versions and extensions are spoken.
        configuration: tells the server from others that had its label, by equality; the dialect's
            memory if None.
    """

    def __init__(
        self,
        transport: Transport,
        reactor: Reactor,
        *,
        guard: SendGuard,
        observer: ClientObserver = SILENT,
        limits: ClientLimits | None = None,
        server: str = "",
        cancel_guard: SendGuard | None = None,
        handlers: Handlers = NO_HANDLERS,
        dialect: Dialect | None = None,
        configuration: object = None,
    ) -> None:
        self.reactor, self.observer, self.guard = reactor, observer, guard
        self.log_level: LogLevel | None = None
        self.traceparent: Callable[[], str] | None = None
        self.on_lost: Callable[[], object] | None = None
        self.limits, self.server = limits or ClientLimits(), server
        self.dialect = dialect or Dialect()
        self.bounds = self.dialect.bounds
        self.mirror = Mirror(self.limits)
        self.streams = StreamBook()
        self.bulletin = Bulletin(reactor, self.limits)
        self._answers = Answers(
            self.limits, server=server, frame=self._frame_answer, send=self._send_answer
        )
        self.desk = PeerDesk(
            handlers,
            reactor=reactor,
            limits=self.limits,
            server=server,
            answer=self._answers.give,
            observer=observer,
        )
        self._transport = transport
        self.cancel_guard = guard if cancel_guard is None else cancel_guard
        self._entries: dict[int, PendingRequest] = {}
        self._lost: Exception | None = None
        self._progressing = ProgressBook(self.limits)
        self._tally = Tally(self.limits, server=server)
        self._receiver = Receiver(
            self,
            self._entries,
            self._progressing,
            self._tally,
            is_full=lambda: self._answers.full,
        )
        self._deadlines = Deadlines(reactor, self._entries, self._expire)
        self.handshake = Handshake(
            self, transport, guard=guard, declares=handlers.capabilities, dialect=self.dialect
        )
        self.renewal = Renewal(self.handshake.begin_anew)
        self.owner = Owner(
            server,
            self.dialect.credential,
            self.dialect.memory if configuration is None else configuration,
        )
        self.recall = Recall(self.dialect.cache, self.owner, self.renewal, reactor)
        self.connection: ClientConnection | ModernConnection = self.handshake.new_connection()

    @property
    def violations(self) -> Mapping[Violation, int]:
        """What the server did wrong or in vain so far, counted by kind."""
        return self._tally.counts

    @property
    def handshake_delivery(self) -> Delivery:
        """What the server may have seen of the last question of the handshake."""
        return self.handshake.delivery

    @property
    def carries_headers(self) -> bool:
        """Whether the transport has headers that say what a request says."""
        return self._transport.carries_headers

    @property
    def lost(self) -> Exception | None:
        """Why the connection is over; None while it is not."""
        return self._lost

    @property
    def pending_count(self) -> int:
        """Requests that have not ended."""
        return len(self._entries)

    async def open(self) -> None:
        """Reach the server and find out what it speaks. To be called in the owner's task.

        Raises StartError, HandshakeError, ServerGoneError, CallTimeoutError, or what `guard`
        raised; the session is closed then. It waits for `initialize_seconds_max` at most where
        the transport does not wait longer.
        """
        await self._transport.open(self)
        try:
            await self.handshake.open()
        except BaseException:
            self.close()  # a server that answers later finds nobody
            raise

    def start(
        self,
        method: str,
        params: bytes,
        *,
        guard: SendGuard,
        seconds: float | None = None,
        on_progress: Callable[[Progress], object] | None = None,
        stretches: bool = True,
        declares: ClientCapabilities | None = None,
    ) -> PendingRequest:
        """Queue one request and return at once; the bytes leave in a later step, under `guard`.

        Args:
            method: a method of the protocol that the server declared.
            params: a JSON object in canonical form; it goes out as it is.
            guard: leave to send this one frame.
            seconds: from now to the answer, `request_seconds_max` if None.
            on_progress: called in the step in which progress arrives. What it raises ends the
                request with that error.
            stretches: whether reported progress begins `seconds` anew, up to `progress_seconds_max`.
            declares: what the server may ask for in between, where requests say so one by one:
                no more than the connection has. All of that if None.

        Raises LocalProtocolError, FrameTooLargeError or ServerGoneError; nothing is sent then.
        """
        if self._lost is not None:
            raise copy_error(self._lost, Delivery.NOT_SENT, self.server)
        if len(self._entries) >= self.limits.pending_requests_max:
            raise LocalProtocolError(
                f"more than {self.limits.pending_requests_max} requests are in flight",
                server=self.server,
                stage="send",
            )
        seconds = self.limits.request_seconds_max if seconds is None else seconds
        if not 0 < seconds < math.inf:  # false for NaN as well
            raise LocalProtocolError(
                "a deadline is a positive, finite number of seconds",
                server=self.server,
                stage="send",
            )
        connection, with_progress = self.connection, on_progress is not None
        trace = b"" if self.traceparent is None else trace_member(self.traceparent())
        name, headers = "", ()
        if isinstance(connection, ModernConnection):
            request = connection.frame_request(
                method,
                params,
                with_progress=with_progress,
                declares=declares,
                log_level=self.log_level,
                trace=trace,
            )
            name, headers = self.mirror.describe(method, params)
        else:
            request = connection.frame_request(
                method, params, with_progress=with_progress, trace=trace
            )
        pending = self.dispatch(
            request, method, guard=guard, seconds=seconds, name=name, headers=headers
        )
        if on_progress is not None:
            most = max(seconds, self.limits.progress_seconds_max) if stretches else seconds
            latest = self.reactor.now() + most
            self._progressing.add(Progressing(pending, on_progress, seconds=seconds, latest=latest))
        return pending

    def listen(self, wanted: SubscriptionFilter, *, guard: SendGuard) -> NoticeStream:
        """Ask for a stream of notices and return at once (MCP 2026-07-28).

        Raises LocalProtocolError past a bound, or where the version has no such streams.
        """
        connection = self.connection
        if not isinstance(connection, ModernConnection):
            what = "the negotiated version has no streams of notices"
            raise LocalProtocolError(what, server=self.server, stage="send")
        request = connection.frame_listen(wanted)
        pending = self.dispatch(
            request, _LISTEN, guard=guard, seconds=self.bounds.listen_seconds_max
        )
        stream = NoticeStream(pending, wanted)
        self.streams.add(stream)
        return stream

    def cancel(self, pending: PendingRequest, *, guard: SendGuard, reason: str = "") -> None:
        """Tell the server that nobody waits for a request any more, if a byte of it went out.

        `fail` ends the request on this side; this tells the other side, once, and only while the
        answer is still out.
        """
        untold = pending.delivery is Delivery.MAYBE_SENT and not pending.told
        if self._lost is not None or not untold:
            return
        pending.told = True
        ready = self.connection.state in (ConnectionState.READY, ModernState.READY)
        # a stream that a session would begin in is closed like any other
        if self._transport.abandon(pending) or not ready or pending.method == "initialize":
            # told already, or of a session that the server has forgotten; and initialize must
            # not be cancelled (MCP, cancellation)
            return
        notice = Notice("notifications/cancelled")
        self._send_notice(self.connection.frame_cancelled(pending.id, reason), guard, notice)

    def notify(self, method: str) -> None:
        """Tell the server something that needs no params, under the session's guard.

        Raises LocalProtocolError if the connection is not ready.
        """
        self._send_notice(self.connection.frame_notification(method), self.guard, Notice(method))

    def close(self) -> None:
        """End every pending request and take no more. The transport is closed by its owner."""
        self.connection_lost(
            ServerGoneError("the connection was closed by this side", stage="close")
        )

    # ------------------------------------------------------------------ for its parts

    def dispatch(
        self,
        request: OutgoingRequest,
        method: str,
        *,
        guard: SendGuard,
        seconds: float,
        name: str = "",
        headers: Sequence[tuple[str, str]] = (),
    ) -> PendingRequest:
        """Queue a request that is framed already."""
        deadline = self.reactor.now() + seconds
        pending = PendingRequest(self, request.request_id, method, deadline, name, headers)
        self._transport.send(request.frame, guard, pending)
        self._entries[pending.id] = pending
        if deadline < self._deadlines.due:
            self._deadlines.arm(deadline)
        return pending

    def announce(self, frame: bytes, over: Callable[[Exception | None], object]) -> None:
        """Queue `notifications/initialized`; `over` is called once it can leave no more."""
        self._send_notice(frame, self.guard, Notice("notifications/initialized", over=over))

    def forget(self, pending: PendingRequest) -> None:
        """Take a request that has ended out of the books."""
        self._entries.pop(pending.id, None)
        if self._progressing.entries:
            self._progressing.forget(pending.id)
        is_stream = pending.method == _LISTEN and self.streams.forget(pending.id)
        if is_stream and isinstance(self.connection, ModernConnection):
            self.connection.subscriptions.close(pending.id)

    def give_up(self, pending: PendingRequest) -> None:
        """End a request whose task was cancelled, and tell the server."""
        if pending.settled:
            return
        pending.fail(
            CallCancelledError(
                "the task that waited was cancelled",
                server=self.server,
                stage="wait",
                delivery=pending.delivery,
            )
        )
        self.cancel(pending, guard=self.cancel_guard, reason="cancelled")

    # ----------------------------------------------------------------------------- FrameSink

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        """Take one frame: decode it, and wake whom it concerns, in this step.

        An answer that came `within` another request's own stream is counted and dropped.

        Raises RemoteProtocolError once the server's noise is over its bound: the connection is
        over then, and its transport ends the server.
        """
        self._receiver.take(frame, within)

    def connection_lost(self, error: Exception) -> None:
        """End every pending request with a copy of `error` that carries its own delivery."""
        if self._lost is not None:
            return
        self._lost = error
        self.desk.close()
        self.bulletin.close()
        self.connection.close()
        self._deadlines.stop()
        for pending in [*self._entries.values()]:
            pending.fail(copy_error(error, pending.delivery, self.server))
            pending.lost()
        if self.on_lost is not None:
            self.on_lost()

    # ------------------------------------------------------------------------------ outgoing

    def _frame_answer(self, request_id: RequestId, outcome: Outcome) -> bytes:
        if isinstance(outcome, Refusal):
            return self.connection.frame_refusal(request_id, outcome.code, outcome.message)
        return self.connection.frame_answer(request_id, outcome)

    def _send_answer(self, frame: bytes, notice: Notice) -> bool:
        return self._send_notice(frame, self.guard, notice)

    def _send_notice(self, frame: bytes, guard: SendGuard, notice: Notice) -> bool:
        notice.tell = self.observer.notice_sent
        try:
            self._transport.send(frame, guard, notice)
        except McpError:
            # the outbox is full: the server reads nothing, so it would not read this either
            return False
        return True

    def _expire(self, pending: PendingRequest) -> None:
        sent = pending.delivery is not Delivery.NOT_SENT
        pending.fail(
            CallTimeoutError(
                "no answer came in time" if sent else "the request could not be sent in time",
                server=self.server,
                stage="wait" if sent else "send",
                delivery=pending.delivery,
            )
        )
        self.cancel(pending, guard=self.cancel_guard, reason="timed out")
