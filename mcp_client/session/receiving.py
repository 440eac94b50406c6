"""What becomes of each frame of a server: whom it wakes, what it counts for; it sends no request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from mcp_client.net.reactor import Reactor
from mcp_client.ports import ClientObserver, SendGuard
from mcp_client.protocol.connection.legacy import ClientConnection
from mcp_client.protocol.connection.modern import ModernConnection, ModernEvent
from mcp_client.protocol.errors import Delivery, RemoteProtocolError
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
from mcp_client.protocol.modern.limits import ModernLimits
from mcp_client.protocol.modern.metadata import refine_error
from mcp_client.protocol.modern.subscriptions import SubscriptionAcknowledged, SubscriptionEnded
from mcp_client.protocol.peer.elicitation import UrlElicitationRequiredError
from mcp_client.protocol.peer.errors import peer_error
from mcp_client.session.bulletin import Bulletin
from mcp_client.session.desk import PeerDesk
from mcp_client.session.handshake import Handshake
from mcp_client.session.pending import PendingRequest
from mcp_client.session.progressing import ProgressBook
from mcp_client.session.streams import StreamBook
from mcp_client.session.tally import Tally, malformed_answer

__all__ = ["Receiver", "ReceiverOwner"]

_NOT_SENT: Final = Delivery.NOT_SENT  # looked up by name it would cost as much as a call


class ReceiverOwner(Protocol):
    """What a receiver needs of its session."""

    connection: ClientConnection | ModernConnection
    handshake: Handshake
    desk: PeerDesk
    streams: StreamBook
    bulletin: Bulletin
    limits: ClientLimits
    bounds: ModernLimits
    server: str
    observer: ClientObserver
    reactor: Reactor
    cancel_guard: SendGuard

    def cancel(self, pending: PendingRequest, *, guard: SendGuard, reason: str = "") -> None:
        """Tell the server that nobody waits for a request any more."""
        ...

    def connection_lost(self, error: Exception) -> None:
        """End everything."""
        ...


class Receiver:
    """Takes the frames of one connection, each whole and in one step.

    Args:
        owner: the session.
        entries: the requests that have not ended, as they are at each time.
        progressing: those of them that asked for progress.
        tally: what the server did wrong.
        is_full: whether as many answers wait to be sent as may.
    """

    def __init__(
        self,
        owner: ReceiverOwner,
        entries: Mapping[int, PendingRequest],
        progressing: ProgressBook,
        tally: Tally,
        *,
        is_full: Callable[[], bool],
    ) -> None:
        self._owner = owner
        self._entries = entries
        self._progressing = progressing
        self._tally = tally
        self._is_full = is_full

    def take(self, frame: bytes, within: int | None) -> None:
        """Decode a frame, and wake whom it concerns; see `ClientSession.frame_received`."""
        connection = self._owner.connection
        for event in connection.receive(frame, within):
            if type(event) is not ResponseReceived:
                self._handle(event, within)
                continue
            pending = self._awaiting(event.request_id, within)
            if pending is None:
                continue
            if isinstance(connection, ModernConnection):
                try:
                    connection.check_result(pending.method, event.result)
                except RemoteProtocolError as error:
                    pending.delivery = Delivery.ANSWERED
                    pending.fail(error)
                    continue
            pending.succeed(event.result)

    def _handle(self, event: Event | ModernEvent, within: int | None) -> None:
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
                self._owner.handshake.initialized(self._entries[event.request_id], event.result)
            case HandshakeFailed():
                self._entries[event.request_id].fail(event.error)
            case SubscriptionAcknowledged():
                self._owner.streams.acknowledge(event.request_id, event.granted)
            case SubscriptionEnded():
                pending = self._awaiting(event.request_id, within)
                if pending is not None:
                    pending.succeed({})
            case ResponseReceived():
                raise AssertionError("handled by take")

    def _awaiting(
        self, request_id: RequestId | None, within: int | None = None
    ) -> PendingRequest | None:
        """Return who waits for an answer; count one for which nobody does."""
        if within is not None and request_id != within:
            self._tally.count(Violation.FOREIGN_STREAM)
            return None
        pending = self._entries.get(request_id) if isinstance(request_id, int) else None
        if pending is not None:
            if pending.delivery is not _NOT_SENT:
                return pending
            self._tally.count(Violation.UNSENT_REQUEST)
        elif isinstance(request_id, int) and 0 < request_id <= self._owner.connection.last_id:
            self._tally.count(Violation.LATE_ANSWER)
            self._owner.observer.answer_dropped(request_id)
        else:
            self._tally.count(Violation.UNKNOWN_ID)
        return None

    def _error_received(self, event: ErrorReceived, within: int | None) -> None:
        pending = self._awaiting(event.request_id, within)
        if pending is not None:
            error = peer_error(
                event,
                pending.method,
                self._owner.connection.negotiated,
                self._owner.limits,
                server=self._owner.server,
            )
            if isinstance(self._owner.connection, ModernConnection):
                error = refine_error(error, self._owner.limits, self._owner.bounds)
            if isinstance(error, UrlElicitationRequiredError):
                self._owner.desk.expect_visits(error.elicitations)
            pending.reject(error)

    def _notification_received(self, event: NotificationReceived) -> None:
        match event.method:
            case "notifications/progress":
                violation = self._progress_received(event.params)
            case "notifications/cancelled":
                violation = self._owner.desk.withdraw(event.params.get("requestId"))
            case "notifications/elicitation/complete":
                violation = self._owner.desk.visited(event.params.get("elicitationId"))
            case _:
                violation = self._owner.bulletin.take(event.method, event.params)
        self._tally.count(violation)

    def _progress_received(self, params: Mapping[str, object]) -> Violation | None:
        found = self._progressing.take(params, self._owner.reactor.now())
        if found is None:
            return Violation.UNKNOWN_PROGRESS
        entry, progress = found
        try:
            entry.tell(progress)
        except Exception as error:  # noqa: BLE001  # it ends the request of whoever handed it in
            entry.pending.fail(error)
            self._owner.cancel(entry.pending, guard=self._owner.cancel_guard, reason="given up")
        return None

    def _request_received(self, event: RequestReceived) -> None:
        if self._is_full():
            violation: Violation | None = Violation.TOO_MANY_REQUESTS
        else:
            violation = self._owner.desk.take(event, self._owner.connection.negotiated)
        self._tally.count(violation)

    def _violation(self, event: PeerViolation, within: int | None) -> None:
        self._tally.count(event.kind)
        if event.request_id is not None:
            pending = self._awaiting(event.request_id, within)
            if pending is not None:
                pending.fail(malformed_answer(event, self._owner.server))
        error = self._tally.too_much()
        if error is not None:
            self._owner.connection_lost(error)
            raise error  # so that the transport ends the server too
