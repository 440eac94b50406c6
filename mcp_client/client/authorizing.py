"""Connect to a server that wants authorization, and keep it; it reads no token and no document."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mcp_client.auth.discovery import UrlRules
from mcp_client.auth.grants import Grant
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.settings import AuthorizationStep, AuthSettings
from mcp_client.auth.store import TokenStore
from mcp_client.client.client import Client
from mcp_client.client.connecting import connect, open_host
from mcp_client.client.http_source import HttpSpec
from mcp_client.client.spec import Host
from mcp_client.net.http.messages import Target
from mcp_client.ports import (
    NO_HANDLERS,
    SILENT,
    ClientObserver,
    CredentialSource,
    Handlers,
    SendGuard,
)
from mcp_client.protocol.dialect import Dialect
from mcp_client.protocol.http.errors import AuthorizationRequiredError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.session.asking import reason_of

if TYPE_CHECKING:
    from mcp_client.auth.shell import Authorizer
    from mcp_client.net.http.engine import HttpEngine

__all__ = ["connect_authorized", "connect_with", "open_authorizer"]

_OUR_LIMITS: Final = ClientLimits()
_AUTH_LIMITS: Final = AuthLimits()


@asynccontextmanager
async def connect_authorized(
    spec: HttpSpec,
    *,
    guard: SendGuard,
    settings: AuthSettings,
    store: TokenStore,
    step: AuthorizationStep | None = None,
    observer: ClientObserver = SILENT,
    limits: ClientLimits = _OUR_LIMITS,
    auth_limits: AuthLimits = _AUTH_LIMITS,
    handlers: Handlers = NO_HANDLERS,
    dialect: Dialect | None = None,
    host: Host | None = None,
) -> AsyncGenerator[Client]:
    """Connect as `connect` does, and authorize where the server wants that.

    A request that is turned away for its credentials is sent once more with new ones, if it goes
    under the connection's own guard; one with a guard of its own is its caller's to decide anew.

    Args:
        spec: the server. Its `late_headers` are the authorization's.
        guard: leave for what the connection sends by itself, and for the credential traffic.
        settings: how the server is to be authorized.
        store: where tokens and registrations are kept.
        step: asks a person; None if nobody is here.
        observer: see `connect`; it is told of the credential traffic's flushes as well.
        limits: see `connect`.
        auth_limits: the bounds of authorization.
        handlers: see `connect`.
        dialect: see `connect`.
        host: see `connect`.

    Raises what `connect` raises, NeedsAuthorizationError at once if a person is needed and there is
    no `step`, or AuthorizationFailedError.
    """
    async with AsyncExitStack() as stack:
        shared = host or await stack.enter_async_context(open_host())
        authorizer = await stack.enter_async_context(
            open_authorizer(
                spec,
                guard=guard,
                settings=settings,
                store=store,
                step=step,
                observer=observer,
                limits=auth_limits,
                host=shared,
            )
        )
        yield await stack.enter_async_context(
            connect_with(
                authorizer,
                spec,
                guard=guard,
                observer=observer,
                limits=limits,
                handlers=handlers,
                dialect=dialect,
                host=shared,
            )
        )


@asynccontextmanager
async def open_authorizer(
    spec: HttpSpec,
    *,
    guard: SendGuard,
    settings: AuthSettings,
    store: TokenStore,
    host: Host,
    step: AuthorizationStep | None = None,
    observer: ClientObserver = SILENT,
    limits: AuthLimits = _AUTH_LIMITS,
    on_change: Callable[[Grant | None, Grant | None], object] | None = None,
) -> AsyncGenerator[Authorizer]:
    """Yield the credentials of a server, as the store has them; nothing is sent by that.

    See `connect_authorized` for the arguments, and `Authorizer` for `on_change`.
    """
    # not before a server wants it: programs without authorization load none of it
    from mcp_client.auth.shell import Authorizer

    engine = _credential_engine(spec, host, observer, limits)
    try:
        authorizer = Authorizer(
            spec.url,
            engine=engine,
            guard=guard,
            settings=settings,
            store=store,
            step=step,
            server=spec.name,
            limits=limits,
            on_change=on_change,
        )
        async with authorizer.running():
            await authorizer.load()
            yield authorizer
    finally:
        engine.close()


@asynccontextmanager
async def connect_with(
    authorizer: Authorizer,
    spec: HttpSpec,
    *,
    guard: SendGuard,
    host: Host,
    observer: ClientObserver = SILENT,
    limits: ClientLimits = _OUR_LIMITS,
    cancel_guard: SendGuard | None = None,
    handlers: Handlers = NO_HANDLERS,
    dialect: Dialect | None = None,
) -> AsyncGenerator[Client]:
    """Connect with the credentials of an authorizer. See `connect_authorized`."""
    authorized = replace(spec, late_headers=authorizer)
    handled: set[str] = set()
    async with AsyncExitStack() as stack:
        while True:
            await authorizer.ready()
            seen = authorizer.generation
            opening = connect(
                authorized,
                guard=guard,
                observer=observer,
                limits=limits,
                cancel_guard=cancel_guard,
                handlers=handlers,
                dialect=dialect,
                host=host,
                credentials=authorizer,
            )
            try:
                client = await stack.enter_async_context(opening)
                break
            except AuthorizationRequiredError as error:
                failure = error
            await _renew(authorizer, failure, handled, seen)
        yield client


def _credential_engine(
    spec: HttpSpec, host: Host, observer: ClientObserver, limits: AuthLimits
) -> HttpEngine:
    """Return what sends to authorization servers: to no address that their names may not stand for."""
    from mcp_client.net.http.engine import HttpEngine
    from mcp_client.net.http.tls import TlsSettings

    rules = UrlRules.of(spec.url, limits)
    proxy = Target.parse(spec.proxy) if spec.proxy else None

    def allows(name: str, address: str) -> bool:
        # the proxy was configured, and is where it is
        return (proxy is not None and name == proxy.host) or rules.allows_address(name, address)

    return HttpEngine(
        host.reactor,
        observer=observer,
        tls=TlsSettings(authorities_file=spec.authorities_file),
        proxy=proxy,
        allows_address=allows,
    )


async def _renew(
    source: CredentialSource, error: AuthorizationRequiredError, handled: set[str], seen: object
) -> None:
    """Get other credentials for a handshake; once for each reason to turn it away."""
    reason = reason_of(error)
    if reason in handled:
        raise error
    handled.add(reason)
    await source.renewed(error, seen)
