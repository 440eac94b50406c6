"""How things end: a call, an agent, a run."""

from __future__ import annotations

from enum import Enum

__all__ = ["CallOutcome", "RunStatus"]


class CallOutcome(Enum):
    """How one call of a capability ended."""

    OK = "ok"
    FAILED = "failed"
    """The server answered with an error, or a tool said that it failed."""
    DENIED = "denied"
    """Policy or a person said no."""
    REFUSED = "refused"
    """The ledger said no: authority had been taken back."""
    LOST = "lost"
    """The connection or the deadline ended it."""


class RunStatus(Enum):
    """How an agent or a run ended; the words of `--json`."""

    OK = "ok"
    FAILED = "failed"
    DENIED = "denied"
    INPUT_REQUIRED = "input_required"
    NEEDS_AUTH = "needs_auth"
    PENDING_APPROVAL = "pending_approval"
    CANCELLED = "cancelled"
