"""What the client asks of others: leave to send, and somebody to tell. It knows no caller."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, runtime_checkable

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import Delivery
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.protocol.peer.elicitation import ElicitationAnswer, FormElicitation, UrlElicitation
from mcp_client.protocol.peer.requests import ServerRequest
from mcp_client.protocol.peer.roots import Root
from mcp_client.protocol.peer.sampling import SamplingRefused, SamplingRequest, SamplingResult

__all__ = [
    "NO_HANDLERS",
    "SILENT",
    "UNGUARDED",
    "ClientObserver",
    "CredentialSource",
    "FrameSink",
    "Handlers",
    "ResumableGuard",
    "SendGuard",
    "ServerRequestHandler",
    "Ticket",
    "Transport",
]

RequestT_contra = TypeVar("RequestT_contra", contravariant=True)
AnswerT_co = TypeVar("AnswerT_co", covariant=True)


class SendGuard(Protocol):
    """Leave to send one frame.

    A transport calls `check` in the same uninterruptible step as the write of the frame's first
    byte, and again after each wait that came before that byte.
    """

    def check(self) -> None:
        """Return if the frame may go out now; raise otherwise. Only reads; allocates nothing.

        What it raises reaches the caller of the request as it is. It must derive neither from
        OSError nor from an HTTP library's errors, or it would be taken for a connection error.
        """
        ...

    def sent(self) -> None:
        """Spend the leave. Called in the same step, right after a write took the first byte."""
        ...


@runtime_checkable
class ResumableGuard(SendGuard, Protocol):
    """A guard that is good for one send, and knows how to ask for the rest of its answer.

    Where a stream breaks that had begun to answer, the server is asked to go on with it: a request
    of its own, which carries nothing of the frame. Other guards are asked again themselves.
    """

    def resumed(self) -> SendGuard:
        """Return leave for one such request. It is checked like any other. Never raises."""
        ...


class Ticket(Protocol):
    """What one frame is, and where it got to. A transport keeps it up to date; its sender reads it."""

    @property
    def id(self) -> int | None:
        """The JSON-RPC id of a request; None for a notification or an answer."""
        ...

    @property
    def method(self) -> str:
        """The method; empty for an answer."""
        ...

    @property
    def name(self) -> str:
        """What it is about, where a header has to say it: a tool, a prompt, a URI, a task."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """Arguments that a header has to mirror, encoded (MCP 2026-07-28, `x-mcp-header`)."""
        ...

    delivery: Delivery
    """NOT_SENT until the step of the first byte, then MAYBE_SENT."""
    bytes_sent: int
    """Bytes of the frame that the kernel took."""

    @property
    def settled(self) -> bool:
        """True once nobody waits for the frame any more: one not yet started is then dropped."""
        ...

    def refused(self, error: Exception) -> None:
        """The guard (or the record that must precede the byte) said no: no byte left."""
        ...

    def written(self) -> None:
        """The whole frame was taken by the kernel."""
        ...

    def failed(self, error: Exception) -> None:
        """This frame alone came to nothing: the server turned it away, or its stream broke."""
        ...

    def lost(self) -> None:
        """The connection ended before the whole frame was taken; `connection_lost` says why."""
        ...


class CredentialSource(Protocol):
    """Gets new credentials when a server wants other ones."""

    @property
    def generation(self) -> Hashable:
        """Which credentials a request sent now would carry: equal as long as they are the same."""
        ...

    @property
    def is_due(self) -> bool:
        """Whether they are about to end, or another program has others: then `ready` comes first."""
        ...

    async def ready(self) -> None:
        """Renew them if they are about to end. Waits no longer than that takes; never fails."""
        ...

    async def renewed(self, error: AuthorizationRequiredError, seen: object) -> None:
        """Return once a request that was turned away with `error` may be sent again.

        `seen` is the generation at the time it was sent. Raises whatever is in the way.
        """
        ...


class FrameSink(Protocol):
    """Who receives what a transport reads. Synchronous: it decodes and settles in the same step."""

    def frame_received(self, frame: bytes, within: int | None = None) -> None:
        """Take one whole frame, without its delimiter.

        `within` is the id of the request in whose own stream it came: no answer but that request's
        may come there. None where a connection has one stream for all.
        """
        ...

    def connection_lost(self, error: Exception) -> None:
        """The connection is over, for good. Called once."""
        ...


class Transport(Protocol):
    """One connection to one server. `send` has no default guard: nothing goes out without one."""

    @property
    def versions(self) -> Sequence[str]:
        """The versions with a handshake that may be spoken over it: the first one is asked for."""
        ...

    @property
    def carries_headers(self) -> bool:
        """Whether frames travel with headers that have to say what the frames say."""
        ...

    async def open(self, sink: FrameSink) -> None:
        """Start or reach the server. Raises StartError, or ServerGoneError if it ended at once.

        Must be called in the owner's task.
        """
        ...

    def send(self, frame: bytes, guard: SendGuard, ticket: Ticket) -> None:
        """Queue one frame without its delimiter. Never blocks.

        The write happens in a later step, where `guard.check()` is asked again. Raises
        FrameTooLargeError or LocalProtocolError if a bound is passed; nothing is queued then.
        """
        ...

    def negotiated(self, version: str) -> None:
        """Take note of the protocol version that was agreed on: some transports have to say it."""
        ...

    def abandon(self, ticket: Ticket) -> bool:
        """Give up on a request whose first byte is out. True if that alone tells the server.

        False means that the server has to be told by notifications/cancelled.
        """
        ...

    async def close(self) -> None:
        """End the server and everything that it started. Idempotent; shielded and timed inside."""
        ...


class ClientObserver(Protocol):
    """Told of what happens on the wire, synchronously, in the step in which it happens."""

    def flushing(self) -> None:
        """Frames are about to be checked and written: put on record now what must come before.

        Raising refuses every frame of this flush.
        """
        ...

    def request_sent(self, request_id: int, method: str) -> None:
        """The first byte of a request went out."""
        ...

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        """A response to a request arrived.

        `error_type` is empty for success, `tool_error` for a tool that failed, else a JSON-RPC code.
        """
        ...

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        """A request ended without a response that its caller can have."""
        ...

    def answer_dropped(self, request_id: int) -> None:
        """A response arrived for which nobody waits (any more): it is not delivered."""
        ...

    def notice_sent(self, method: str) -> None:
        """A frame left that is no request: a notification, or an answer to the server (no method)."""
        ...

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        """The server asks something that is worked on; pings and refusals are not told.

        `traceparent` is what it says of its trace: its own word, and any text.
        """
        ...

    def question_ended(self, question: int | str, error_type: str) -> None:
        """What was received has ended: empty for an answer, a JSON-RPC code, or `cancelled`."""
        ...


class ServerRequestHandler(Protocol[RequestT_contra, AnswerT_co]):
    """Answers a kind of request that servers make: with a person, a model, or a rule.

    It runs in a task of its own, several at a time, for at most `handler_seconds_max`. It is
    cancelled when the server takes its request back and when the connection ends. What it is
    handed is the server's word: untrusted and bounded. What it raises is told to `on_error`; the
    server learns only that its request failed.
    """

    async def __call__(self, request: RequestT_contra, /) -> AnswerT_co:
        """Return the answer; it goes out under the connection's own guard."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Handlers:
    """What a server may ask of this client. What has no handler is not declared, and refused.

    Attributes:
        roots: what `roots/list` answers with; `Client.set_roots` changes it. None: not declared.
        sampling: makes a model's turn, or refuses to.
        sampling_tools: whether `sampling` can deal with tools.
        elicitation_form: has a form filled in.
        elicitation_url: asks for consent, and opens an address out of the model's sight.
        on_visited: called with the id of a visit, in a step of its own, when the server tells
            that it is complete.
        on_error: called with a request and what its handler raised.
    """

    roots: Sequence[Root] | None = None
    sampling: ServerRequestHandler[SamplingRequest, SamplingResult | SamplingRefused] | None = None
    sampling_tools: bool = False
    elicitation_form: ServerRequestHandler[FormElicitation, ElicitationAnswer] | None = None
    elicitation_url: ServerRequestHandler[UrlElicitation, ElicitationAnswer] | None = None
    on_visited: Callable[[str], object] | None = None
    on_error: Callable[[ServerRequest, Exception], object] | None = None

    @property
    def capabilities(self) -> ClientCapabilities:
        """What is declared: exactly what there is a handler for."""
        return ClientCapabilities(
            roots=self.roots is not None,
            sampling=self.sampling is not None,
            sampling_tools=self.sampling is not None and self.sampling_tools,
            elicitation_form=self.elicitation_form is not None,
            elicitation_url=self.elicitation_url is not None,
        )


NO_HANDLERS: Final = Handlers()
"""A server may ask nothing but ping."""


class _Silent:
    def flushing(self) -> None:
        pass

    def request_sent(self, request_id: int, method: str) -> None:
        pass

    def request_answered(self, request_id: int, method: str, error_type: str) -> None:
        pass

    def request_failed(self, request_id: int, method: str, error: Exception) -> None:
        pass

    def answer_dropped(self, request_id: int) -> None:
        pass

    def notice_sent(self, method: str) -> None:
        pass

    def question_received(self, question: int | str, method: str, traceparent: str) -> None:
        pass

    def question_ended(self, question: int | str, error_type: str) -> None:
        pass


class _Unguarded:
    def check(self) -> None:
        pass

    def sent(self) -> None:
        pass


SILENT: Final[ClientObserver] = _Silent()
"""Tells nobody."""

UNGUARDED: Final[SendGuard] = _Unguarded()
"""Leave to send anything, always. For programs that use the client alone; the orchestrator never does."""
