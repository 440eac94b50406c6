"""One connection at work: pending requests, deadlines, answers; it never asks who is calling."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from mcp_client.net.reactor import Reactor, TimerHandle
from mcp_client.ports import NO_HANDLERS, SILENT, ClientObserver, Handlers, SendGuard, Transport
from mcp_client.protocol.connection import ClientConnection, ConnectionState
from mcp_client.protocol.elicitation import UrlElicitationRequiredError
from mcp_client.protocol.errors import (
    CallCancelledError,
    CallTimeoutError,
    Delivery,
    FrameTooLargeError,
    HandshakeError,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    ServerGoneError,
)
from mcp_client.protocol.events import (
    ErrorReceived,
    Event,
    HandshakeFailed,
    InitializeAnswered,
    NotificationReceived,
    PeerViolation,
    RequestId,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer_errors import peer_error
from mcp_client.protocol.peer_requests import Refusal
from mcp_client.protocol.progress import Progress
from mcp_client.session.bulletin import Bulletin
from mcp_client.session.desk import Outcome, PeerDesk
from mcp_client.session.notices import Notice
from mcp_client.session.pending import PendingRequest
from mcp_client.session.progressing import ProgressBook, Progressing
from mcp_client.session.renewal import Renewal

__all__ = ["ClientSession"]

_NOISE: Final = (Violation.NOT_JSON, Violation.MALFORMED)


class ClientSession:
    """Requests to one server and their answers, each to its own caller.

    `on_lost`, if set, is called once the connection is over and every request has ended. What the
    server tells unasked goes to `bulletin`, what it asks to `desk`. `renewal` begins the session
    anew with a server that has forgotten it.

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
    ) -> None:
        self.reactor = reactor
        self.observer = observer
        self.guard = guard
        self.on_lost: Callable[[], object] | None = None
        self.limits = limits or ClientLimits()
        self.server = server
        self.connection = ClientConnection(
            self.limits, server=server, declared=handlers.capabilities
        )
        self.bulletin = Bulletin(reactor, self.limits)
        self.desk = PeerDesk(
            handlers, reactor=reactor, limits=self.limits, server=server, answer=self._answer
        )
        self._transport = transport
        self._cancel_guard = guard if cancel_guard is None else cancel_guard
        self._entries: dict[int, PendingRequest] = {}
        self._progressing = ProgressBook(self.limits)
        self._answers_waiting = 0
        self._violations: Counter[Violation] = Counter()
        self.renewal = Renewal(self._begin_anew)
        self._handshake: PendingRequest | None = None
        self._lost: Exception | None = None
        self._timer: TimerHandle | None = None
        self._timer_at = math.inf

    @property
    def violations(self) -> Mapping[Violation, int]:
        """What the server did wrong or in vain so far, counted by kind."""
        return dict(self._violations)

    @property
    def handshake_delivery(self) -> Delivery:
        """What the server may have seen of `initialize`."""
        return Delivery.NOT_SENT if self._handshake is None else self._handshake.delivery

    @property
    def lost(self) -> Exception | None:
        """Why the connection is over; None while it is not."""
        return self._lost

    @property
    def pending_count(self) -> int:
        """Requests that have not ended."""
        return len(self._entries)

    async def open(self) -> None:
        """Reach the server and complete the handshake. To be called in the owner's task.

        Raises StartError, HandshakeError, ServerGoneError, CallTimeoutError, or what `guard`
        raised; the session is closed then. It waits for `initialize_seconds_max` at most where
        the transport does not wait longer.
        """
        await self._transport.open(self)
        try:
            await self._shake_hands()
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
    ) -> PendingRequest:
        """Queue one request and return at once; the bytes leave in a later step, under `guard`.

        Args:
            method: a method of the protocol that the server declared.
            params: a JSON object in canonical form; it goes out as it is.
            guard: leave to send this one frame.
            seconds: from now to the answer, `request_seconds_max` if None. Reported progress
                begins it anew, up to `progress_seconds_max`.
            on_progress: called in the step in which progress arrives. What it raises ends the
                request with that error.

        Raises LocalProtocolError, FrameTooLargeError or ServerGoneError; nothing is sent then.
        """
        if self._lost is not None:
            raise _copy(self._lost, Delivery.NOT_SENT, self.server)
        if len(self._entries) >= self.limits.pending_requests_max:
            raise LocalProtocolError(
                f"more than {self.limits.pending_requests_max} requests are in flight",
                server=self.server,
                stage="send",
            )
        if seconds is None:
            seconds = self.limits.request_seconds_max
        elif not 0 < seconds < math.inf:  # false for NaN as well
            raise LocalProtocolError(
                "a deadline is a positive, finite number of seconds",
                server=self.server,
                stage="send",
            )
        request_id, frame = self.connection.frame_request(
            method, params, with_progress=on_progress is not None
        )
        now = self.reactor.now()
        pending = PendingRequest(self, request_id, method, deadline=now + seconds)
        self._send(pending, frame, guard)
        if on_progress is not None:
            latest = now + max(seconds, self.limits.progress_seconds_max)
            self._progressing.add(Progressing(pending, on_progress, seconds=seconds, latest=latest))
        return pending

    def cancel(self, pending: PendingRequest, *, guard: SendGuard, reason: str = "") -> None:
        """Tell the server that nobody waits for a request any more, if a byte of it went out.

        `fail` ends the request on this side; this tells the other side, once, and only while the
        answer is still out.
        """
        # MCP, cancellation: initialize must not be cancelled
        untold = pending.delivery is Delivery.MAYBE_SENT and pending.method != "initialize"
        if self._lost is not None or not untold or pending.told:
            return
        pending.told = True
        if self._transport.abandon(pending) or self.connection.state is not ConnectionState.READY:
            return  # told already, or of a session that the server has forgotten
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

    # ------------------------------------------------------------------ for PendingRequest

    def forget(self, pending: PendingRequest) -> None:
        """Take a request that has ended out of the books."""
        self._entries.pop(pending.id, None)
        self._progressing.forget(pending.id)

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
        self.cancel(pending, guard=self._cancel_guard, reason="cancelled")

    # ----------------------------------------------------------------------------- FrameSink

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        """Take one frame: decode it, and wake whom it concerns, in this step.

        An answer that came `within` another request's own stream is counted and dropped.

        Raises RemoteProtocolError once the server's noise is over its bound: the connection is
        over then, and its transport ends the server.
        """
        for event in self.connection.receive(frame):
            if type(event) is ResponseReceived:
                pending = self._awaiting(event.request_id, within)
                if pending is not None:
                    pending.succeed(event.result)
            else:
                self._handle(event, within)

    def connection_lost(self, error: Exception) -> None:
        """End every pending request with a copy of `error` that carries its own delivery."""
        if self._lost is not None:
            return
        self._lost = error
        self.desk.close()
        self.bulletin.close()
        self.connection.close()
        if self._timer is not None:
            self._timer.cancel()
        for pending in [*self._entries.values()]:
            pending.fail(_copy(error, pending.delivery, self.server))
            pending.lost()
        if self.on_lost is not None:
            self.on_lost()

    # ------------------------------------------------------------------------------ incoming

    def _handle(self, event: Event, within: int | None) -> None:
        match event:
            case ErrorReceived():
                self._error_received(event, within)
            case NotificationReceived():
                self._notification_received(event)
            case RequestReceived():
                self._request_received(event)
            case PeerViolation():
                self._violation(event, within)
            case InitializeAnswered():
                self._initialized(event)
            case HandshakeFailed():
                self._entries[event.request_id].fail(event.error)
            case ResponseReceived():
                raise AssertionError("handled by frame_received")

    def _awaiting(
        self, request_id: RequestId | None, within: int | None = None
    ) -> PendingRequest | None:
        """Return who waits for an answer; count one for which nobody does."""
        if within is not None and request_id != within:
            self._violations[Violation.FOREIGN_STREAM] += 1
            return None
        pending = self._entries.get(request_id) if isinstance(request_id, int) else None
        if pending is not None:
            if pending.delivery is not Delivery.NOT_SENT:
                return pending
            self._violations[Violation.UNSENT_REQUEST] += 1
        elif isinstance(request_id, int) and 0 < request_id <= self.connection.last_id:
            self._violations[Violation.LATE_ANSWER] += 1
            self.observer.answer_dropped(request_id)
        else:
            self._violations[Violation.UNKNOWN_ID] += 1
        return None

    def _error_received(self, event: ErrorReceived, within: int | None) -> None:
        pending = self._awaiting(event.request_id, within)
        if pending is not None:
            error = peer_error(
                event,
                pending.method,
                self.connection.negotiated,
                self.limits,
                server=self.server,
            )
            if isinstance(error, UrlElicitationRequiredError):
                self.desk.expect_visits(error.elicitations)
            pending.reject(error)

    def _notification_received(self, event: NotificationReceived) -> None:
        match event.method:
            case "notifications/progress":
                violation = self._progress_received(event.params)
            case "notifications/cancelled":
                violation = self.desk.withdraw(event.params.get("requestId"))
            case "notifications/elicitation/complete":
                violation = self.desk.visited(event.params.get("elicitationId"))
            case _:
                violation = self.bulletin.take(event.method, event.params)
        if violation is not None:
            self._violations[violation] += 1

    def _progress_received(self, params: Mapping[str, object]) -> Violation | None:
        found = self._progressing.take(params, self.reactor.now())
        if found is None:
            return Violation.UNKNOWN_PROGRESS
        entry, progress = found
        try:
            entry.tell(progress)
        except Exception as error:  # noqa: BLE001  # it ends the request of whoever handed it in
            entry.pending.fail(error)
            self.cancel(entry.pending, guard=self._cancel_guard, reason="given up")
        return None

    def _request_received(self, event: RequestReceived) -> None:
        if self._answers_waiting >= self.limits.peer_requests_max:
            violation: Violation | None = Violation.TOO_MANY_REQUESTS
        else:
            violation = self.desk.take(event, self.connection.negotiated)
        if violation is not None:
            self._violations[violation] += 1

    def _answer(self, request_id: RequestId, outcome: Outcome) -> None:
        """Send the answer to a request of the server. Raises McpError if it cannot be a frame."""
        if isinstance(outcome, Refusal):
            frame = self.connection.frame_refusal(request_id, outcome.code, outcome.message)
        else:
            frame = self.connection.frame_answer(request_id, outcome)
        if len(frame) > self.limits.frame_bytes_max:
            raise FrameTooLargeError(
                f"an answer has more than {self.limits.frame_bytes_max} bytes",
                server=self.server,
                stage="send",
            )
        self._answers_waiting += 1
        if not self._send_notice(frame, self.guard, Notice(over=self._answer_over)):
            self._answers_waiting -= 1

    def _answer_over(self, _error: Exception | None) -> None:
        self._answers_waiting -= 1

    def _violation(self, event: PeerViolation, within: int | None) -> None:
        self._violations[event.kind] += 1
        if event.request_id is not None:
            pending = self._awaiting(event.request_id, within)
            if pending is not None:
                pending.fail(
                    RemoteProtocolError(
                        f"the answer is malformed: {event.detail}",
                        server=self.server,
                        stage="receive",
                        delivery=Delivery.ANSWERED,
                    )
                )
        noise = sum(self._violations[kind] for kind in _NOISE)
        if noise > self.limits.noise_lines_max:
            error = RemoteProtocolError(
                f"more than {self.limits.noise_lines_max} lines were not JSON-RPC",
                server=self.server,
                stage="receive",
            )
            self.connection_lost(error)
            raise error  # so that the transport ends the server too

    def _initialized(self, event: InitializeAnswered) -> None:
        # nobody uses the connection before the server can know that it is ready
        pending = self._entries[event.request_id]

        def over(error: Exception | None) -> None:
            if error is None:
                pending.succeed(event.result)
            else:
                pending.fail(error)

        self._transport.negotiated(self.connection.protocol_version)
        notice = Notice("notifications/initialized", over=over)
        self._send_notice(self.connection.frame_initialized(), self.guard, notice)

    # ------------------------------------------------------------------------------ outgoing

    async def _begin_anew(self) -> None:
        try:
            await self._shake_hands()
        except HandshakeError as error:
            self.connection_lost(error)
            raise

    async def _shake_hands(self) -> None:
        request_id, frame = self.connection.frame_initialize(self._transport.versions)
        deadline = self.reactor.now() + self.limits.initialize_seconds_max
        pending = PendingRequest(self, request_id, "initialize", deadline=deadline)
        self._handshake = pending
        self._send(pending, frame, self.guard)
        await pending.wait()

    def _send(self, pending: PendingRequest, frame: bytes, guard: SendGuard) -> None:
        self._transport.send(frame, guard, pending)
        self._entries[pending.id] = pending
        if pending.deadline < self._timer_at:
            self._arm(pending.deadline)

    def _send_notice(self, frame: bytes, guard: SendGuard, notice: Notice) -> bool:
        try:
            self._transport.send(frame, guard, notice)
        except McpError:
            # the outbox is full: the server reads nothing, so it would not read this either
            return False
        return True

    def _arm(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = when
        self._timer = self.reactor.at(when, self._sweep)

    def _sweep(self) -> None:
        """End what is due, and come back when the next will be."""
        self._timer = None
        self._timer_at = math.inf
        now = self.reactor.now()
        for pending in [*self._entries.values()]:
            if pending.deadline <= now:
                self._expire(pending)
        if self._entries:
            self._arm(min(pending.deadline for pending in self._entries.values()))

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
        self.cancel(pending, guard=self._cancel_guard, reason="timed out")


def _copy(error: Exception, delivery: Delivery, server: str) -> McpError:
    """Return an error of the same kind and content, for one request alone."""
    if not isinstance(error, McpError):
        gone = ServerGoneError("the connection broke", server=server, delivery=delivery)
        gone.__cause__ = error
        return gone
    own = type(error).__new__(type(error), *error.args)
    own.__dict__.update(error.__dict__)
    own.__cause__ = error.__cause__
    own.delivery = delivery
    own.server = own.server or server
    return own
