"""One handshake with a server, for a check-up: it is started or reached, asked, and ended again.

Nothing of it is kept, no agent is given any of it, and no tool is called.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from mcp_client.client import connect
from mcp_client.protocol.dialect import Dialect
from orchestrator.authority.guards import SessionGuard
from orchestrator.authority.ledger import CellKind, Ledger
from orchestrator.sessions.entries import ServerEntry, refuse_changed
from orchestrator.sessions.servers import server_source

__all__ = ["Greeting", "greet_server"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a server answered: the version of MCP that was agreed on, and how many tools it has."""

    protocol_version: str
    tools: int


async def greet_server(entry: ServerEntry) -> Greeting:
    """Shake hands with an approved server and list its tools. Bound its time from outside.

    Raises ConfigError if what was approved has changed, McpError for what the server does.
    """
    refuse_changed(entry)
    ledger = Ledger(thread=threading.get_ident)
    session = ledger.open(CellKind.SESSION, "greeting")
    server = ledger.open(CellKind.SERVER, entry.name, under=session)
    async with connect(
        server_source(entry),
        guard=SessionGuard(session=session, server=server),
        dialect=Dialect(opening=entry.protocol),
    ) as client:
        tools = (await client.list_tools()).tools if client.capabilities.tools else ()
        return Greeting(protocol_version=client.protocol_version, tools=len(tools))
