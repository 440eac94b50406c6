"""What a connection had asked of its server beside calls, and asks of it again in the next session."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from mcp_client.client.listening import Listener
from mcp_client.protocol.connection.modern import ModernConnection
from mcp_client.protocol.errors import McpError
from mcp_client.protocol.http.errors import SessionLostError
from mcp_client.protocol.jsonrpc import encode
from mcp_client.protocol.logs import LogLevel
from mcp_client.session import ClientSession
from mcp_client.session.pending import PendingRequest

__all__ = ["Standing", "stand_again"]

AT_ONCE: Final = 64
"""Requests that are in flight together: most of what a connection may have is its callers'."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What holds until the session ends: a server that forgets the session forgets this too.

    Attributes:
        subscriptions: the URIs that are subscribed to.
        log_level: from which level on the server was asked to log; None if it was not asked.
    """

    subscriptions: frozenset[str] = frozenset()
    log_level: LogLevel | None = None


async def stand_again(session: ClientSession, listener: Listener, standing: Standing) -> None:
    """Ask for all of it again, under the session's own guard, within `initialize_seconds_max`.

    What the server does not grant any more is left out, and does not stop the rest. Updates that
    may have been missed are told as if the server had told them. Raises what the guard raised, and
    SessionLostError: then the session that follows asks again.
    """
    session.bulletin.subscribed.update(standing.subscriptions)
    if isinstance(session.connection, ModernConnection):
        await _listen_again(session, listener, standing)
    else:
        await _ask_again(session, standing)
    for uri in sorted(standing.subscriptions & session.bulletin.subscribed):
        session.bulletin.take("notifications/resources/updated", {"uri": uri})


async def _listen_again(session: ClientSession, listener: Listener, standing: Standing) -> None:
    if session.connection.capabilities.logging:
        session.log_level = standing.log_level
    if not standing.subscriptions:
        return
    try:
        await listener.renew()
        granted = listener.granted.resources
    except McpError:
        granted = frozenset[str]()
    session.bulletin.subscribed -= standing.subscriptions - granted


async def _ask_again(session: ClientSession, standing: Standing) -> None:
    ends_at = session.reactor.now() + session.limits.initialize_seconds_max
    if standing.log_level is not None:
        level = {"level": standing.log_level.value}
        is_granted = await _granted(_ask(session, "logging/setLevel", level, ends_at))
        session.log_level = standing.log_level if is_granted else None
    uris = iter(sorted(standing.subscriptions))
    while batch := [*islice(uris, AT_ONCE)]:
        asked = [
            (uri, _ask(session, "resources/subscribe", {"uri": uri}, ends_at)) for uri in batch
        ]
        for uri, pending in asked:
            if not await _granted(pending):
                session.bulletin.subscribed.discard(uri)


def _ask(
    session: ClientSession, method: str, params: dict[str, str], ends_at: float
) -> PendingRequest | None:
    left = ends_at - session.reactor.now()
    if left <= 0:
        return None
    try:
        return session.start(method, encode(params), guard=session.guard, seconds=left)
    except SessionLostError:
        raise
    except McpError:
        return None


async def _granted(pending: PendingRequest | None) -> bool:
    if pending is None:
        return False
    try:
        await pending.wait()
    except SessionLostError:
        raise
    except McpError:
        return False
    return True
