"""What one connection over HTTP has for as long as it lasts; it sends nothing itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mcp_client.net.endpoint import Endpoint, Engine
from mcp_client.net.reactor import Reactor
from mcp_client.protocol.http.limits import HttpTransportLimits
from mcp_client.protocol.limits import ClientLimits

__all__ = ["HttpLink"]

_HTTP_LIMITS: Final = HttpTransportLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLink:
    """Where the requests of one connection go, what sends them, and within which bounds.

    Attributes:
        endpoint: where they go.
        engine: sends them. It is the connection's own, and is closed with it.
        server: the host's label of the server.
        reactor: the running loop.
        limits: the bounds of the connection.
        http_limits: the bounds of what HTTP adds.
    """

    endpoint: Endpoint
    engine: Engine
    server: str
    reactor: Reactor
    limits: ClientLimits
    http_limits: HttpTransportLimits = _HTTP_LIMITS
