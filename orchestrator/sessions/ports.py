"""What a session is given from outside: time, names, consent, a record, a trace, a listener."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.agents.events import AgentEvent
from orchestrator.core.ids import IdSource
from orchestrator.core.ports import ApprovalRequest, Approver, AuditSink, Clock, Telemetry

__all__ = ["NobodyToAsk", "RandomIds", "SessionPorts", "SystemClock"]


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()  # noqa: TID251  # a surface of the system: this is where time enters

    def wall(self) -> float:
        """Seconds since 1970-01-01 UTC."""
        return time.time()  # noqa: TID251


class RandomIds:
    """Identifiers from the system's randomness: 16 hexadecimal digits."""

    def new(self) -> str:
        """Return an identifier not returned before."""
        return secrets.token_hex(8)


class NobodyToAsk:
    """The approver where nobody can be asked: every `ask` is a refusal, at once."""

    interactive = False

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return False: nobody said yes."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPorts:
    """What one session works with. `emit` must not block and must not raise.

    `digest_arguments` makes the keyed digest of argument bytes that the record holds.
    """

    clock: Clock
    ids: IdSource
    approver: Approver
    audit: AuditSink
    telemetry: Telemetry
    emit: Callable[[AgentEvent], None]
    digest_arguments: Callable[[bytes], str]
