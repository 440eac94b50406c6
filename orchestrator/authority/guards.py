"""Leave for the parent's own traffic, and for cancellations. Imported by sessions alone."""

from __future__ import annotations

from orchestrator.authority.ledger import Cell
from orchestrator.core.errors import AuthorityError

__all__ = ["CancelGuard", "LoginGuard", "SessionGuard"]


class SessionGuard:
    """For what the parent itself says to a server: initialize, lists, answers, pings.

    It ends with the session and with that incarnation of the server. Nothing is spent by a send.
    """

    __slots__ = ("_server", "_session")

    def __init__(self, *, session: Cell, server: Cell) -> None:
        self._session = session
        self._server = server

    def check(self) -> None:
        """Return if both are in force; raise AuthorityError otherwise."""
        reason = self._session.reason or self._server.reason
        if reason is not None:
            raise AuthorityError(f"not sent: {reason.value.replace('_', ' ')}", reason=reason)

    def sent(self) -> None:
        """Do nothing: the leave holds as long as its cells."""


class CancelGuard(SessionGuard):
    """For notifications/cancelled alone.

    It does not depend on the agent whose call is cancelled: that agent may just have lost its
    authority. It ends, like all that goes to a server, with the server or the session.
    """

    __slots__ = ()


class LoginGuard(SessionGuard):
    """For the credential traffic of one login to a server: discovery, registration, tokens.

    `server` is the cell of that login: it ends with a logout, like all that depends on it.
    """

    __slots__ = ()
