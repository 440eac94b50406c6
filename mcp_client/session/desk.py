"""Where the requests of a server are answered, refused or handed to handlers; it writes no frame."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Final, Protocol, TypeVar, assert_never

import anyio

from mcp_client.net.reactor import Reactor
from mcp_client.ports import ClientObserver, Handlers, ServerRequestHandler
from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.events import RequestId, RequestReceived, Violation
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    ElicitationAction,
    FormElicitation,
    UrlElicitation,
    elicitation_result,
)
from mcp_client.protocol.peer.requests import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    USER_REJECTED,
    Ping,
    Refusal,
    RootsRequest,
    ServerRequest,
    read_request,
)
from mcp_client.protocol.peer.roots import check_roots, roots_result
from mcp_client.protocol.peer.sampling import SamplingRefused, SamplingRequest, sampling_result
from mcp_client.session.rates import RateWindow

__all__ = ["Outcome", "PeerDesk", "Spawn"]

Outcome = Mapping[str, object] | Refusal
"""A result, or an error to answer with."""

Spawn = Callable[[Callable[[], Coroutine[object, object, None]]], object]
"""Starts a task of the owner's group. It may raise nothing."""

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")


class Answering(Protocol):
    """Sends the answer to a request of the server.

    Raises McpError if the answer cannot be sent as it is; another may be sent then.
    """

    def __call__(self, request_id: RequestId, outcome: Outcome, /) -> None:
        """Send it under the connection's own guard."""
        ...


class _Task:
    """A request that a handler works on."""

    __slots__ = ("over", "request", "request_id", "scope", "withdrawn")

    def __init__(self, request_id: RequestId, request: ServerRequest) -> None:
        self.request_id = request_id
        self.request = request
        self.scope: anyio.CancelScope | None = None
        self.withdrawn = False
        self.over = False

    def withdraw(self) -> None:
        self.withdrawn = True
        if self.scope is not None:
            self.scope.cancel()


class PeerDesk:
    """The requests of one server that are being worked on.

    Attributes:
        roots: what `roots/list` answers with.
        spawn: starts the handlers' tasks; without it requests that need one are refused.
    """

    def __init__(
        self,
        handlers: Handlers,
        *,
        reactor: Reactor,
        limits: ClientLimits,
        server: str,
        answer: Answering,
        observer: ClientObserver,
    ) -> None:
        self.roots = check_roots(handlers.roots or (), limits)
        self.spawn: Spawn | None = None
        self._handlers = handlers
        self._reactor = reactor
        self._limits = limits
        self._server = server
        self._answer = answer
        self._observer = observer
        self._declared = ClientCapabilities()
        self._tasks: dict[RequestId, _Task] = {}
        self._rate = RateWindow(limits.handled_requests_max, limits.handled_seconds)
        # what is answered in a step could be asked without an end, and told of without one
        self._told = RateWindow(limits.handled_requests_max, limits.handled_seconds)
        self._visits: dict[str, None] = {}

    @property
    def running(self) -> int:
        """Requests that handlers work on."""
        return len(self._tasks)

    def take(self, event: RequestReceived, declared: ClientCapabilities) -> Violation | None:
        """Answer, refuse or hand on one request, in this step. `declared` is what was negotiated."""
        if event.request_id in self._tasks:
            return Violation.REPEATED_REQUEST
        self._declared = declared
        read = read_request(event.method, event.params, declared, self._limits, server=self._server)
        match read:
            case Ping():
                self._answer(event.request_id, {})
            case RootsRequest():
                told = self._told.take(self._reactor.now())
                if told:
                    self._observer.question_received(*_question(event))
                self._answer(event.request_id, roots_result(self.roots))
                if told:
                    self._observer.question_ended(event.request_id, "")
            case Refusal():
                self._answer(event.request_id, read)
            case SamplingRequest() | FormElicitation() | UrlElicitation():
                self._hand_on(event, read)
            case _:
                assert_never(read)
        return None

    async def resolve(
        self, method: str, params: Mapping[str, object], declared: ClientCapabilities
    ) -> Outcome:
        """Answer one question of an unfinished result (MCP 2026-07-28), in the caller's task.

        By the same handlers, within the same deadline and rate. A handler's fault is a refusal.
        """
        read = read_request(method, params, declared, self._limits, server=self._server)
        match read:
            case Ping():
                return _UNKNOWN
            case RootsRequest():
                return roots_result(self.roots)
            case Refusal():
                return read
            case SamplingRequest() | FormElicitation() | UrlElicitation():
                if not self._rate.take(self._reactor.now()):
                    return _TOO_MANY
            case _:
                assert_never(read)
        outcome = _late(read)
        try:
            with anyio.move_on_after(self._limits.handler_seconds_max):
                outcome = await self._outcome(read, with_tools=declared.sampling_tools)
        except Exception as error:  # noqa: BLE001  # a handler's fault ends its own request
            if self._handlers.on_error is not None:
                self._reactor.soon(self._handlers.on_error, read, error)
            return _FAILED
        return outcome

    def withdraw(self, request_id: object) -> None:
        """The server takes a request back: its handler is cancelled, and nothing answered.

        One that is not worked on any more has been answered, and that is no fault of anybody.
        """
        if isinstance(request_id, int | str) and not isinstance(request_id, bool):
            task = self._tasks.pop(request_id, None)
            if task is not None:
                self._withdraw(task)

    def expect_visits(self, elicitations: tuple[UrlElicitation, ...]) -> None:
        """Take note of visits whose end the server may tell."""
        for elicitation in elicitations:
            self._visits[elicitation.elicitation_id] = None
        while len(self._visits) > self._limits.elicitations_max:
            del self._visits[next(iter(self._visits))]

    def visited(self, elicitation_id: object) -> Violation | None:
        """The server tells that a visit is complete. One that nobody was asked for is ignored."""
        if not isinstance(elicitation_id, str) or elicitation_id not in self._visits:
            return Violation.UNASKED_NOTICE
        del self._visits[elicitation_id]
        if self._handlers.on_visited is not None:
            self._reactor.soon(self._handlers.on_visited, elicitation_id)
        return None

    def close(self) -> None:
        """Cancel every handler. Nothing is answered any more."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            self._withdraw(task)

    def _withdraw(self, task: _Task) -> None:
        task.withdraw()
        self._tell_end(task, "cancelled")

    def _hand_on(self, event: RequestReceived, request: ServerRequest) -> None:
        request_id = event.request_id
        if self.spawn is None:
            self._answer(request_id, _UNKNOWN)
        elif len(self._tasks) >= self._limits.handlers_running_max or not self._rate.take(
            self._reactor.now()
        ):
            self._answer(request_id, _TOO_MANY)
        else:
            task = self._tasks[request_id] = _Task(request_id, request)
            self._observer.question_received(*_question(event))

            async def run() -> None:
                await self._run(task)

            self.spawn(run)

    async def _run(self, task: _Task) -> None:
        """Answer one request in a task of its own. Raises nothing but cancellation."""
        outcome = _late(task.request)
        try:
            with anyio.move_on_after(self._limits.handler_seconds_max) as task.scope:
                if task.withdrawn:
                    return
                outcome = await self._outcome(
                    task.request, with_tools=self._declared.sampling_tools
                )
            if not task.withdrawn:
                self._settle(task, outcome)
        except Exception as error:  # noqa: BLE001  # a handler's fault ends its own request
            self._failed(task, error)
        finally:
            if self._tasks.get(task.request_id) is task:
                del self._tasks[task.request_id]
            self._tell_end(task, "cancelled")  # unless it has ended otherwise

    async def _outcome(self, request: ServerRequest, *, with_tools: bool) -> Outcome:
        match request:
            case SamplingRequest():
                turn = await _handle(self._handlers.sampling, request)
                if isinstance(turn, SamplingRefused):
                    return Refusal(USER_REJECTED, "the request was rejected")
                return sampling_result(turn, with_tools=with_tools)
            case FormElicitation():
                filled = await _handle(self._handlers.elicitation_form, request)
                return elicitation_result(request, filled, self._limits)
            case UrlElicitation():
                # the server may tell the end of a visit before it has our answer
                self.expect_visits((request,))
                consent = await _handle(self._handlers.elicitation_url, request)
                if consent.action is not ElicitationAction.ACCEPT:
                    self._visits.pop(request.elicitation_id, None)
                return elicitation_result(request, consent, self._limits)
            case _:
                assert_never(request)

    def _failed(self, task: _Task, error: Exception) -> None:
        if self._handlers.on_error is not None:
            self._reactor.soon(self._handlers.on_error, task.request, error)
        if not task.withdrawn:
            self._settle(task, _FAILED)

    def _settle(self, task: _Task, outcome: Outcome) -> None:
        self._answer(task.request_id, outcome)
        error_type = str(outcome.code) if isinstance(outcome, Refusal) else ""
        self._tell_end(task, error_type)

    def _tell_end(self, task: _Task, error_type: str) -> None:
        if not task.over:
            task.over = True
            self._observer.question_ended(task.request_id, error_type)


async def _handle(
    handler: ServerRequestHandler[RequestT, AnswerT] | None, request: RequestT
) -> AnswerT:
    if handler is None:
        raise LookupError("a request was let through that nobody handles")
    return await handler(request)


def _question(event: RequestReceived) -> tuple[RequestId, str, str]:
    """Return what is told of a question: never what it is about."""
    said = (as_object(event.params.get("_meta")) or {}).get("traceparent")
    return event.request_id, event.method, said if isinstance(said, str) else ""


def _late(request: ServerRequest) -> Outcome:
    """Return what is answered where a handler does not come to an end in time."""
    if isinstance(request, SamplingRequest):
        return _FAILED
    return {"action": CANCEL.action.value}


_FAILED: Final = Refusal(INTERNAL_ERROR, "the request was not answered")
_UNKNOWN: Final = Refusal(METHOD_NOT_FOUND, "method not found")
_TOO_MANY: Final = Refusal(INTERNAL_ERROR, "too many requests")
