"""The login of one server in one incarnation: its cell, its credentials, and what ends with them.

It holds no token itself and shows none; whoever asks a person is handed in.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from mcp_client.auth.errors import NeedsAuthorizationError
from mcp_client.auth.grants import Grant, GrantChange, compare
from mcp_client.auth.settings import AuthorizationStep
from mcp_client.auth.store import MemoryTokenStore, TokenStore, forget
from mcp_client.client import Client, Host, HttpSpec
from mcp_client.client.authorizing import connect_with, open_authorizer
from mcp_client.ports import ClientObserver, Handlers, SendGuard
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from orchestrator.authority.guards import LoginGuard
from orchestrator.authority.ledger import Cell, Ledger
from orchestrator.core.errors import DenyReason
from orchestrator.sessions.entries import ServerEntry

if TYPE_CHECKING:
    from mcp_client.auth.shell import Authorizer

__all__ = ["LoginPorts", "ServerLogin", "Wiring"]

UNAUTHORIZED: Final = 401


def _nobody(entry: ServerEntry) -> AuthorizationStep | None:
    """Nobody is here to be asked."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginPorts:
    """What the logins of one session work with.

    Attributes:
        store: where tokens are kept; by default as long as the program runs.
        step: who has a person consent to the login of a server; None where nobody is here.
    """

    store: TokenStore = field(default_factory=MemoryTokenStore)
    step: Callable[[ServerEntry], AuthorizationStep | None] = _nobody


class Wiring(TypedDict):
    """What one connection is made with, beside where it goes. See `mcp_client.client.connect`."""

    guard: SendGuard
    cancel_guard: SendGuard
    observer: ClientObserver
    dialect: Dialect
    host: Host
    handlers: Handlers


class ServerLogin:
    """What one incarnation of a server is reached with.

    Attributes:
        cell: in force as long as the login is; the server's own cell stands under it.
    """

    def __init__(
        self,
        *,
        entry: ServerEntry,
        session_cell: Cell,
        cell: Cell,
        ledger: Ledger,
        ports: LoginPorts,
        asks: bool,
        on_change: Callable[[GrantChange], None],
    ) -> None:
        self.cell = cell
        self._entry = entry
        self._session_cell = session_cell
        self._ledger = ledger
        self._ports = ports
        self._asks = asks
        self._on_change = on_change
        self._authorizer: Authorizer | None = None

    @asynccontextmanager
    async def connect(self, spec: HttpSpec, **wiring: Unpack[Wiring]) -> AsyncGenerator[Client]:
        """Connect with what the store has. See `connect_authorized`.

        Nobody is asked at that unless the login was asked for: a session that opens waits for no
        browser. Once it is connected, a person may be asked for what reaches further.
        """
        opening = open_authorizer(
            spec,
            guard=LoginGuard(session=self._session_cell, server=self.cell),
            settings=self._entry.login.settings,
            store=self._ports.store,
            host=wiring["host"],
            step=self._ports.step(self._entry) if self._asks else None,
            observer=wiring["observer"],
            on_change=self.follow,
        )
        async with opening as authorizer:
            self._authorizer = authorizer
            try:
                async with connect_with(authorizer, spec, **wiring) as client:
                    authorizer.step = self._ports.step(self._entry)
                    yield client
            finally:
                self._authorizer = None

    def join(self, spec: HttpSpec, **wiring: Unpack[Wiring]) -> AbstractAsyncContextManager[Client]:
        """Connect once more, with the credentials of the connection that there is: one login, one grant.

        Raises NeedsAuthorizationError if there is none: nothing is sent without them then.
        """
        if self._authorizer is None:
            raise NeedsAuthorizationError(server=self._entry.name)
        return connect_with(self._authorizer, spec, **wiring)

    async def renew(self) -> None:
        """Have a person log in anew, under the connection that there is.

        Raises as `Authorizer.log_in`. Another person's login ends this one.
        """
        if self._authorizer is not None:
            await self._authorizer.log_in(
                AuthorizationRequiredError(
                    "a login was asked for", status=UNAUTHORIZED, challenges=()
                )
            )

    async def forget(self) -> None:
        """Drop the tokens: here in this step, then in the store. The cell is dead by then."""
        if self._authorizer is not None:
            await self._authorizer.log_out()
        else:
            await forget(self._ports.store, self._entry.url)

    def follow(self, before: Grant | None, after: Grant | None) -> None:
        """Let authority follow the grant, in the step before anything is sent with it."""
        if self.cell.reason is not None:
            return
        change = compare(before, after)
        match change:
            case GrantChange.SAME:
                return
            case GrantChange.GAINED | GrantChange.WIDER:
                # what is under way is decided again; what was admitted stays
                self._ledger.void(self.cell, DenyReason.SCOPE_CHANGED)
            case GrantChange.OTHER:
                self._ledger.revoke(self.cell, DenyReason.LOGGED_IN)
            case GrantChange.LOST:
                self._ledger.revoke(self.cell, DenyReason.NEEDS_AUTH)
        self._on_change(change)
