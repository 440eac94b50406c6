"""Reach a server, shake hands, own what belongs to the connection, and end it; it calls nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio

from mcp_client.client.client import Client
from mcp_client.client.spec import Host, ServerSource
from mcp_client.client.ways import Ways
from mcp_client.net.groups import tasks_of_block
from mcp_client.net.reactor import open_reactor
from mcp_client.ports import (
    NO_HANDLERS,
    SILENT,
    ClientObserver,
    CredentialSource,
    Handlers,
    SendGuard,
)
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.errors import CallTimeoutError, RemoteProtocolError, ServerGoneError
from mcp_client.protocol.events import ListKind
from mcp_client.protocol.http.errors import HttpStatusError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import LogMessage
from mcp_client.session import ClientSession
from mcp_client.transports.stdio import open_supervisor

__all__ = ["connect", "open_host"]

_OUR_LIMITS: Final = ClientLimits()


@asynccontextmanager
async def open_host() -> AsyncGenerator[Host]:
    """Yield what several connections share. No server of theirs is alive after the block."""
    async with open_reactor() as reactor, open_supervisor(reactor) as supervisor:
        yield Host(reactor, supervisor)


@asynccontextmanager
async def connect(
    source: ServerSource,
    *,
    guard: SendGuard,
    observer: ClientObserver = SILENT,
    limits: ClientLimits = _OUR_LIMITS,
    cancel_guard: SendGuard | None = None,
    handlers: Handlers = NO_HANDLERS,
    on_list_changed: Callable[[ListKind], object] | None = None,
    on_log: Callable[[LogMessage], object] | None = None,
    dialect: Dialect | None = None,
    host: Host | None = None,
    credentials: CredentialSource | None = None,
) -> AsyncGenerator[Client]:
    """Start or reach a server, complete the handshake, and yield the client of this connection.

    The task that enters the block owns the connection: the server and everything that it started
    are ended when the block is left, however it is left, and so are the handlers' tasks.

    Args:
        source: the server.
        guard: leave for what the connection sends by itself, answers to the server among it, and
            for calls without a guard of their own. `UNGUARDED` for programs that use the client
            alone.
        observer: told of what happens on the wire.
        limits: the bounds of the connection.
        cancel_guard: leave to tell the server that a request was given up; `guard` if None.
        handlers: what the server may ask of the client. Nothing else is declared.
        on_list_changed: called in a step of its own after the server told that a list of its has
            changed, once for all that it told before that step.
        on_log: called with the server's log messages, in steps of their own, within a rate.
        dialect: which versions and extensions are spoken: by default those that begin with a
            handshake, others where the server names nothing else, and no extension.
        host: shared with other connections; one of its own if None.
        credentials: gets new ones for requests that the server turns away for theirs, once the
            handshake is complete; see `connect_authorized`.

    Raises StartError, HandshakeError, UnsupportedVersionError, ServerGoneError, HttpStatusError,
    AuthorizationRequiredError, CallTimeoutError after `initialize_seconds_max`,
    LocalProtocolError for roots that cannot be granted, or what `guard` raised.
    """
    async with _shared(host) as shared:
        ways = Ways(source, None if dialect is None else dialect.memory)
        while True:
            transport = ways.present.transport(shared, limits=limits, observer=observer)
            session = ClientSession(
                transport,
                shared.reactor,
                guard=guard,
                observer=observer,
                limits=limits,
                server=source.name,
                cancel_guard=cancel_guard,
                handlers=handlers,
                dialect=dialect,
                configuration=source,
            )
            client = Client(
                session, epoch=next(shared.epochs), on_list_changed=on_list_changed, on_log=on_log
            )
            session.renewal.credentials = credentials
            session.renewal.on_renewed = partial(_begin_anew, client, shared)
            is_open = False
            try:
                async with _handling(session, handlers):
                    await _open(session, limits.initialize_seconds_max)
                    is_open = True
                    ways.reached()
                    client.begin()
                    yield client
                return
            except (HttpStatusError, ServerGoneError, RemoteProtocolError) as error:
                if is_open or not ways.next_after(error, session):
                    raise
            finally:
                session.close()
                await transport.close()


def _begin_anew(client: Client, host: Host) -> None:
    client.begin_anew(next(host.epochs))


@asynccontextmanager
async def _shared(host: Host | None) -> AsyncGenerator[Host]:
    if host is not None:
        yield host
    else:
        async with open_host() as own:
            yield own


@asynccontextmanager
async def _handling(session: ClientSession, handlers: Handlers) -> AsyncGenerator[None]:
    """Own the tasks in which handlers answer the server; none is left after the block."""
    declared = handlers.capabilities
    if not (declared.sampling or declared.elicitation):
        yield
        return
    async with tasks_of_block() as group:
        session.desk.spawn = group.start_soon
        try:
            yield
        finally:
            session.desk.spawn = None


async def _open(session: ClientSession, seconds: float) -> None:
    with anyio.move_on_after(seconds) as scope:
        await session.open()
    if scope.cancelled_caught:
        raise CallTimeoutError(
            "the server did not complete the handshake in time",
            server=session.server,
            stage="handshake",
            delivery=session.handshake_delivery,
        )
