"""What the broker needs from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from orchestrator.core.ids import IdSource
from orchestrator.core.ports import Approver, AuditSink, Clock, Telemetry

__all__ = ["BrokerPorts"]


class BrokerPorts(Protocol):
    """A session's ports, as far as the broker uses them."""

    @property
    def approver(self) -> Approver:
        """Who is asked where policy says `ask`."""
        ...

    @property
    def audit(self) -> AuditSink:
        """The record."""
        ...

    @property
    def telemetry(self) -> Telemetry:
        """The trace."""
        ...

    @property
    def clock(self) -> Clock:
        """Time."""
        ...

    @property
    def ids(self) -> IdSource:
        """Names of calls."""
        ...

    @property
    def digest_arguments(self) -> Callable[[bytes], str]:
        """A keyed digest for the record: small values cannot be guessed from it."""
        ...
