"""A name that leads to an address which it may not stand for is not connected to."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import httpx
import pytest

from mcp_client import UNGUARDED
from mcp_client.auth.discovery import UrlRules
from mcp_client.net.http.engine import HttpEngine
from mcp_client.net.http.httpx_transport import guarded_client
from mcp_client.net.reactor import open_reactor
from mcp_client.ports import SILENT
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http


async def fine(call: HttpCall, reply: HttpReply) -> None:
    await reply.send(200)


async def asked(allows: Callable[[str, str], bool]) -> int:
    """Ask a server by the name localhost, and return how many requests reached it."""
    async with serve_http(fine) as server, open_reactor() as reactor:
        engine = HttpEngine(reactor, observer=SILENT, allows_address=allows)
        try:
            client = guarded_client(engine, seconds=5)
            with anyio.fail_after(30):
                await client.get(
                    f"http://localhost:{server.port}/", extensions={"guard": UNGUARDED}
                )
        finally:
            engine.close()
        return len(server.calls)


@pytest.mark.requirement("A-4")
async def test_a_name_that_stands_for_this_machine_is_not_connected_to_for_a_public_server():
    rules = UrlRules.of("https://mcp.example/mcp")

    with pytest.raises(httpx.ConnectError):
        await asked(rules.allows_address)


async def test_a_server_of_this_machine_may_be_connected_to():
    rules = UrlRules.of("http://127.0.0.1/mcp")

    assert await asked(rules.allows_address) == 1
