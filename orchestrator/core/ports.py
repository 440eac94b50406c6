"""What the orchestrator asks of others: time, consent, a record, a trace. Protocols only."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from orchestrator.core.capability import CapabilityRef
from orchestrator.core.ids import AgentId, CallId

__all__ = ["ApprovalRequest", "Approver", "AuditSink", "Clock", "Span", "Telemetry"]


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


class Span(Protocol):
    """One piece of work in a trace."""

    def set(self, name: str, value: str | float) -> None:
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

    def agent(self, agent: AgentId, model: str) -> AbstractContextManager[Span]:
        """Open `invoke_agent {agent}`."""
        ...

    def tool(
        self, ref: CapabilityRef, agent: AgentId, call: CallId
    ) -> AbstractContextManager[Span]:
        """Open `execute_tool {name}`: the logical call, its authority check included."""
        ...

    def chat(self, model: str, provider: str) -> AbstractContextManager[Span]:
        """Open `chat {model}`: one request to a model."""
        ...

    def request_started(
        self, server: str, request_id: int, method: str, target: str, call: CallId | None
    ) -> None:
        """Open the client span of an MCP request: its first byte went out.

        It stands below the `execute_tool` span of `call`; the step of a flush belongs to no call,
        so it must be said. `target` is the tool's or prompt's name; `call` is None for what the
        parent itself asks for.
        """
        ...

    def request_ended(self, server: str, request_id: int, error_type: str) -> None:
        """Close the client span; an empty `error_type` is success."""
        ...
