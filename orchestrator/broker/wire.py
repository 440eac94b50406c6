"""The broker's end of one client session: whose call a request is, and the record before its byte."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

from mcp_client.ports import SendGuard
from mcp_client.session import ClientSession
from orchestrator.audit.forms import FilledRecord
from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import Capability
from orchestrator.broker.records import answered, sent
from orchestrator.broker.view import AgentView
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId, ServerName
from orchestrator.core.ports import AuditSink, Peer, Telemetry
from orchestrator.telemetry.null import NO_TELEMETRY

__all__ = ["Isolated", "Link", "OwnCells", "WireObserver"]


DROPPED_RECORDS_MAX: Final = 64
"""Records of answers that nobody may have, of one connection, before they are only counted."""


class WireObserver:
    """A `ClientObserver`: keeps the record of what leaves and comes, and opens and closes client spans.

    What was decided is handed to the kernel before any byte; that a request left, or was answered, is
    recorded in the step in which it happens, before anybody has the answer.
    """

    def __init__(self, *, peer: Peer, audit: AuditSink, telemetry: Telemetry) -> None:
        self.peer = peer
        self._server, self._agent = peer.server, peer.agent
        # the agent only where the connection is its own: its record is read beside others of that label
        self._where = {"server": peer.server} | ({"agent": peer.agent} if peer.agent else {})
        self._audit = audit
        self._telemetry = telemetry
        self._traced = telemetry is not NO_TELEMETRY
        self._wishes: dict[int, Wish] = {}  # of agents: the rest is what the parent itself asks for
        self._answering: dict[CallId, AgentView] = {}
        self._dropped = 0
        self._answers = 0

    def agreed(self, version: str) -> None:
        """Note which version is spoken from now on."""
        self.peer = replace(self.peer, version=version)

    def expect(self, request_id: int, wish: Wish) -> None:
        """Note whose call a request is, until `forget`."""
        wish.is_out = False  # whatever became of an earlier one
        self._wishes[request_id] = wish

    def forget(self, request_id: int) -> None:
        """The call is over."""
        self._wishes.pop(request_id, None)

    def asker(self) -> AgentView | None:
        """Return the one agent that the server can be asking for; None if there is none, or more.

        That is one whose request the server has and has not answered, or whose round of questions
        is being answered. A call that still waits, for a person or a place, asks for nothing.
        """
        asked = (wish.view for wish in self._wishes.values() if wish.is_out)
        views = {view.agent: view for view in (*asked, *self._answering.values())}
        return next(iter(views.values())) if len(views) == 1 else None

    @contextmanager
    def answering(self, call: CallId, view: AgentView) -> Generator[None]:
        """Within the block, the questions that a call was answered with are being answered."""
        self._answering[call] = view
        try:
            yield
        finally:
            del self._answering[call]

    def flushing(self) -> None:
        """Hand the record to the kernel. Raises AuthorityError if it cannot be kept."""
        try:
            self._audit.flush()
        except OSError as error:
            raise AuthorityError(
                "not sent: the audit log cannot be written",
                reason=DenyReason.NOT_RECORDED,
                fix="free some space in the state directory, or set REMIT_HOME to another one",
            ) from error

    def request_sent(self, request_id: int, method: str) -> None:
        """Record that the first byte went out, and open the client span."""
        wish = self._wishes.get(request_id)
        if wish is not None:
            wish.is_out = True
        form = sent(self._server, method, self._agent)
        self._audit.append("sent", FilledRecord(form, ("" if wish is None else wish.id,)))
        if self._traced:
            target, call = ("", None) if wish is None else (wish.ref.name, wish.id)
            self._telemetry.request_started(self.peer, request_id, method, target, call)

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        """Record that the server has answered, with a result or an error, and close the client span."""
        wish = self._wishes.get(request_id)
        if wish is not None:
            wish.is_out = False
        form = answered(self._server, method, self._agent)
        self._audit.append("answered", FilledRecord(form, ("" if wish is None else wish.id,)))
        if self._traced:
            self._telemetry.request_ended(self.peer, request_id, error_type)

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        """Close the client span as a failure, by our own name for it."""
        self._telemetry.request_ended(self.peer, request_id, type(error).__name__)

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        """Open the server span of what the server asks."""
        self._telemetry.question_started(self.peer, question, method, traceparent)

    def question_ended(self, question: int | str, error_type: str) -> None:
        """Close it."""
        self._telemetry.question_ended(self.peer, question, error_type)

    def notice_sent(self, method: str) -> None:
        """Record a frame that is no request.

        Answers go out as often as a server asks: they are told as `answer_dropped` is.
        """
        if method:
            self._audit.append("notice_sent", {**self._where, "method": method})
            return
        self._answers += 1
        if _is_told(self._answers):
            self._audit.append("answer_sent", {**self._where, "count": self._answers})

    def answer_dropped(self, request_id: int) -> None:
        """Record an answer that came too late: it is not delivered (I18).

        A server can send as many as it likes: after the first ones only their doubling is told,
        so that it can push no other record out.
        """
        self._dropped += 1
        if _is_told(self._dropped):
            self._audit.append(
                "answer_dropped",
                {**self._where, "request": request_id, "count": self._dropped},
            )


def _is_told(count: int) -> bool:
    """Whether this one of many has a record: the first ones, then each that doubles their number."""
    return count <= DROPPED_RECORDS_MAX or count & (count - 1) == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One live connection: the client session, and the cell of the server's incarnation it serves.

    `cancel_guard` is the leave for notifications/cancelled, `seconds` the time that one call may
    take. `kill` has the connection and its process ended, in this step; `abort` does and returns when
    no byte can leave it any more. `is_fresh`
    says whether the definitions that are known are those of the present session of the server,
    `catch_up` returns once they are. `owner` is the cell of the one agent that it serves; None where
    all agents of the session share it.
    """

    server: ServerName
    session: ClientSession
    cell: Cell
    observer: WireObserver
    cancel_guard: SendGuard
    seconds: float
    abort: Callable[[], Awaitable[None]]
    kill: Callable[[], None]
    is_fresh: Callable[[], bool]
    catch_up: Callable[[], Awaitable[None]]
    owner: Cell | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCells:
    """Where a capability stands at an agent's own connection: that connection, its definition there."""

    link: Cell
    target: Cell


Isolated = Callable[[AgentView, Capability], Awaitable[OwnCells]]
"""Opens an agent's own connection to a server, or finds it. Raises AuthorityError, CallFailedError."""
