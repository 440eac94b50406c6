"""What the orchestrator asks of others: time, consent, a record, a trace. Protocols only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import AgentId, CallId

__all__ = ["ApprovalRequest", "Approver", "AuditSink", "Clock", "Peer", "Span", "Telemetry"]


class Clock(Protocol):
    """Time, handed in."""

    def now(self) -> float:
        """Monotonic seconds: the clock of deadlines."""
        ...

    def wall(self) -> float:
        """Seconds since 1970-01-01 UTC: the clock of records."""
        ...


class AuditSink(Protocol):
    """The append-only record of everything that was decided, sent, answered or taken back."""

    def append(self, kind: str, fields: Mapping[str, object]) -> None:
        """Chain one record. Synchronous; not yet on disk. `fields` are JSON values, no secrets."""
        ...

    def flush(self) -> None:
        """Hand everything appended to the kernel. Raises OSError if it cannot be kept."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalRequest:
    """What a person is asked about: who wants to do what, with which arguments, by which rule."""

    agent: AgentId
    ref: CapabilityRef
    call: CallId
    arguments: Mapping[str, object] = field(default_factory=dict[str, object])
    rule: str = ""


class Approver(Protocol):
    """Asks a person. An answer is for this one call only."""

    @property
    def interactive(self) -> bool:
        """False where nobody can be asked: an `ask` is then a refusal, at once."""
        ...

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return True only if a person said yes to exactly this request."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """The far end of one connection, as a trace tells of it. No path, no query, no credential.

    Attributes:
        server: the host's label.
        transport: `pipe` or `tcp`; empty where that is not known.
        address: the host of a server that is reached over the network.
        port: its port; 0 for none.
        version: the protocol version that was agreed on; empty before that.
        agent: whose connection it is alone; empty where all agents share it.
    """

    server: str
    transport: str = ""
    address: str = ""
    port: int = 0
    version: str = ""
    agent: str = ""


class Span(Protocol):
    """One piece of work in a trace."""

    def set(self, name: str, value: str | float | Sequence[str]) -> None:
        """Set one attribute, true and false included. Never content, arguments or a server's text."""
        ...

    def fail(self, error_type: str) -> None:
        """Mark the work as failed, with a low-cardinality type of ours."""
        ...


class Telemetry(Protocol):
    """The port behind which OpenTelemetry stands."""

    def workflow(self, name: str, run: str) -> AbstractContextManager[Span]:
        """Open `invoke_workflow {name}`."""
        ...

    def agent(
        self, agent: AgentId, model: str, provider: str, *, stays: bool
    ) -> AbstractContextManager[Span]:
        """Open `invoke_agent {agent}`. One that stays outlives whoever made it: it is linked to them."""
        ...

    def tool(
        self, ref: CapabilityRef, agent: AgentId, call: CallId
    ) -> AbstractContextManager[Span]:
        """Open `execute_tool {name}`: the logical call, its authority check included."""
        ...

    def chat(self, model: str, provider: str) -> AbstractContextManager[Span]:
        """Open `chat {model}`: one request to a model."""
        ...

    def waiting(self) -> AbstractContextManager[object]:
        """Count one approval that a person is waited for, as long as it is entered."""
        ...

    def connecting(self, peer: Peer) -> AbstractContextManager[object]:
        """Open `connect {server}`: the handshake, and what is listed first."""
        ...

    def connected(self, peer: Peer) -> AbstractContextManager[object]:
        """Take the time that a connection stands, as long as it is entered."""
        ...

    def traceparent(self) -> str:
        """Return what a request of the present step says of the trace it belongs to; empty: nothing.

        W3C Trace Context, `traceparent`. Never baggage: it could carry a user's data to a server.
        """
        ...

    def request_started(
        self, peer: Peer, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        """Open the client span of an MCP request: its first byte went out.

        It stands below the `execute_tool` span of `call`; the step of a flush belongs to no call,
        so it must be said. `target` is the tool's or prompt's name; `call` is None for what the
        parent itself asks for.
        """
        ...

    def request_ended(self, peer: Peer, request_id: int, error_type: str) -> None:
        """Close the client span; an empty `error_type` is success, a number a JSON-RPC code."""
        ...

    def question_started(
        self, peer: Peer, question: int | str, method: str, traceparent: str
    ) -> None:
        """Open the server span of what a server asks; `traceparent` is its own word, so untrusted."""
        ...

    def question_ended(self, peer: Peer, question: int | str, error_type: str) -> None:
        """Close the server span; an empty `error_type` is success, a number a JSON-RPC code."""
        ...
