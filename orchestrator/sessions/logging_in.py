"""One login to one server, or the end of it, outside of a run: nothing of the server is kept but that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio.to_thread

from mcp_client.auth.errors import AuthorizationFailedError
from mcp_client.auth.settings import AuthorizationStep
from mcp_client.auth.store import TokenStore, forget
from orchestrator.core.errors import ConfigError, ServerFailedError
from orchestrator.core.groups import ungrouped
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.assembling import looking_ports
from orchestrator.sessions.entries import ServerEntry, ServerTransport
from orchestrator.sessions.logins import LoginPorts
from orchestrator.sessions.parent import ParentSession
from orchestrator.sessions.servers import ServerState
from policies import ASK_ALL

__all__ = ["Standing", "log_in_to", "log_out_of", "refuse_without_login", "standings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one server stands when it is reached: its state, and the code of what is in the way.

    Attributes:
        reason: what became of a process, in our words; "" for a server that is reached at an
            address, of which such words could tell something.
    """

    name: str
    state: ServerState
    problem: str = ""
    reason: str = ""
    tools: int = 0
    protocol_version: str = ""
    fix: str = ""


async def log_in_to(entry: ServerEntry, store: TokenStore, step: AuthorizationStep) -> Standing:
    """Have a person log in to a server that was approved, and say how it stands then.

    Raises ConfigError for a server that has no login, ServerFailedError if it came to nothing.
    """
    refuse_without_login(entry)
    session = _session((entry,), store, step)
    with ungrouped():
        async with session.running():
            connected = session.servers[entry.name].state is ServerState.CONNECTED
            stored = await anyio.to_thread.run_sync(store.read, entry.url)
            if connected and stored.grant is None:
                raise ConfigError(
                    f"server {entry.name!r} wants no login: it answers without one",
                    code="E-LOGIN-NONE",
                    where=entry.where,
                )
            await session.log_in(entry.name)
            return _standing(session, entry)


async def log_out_of(entry: ServerEntry, store: TokenStore) -> None:
    """Forget the login to a server: nothing is sent to it. Raises as `log_in_to`."""
    refuse_without_login(entry)
    try:
        await forget(store, entry.url)
    except AuthorizationFailedError as error:
        raise ServerFailedError(
            f"the login to {entry.name!r} cannot be forgotten: {error}",
            code="E-LOGIN-STORE",
            server=entry.name,
            fix="look at the permissions of the credentials in the state folder",
        ) from error


async def standings(entries: Sequence[ServerEntry], store: TokenStore) -> tuple[Standing, ...]:
    """Reach these servers, which were approved, side by side, and say how each stands."""
    session = _session(entries, store, None)
    with ungrouped():
        async with session.running():
            return tuple(_standing(session, entry) for entry in entries)


def refuse_without_login(entry: ServerEntry) -> None:
    """Raise ConfigError for an entry that cannot be used, or cannot be logged in to."""
    if entry.problem is not None:
        raise entry.problem
    if not entry.wants_login:
        raise ConfigError(
            f"server {entry.name!r} has no login",
            code="E-LOGIN-NONE",
            why="it is started here, its headers hold credentials of its own, or what is sent to it "
            "is not encrypted",
            where=entry.where,
        )


def _session(
    entries: Sequence[ServerEntry], store: TokenStore, step: AuthorizationStep | None
) -> ParentSession:
    return ParentSession(
        servers=entries,
        policy=ASK_ALL,
        ports=looking_ports(),
        limits=OrchestratorLimits(),
        builtins=(),
        logins=LoginPorts(store=store, step=lambda entry: step),
    )


def _standing(session: ParentSession, entry: ServerEntry) -> Standing:
    connection = session.servers[entry.name]
    listing = connection.listing
    error = connection.error
    here = entry.transport is ServerTransport.STDIO
    return Standing(
        name=entry.name,
        protocol_version=connection.protocol_version,
        reason=error.reason if here and isinstance(error, ServerFailedError) else "",
        fix=error.fix if error is not None else "",
        state=connection.state,
        problem=error.code if error is not None else "",
        tools=len(listing.tools) if listing is not None else 0,
    )
