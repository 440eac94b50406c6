"""Every cause by which a permit ends, each done to the product's own ledger and to a clock. No transport."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from orchestrator.authority._mint import Permit, Stamp
from orchestrator.authority.ledger import CellKind, Ledger
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import CallId

__all__ = ["CAUSES", "Cause", "Leave"]

LEASE_UNTIL: Final = 50.0
DEADLINE: Final = 100.0


class Leave:
    """A child's permit for one tool of a server that wants a login, and all that it stands under."""

    def __init__(self) -> None:
        self.time = 0.0
        self.ledger = Ledger(thread=lambda: 1)
        self.session = self.ledger.open(CellKind.SESSION, "s")
        self.parent = self.ledger.open(CellKind.AGENT, "p", under=self.session)
        self.agent = self.ledger.open(
            CellKind.AGENT, "p/c", under=self.parent, lease_until=LEASE_UNTIL
        )
        self.login = self.ledger.open(CellKind.LOGIN, "srv", under=self.session)
        self.server = self.ledger.open(CellKind.SERVER, "srv", under=self.login)
        self.tool = self.ledger.open(CellKind.DEFINITION, "srv/t", under=self.server)
        self.policy = self.ledger.open(CellKind.POLICY, "policy")

    def permit(self, *, deadline: float = DEADLINE) -> Permit:
        """Leave to send one frame."""
        stamp = Stamp(
            agent=self.agent,
            target=self.tool,
            link=self.server,
            policy=self.policy,
            login=self.login,
        )
        return Permit(call=CallId("c"), stamp=stamp, deadline=deadline, now=lambda: self.time)


@dataclass(frozen=True, slots=True)
class Cause:
    """What happens, what the refusal then says, and the deadline of the permit that it ends."""

    act: Callable[[Leave], object]
    reason: DenyReason
    deadline: float = DEADLINE


def _revoked(name: str, reason: DenyReason, told: DenyReason | None = None) -> Cause:
    return Cause(lambda leave: leave.ledger.revoke(getattr(leave, name), reason), told or reason)


def _moved(name: str, reason: DenyReason) -> Cause:
    return Cause(lambda leave: leave.ledger.void(getattr(leave, name), reason), reason)


def _later(time: float, reason: DenyReason, deadline: float = DEADLINE) -> Cause:
    return Cause(lambda leave: setattr(leave, "time", time), reason, deadline)


_R: Final = DenyReason
CAUSES: Final[dict[str, Cause]] = {
    "agent cancelled": _revoked("agent", _R.AGENT_CANCELLED),
    "agent closed": _revoked("agent", _R.AGENT_CLOSED),
    "budget spent": _revoked("agent", _R.BUDGET_SPENT),
    "parent cancelled": _revoked("parent", _R.AGENT_CANCELLED, _R.PARENT_CLOSED),
    "parent closed": _revoked("parent", _R.AGENT_CLOSED, _R.PARENT_CLOSED),
    "session closed": _revoked("session", _R.SESSION_CLOSED),
    "session replaced": _revoked("session", _R.SESSION_REPLACED),
    "configuration reloaded": _revoked("server", _R.CONFIGURATION_RELOADED),
    "server removed": _revoked("server", _R.SERVER_REMOVED),
    "server disabled": _revoked("server", _R.SERVER_DISABLED),
    "server disconnected": _revoked("server", _R.SERVER_DISCONNECTED),
    "connected again": _moved("server", _R.SERVER_DISCONNECTED),
    "logged out": _revoked("login", _R.LOGGED_OUT),
    "logged in as another": _revoked("login", _R.LOGGED_IN),
    "refresh failed": _revoked("login", _R.NEEDS_AUTH),
    "scope changed": _moved("login", _R.SCOPE_CHANGED),
    "definition changed": _revoked("tool", _R.DEFINITION_CHANGED),
    "pin forgotten": _revoked("tool", _R.PIN_FORGOTTEN),
    "policy changed": _moved("policy", _R.POLICY_CHANGED),
    "lease over": _later(LEASE_UNTIL + 1, _R.LEASE_OVER),
    "deadline passed": _later(LEASE_UNTIL, _R.DEADLINE_PASSED, LEASE_UNTIL - 1),
}
