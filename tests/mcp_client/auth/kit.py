"""An authorizer for one server of the tests, over an engine as a connection has it; it judges nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcp_client import UNGUARDED, AuthorizationRequiredError
from mcp_client.auth.discovery import UrlRules
from mcp_client.auth.limits import AuthLimits
from mcp_client.auth.settings import AuthorizationStep, AuthSettings
from mcp_client.auth.shell import Authorizer, wall_clock
from mcp_client.auth.store import MemoryTokenStore, TokenStore
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.reactor import open_reactor
from mcp_client.ports import SILENT
from mcp_client.protocol.http.challenges import Challenge

__all__ = ["authorizing", "print_table", "turned_away"]

QUICK = AuthLimits(poll_seconds=0.01)


@asynccontextmanager
async def authorizing(
    url: str,
    *,
    store: TokenStore | None = None,
    step: AuthorizationStep | None = None,
    settings: AuthSettings | None = None,
    limits: AuthLimits = QUICK,
    clock: Callable[[], float] = wall_clock,
) -> AsyncGenerator[Authorizer]:
    """Yield an authorizer that has loaded what the store has."""
    async with open_reactor() as reactor:
        rules = UrlRules.of(url, limits)
        engine = HttpEngine(reactor, observer=SILENT, allows_address=rules.allows_address)
        try:
            made = Authorizer(
                url,
                engine=engine,
                guard=UNGUARDED,
                settings=settings or AuthSettings(),
                store=store or MemoryTokenStore(),
                step=step,
                server="s",
                limits=limits,
                clock=clock,
            )
            async with made.running():
                await made.load()
                yield made
        finally:
            engine.close()


def turned_away(
    parameters: Mapping[str, str] | None = None, *, status: int = 401
) -> AuthorizationRequiredError:
    """Return what a server says that wants other credentials."""
    challenge = Challenge(scheme="bearer", parameters=parameters or {})
    return AuthorizationRequiredError("x", status=status, challenges=(challenge,))


def print_table(request: pytest.FixtureRequest, rows: Mapping[str, str]) -> None:
    """Show rows to whoever runs the tests, whether they succeed or not."""
    out = request.config.get_terminal_writer()
    capturing: Any = request.config.pluginmanager.getplugin("capturemanager")
    width = max(map(len, rows), default=0)
    with capturing.global_and_fixture_disabled():
        out.line()
        for name, row in rows.items():
            out.line(f"{name:{width}}  {row}")
