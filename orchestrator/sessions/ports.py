"""What a session is given from outside: time, names, consent, a record, a trace, a listener."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from orchestrator.agents.events import EventListener
from orchestrator.core.ids import IdSource
from orchestrator.core.ports import ApprovalRequest, Approver, AuditSink, Clock, Telemetry
from orchestrator.sessions.always import NEVER_ALWAYS, StandingYes
from orchestrator.sessions.elicitations import ALL_MODES, NOBODY, ElicitationMode, Person

__all__ = ["NobodyToAsk", "RandomIds", "SessionPorts", "SystemClock"]


class SystemClock:
    """The machine's own clocks: a call is the system's own function, nothing stands in between."""

    # a surface of the system: this is where time enters
    now = staticmethod(time.monotonic)  # noqa: TID251
    """Monotonic seconds."""
    wall = staticmethod(time.time)  # noqa: TID251
    """Seconds since 1970-01-01 UTC."""


class RandomIds:
    """Identifiers that differ between sources by the system's randomness, within one by a count.

    20 hexadecimal digits. They are names, not secrets: one gives the next away.
    """

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(6)
        self._counted = count()

    def new(self) -> str:
        """Return an identifier not returned before."""
        return f"{self._prefix}{next(self._counted):08x}"


class NobodyToAsk:
    """The approver where nobody can be asked: every `ask` is a refusal, at once."""

    interactive = False

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return False: nobody said yes."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPorts:
    """What one session works with. `emit` must not block and must not raise; None where nobody listens.

    `digest_arguments` makes the keyed digest of argument bytes that the record holds. `person` is
    asked what servers want, beside the approver; `modes` are the ways in which servers may ask,
    and no other is declared to them (S-13). `always` is what a person has let through for good.
    """

    clock: Clock
    ids: IdSource
    approver: Approver
    audit: AuditSink
    telemetry: Telemetry
    emit: EventListener | None
    digest_arguments: Callable[[bytes], str]
    person: Person = NOBODY
    modes: frozenset[ElicitationMode] = ALL_MODES
    always: StandingYes = NEVER_ALWAYS
