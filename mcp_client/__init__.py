"""An MCP client that sends nothing without leave; its public names, each loaded when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcp_client.client import (
        Client,
        Host,
        ServerSource,
        ServerSpec,
        ToolListing,
        connect,
        open_host,
    )
    from mcp_client.ports import (
        SILENT,
        UNGUARDED,
        ClientObserver,
        FrameSink,
        SendGuard,
        Ticket,
        Transport,
    )
    from mcp_client.protocol.errors import (
        CallCancelledError,
        CallTimeoutError,
        Delivery,
        FrameTooLargeError,
        HandshakeError,
        LocalProtocolError,
        McpError,
        PeerError,
        RemoteProtocolError,
        ServerGoneError,
        StartError,
        UnsupportedVersionError,
    )
    from mcp_client.protocol.limits import ClientLimits
    from mcp_client.protocol.progress import Progress
    from mcp_client.protocol.results import ToolResult
    from mcp_client.protocol.tools import QuarantinedTool, Tool
    from mcp_client.session import ClientSession, PendingRequest

__all__ = [
    "SILENT",
    "UNGUARDED",
    "CallCancelledError",
    "CallTimeoutError",
    "Client",
    "ClientLimits",
    "ClientObserver",
    "ClientSession",
    "Delivery",
    "FrameSink",
    "FrameTooLargeError",
    "HandshakeError",
    "Host",
    "LocalProtocolError",
    "McpError",
    "PeerError",
    "PendingRequest",
    "Progress",
    "QuarantinedTool",
    "RemoteProtocolError",
    "SendGuard",
    "ServerGoneError",
    "ServerSource",
    "ServerSpec",
    "StartError",
    "Ticket",
    "Tool",
    "ToolListing",
    "ToolResult",
    "Transport",
    "UnsupportedVersionError",
    "connect",
    "open_host",
]

_ERRORS = "mcp_client.protocol.errors"

_HOMES = {
    "SILENT": "mcp_client.ports",
    "UNGUARDED": "mcp_client.ports",
    "CallCancelledError": _ERRORS,
    "CallTimeoutError": _ERRORS,
    "Client": "mcp_client.client",
    "ClientLimits": "mcp_client.protocol.limits",
    "ClientObserver": "mcp_client.ports",
    "ClientSession": "mcp_client.session",
    "Delivery": _ERRORS,
    "FrameSink": "mcp_client.ports",
    "FrameTooLargeError": _ERRORS,
    "HandshakeError": _ERRORS,
    "Host": "mcp_client.client",
    "LocalProtocolError": _ERRORS,
    "McpError": _ERRORS,
    "PeerError": _ERRORS,
    "PendingRequest": "mcp_client.session",
    "Progress": "mcp_client.protocol.progress",
    "QuarantinedTool": "mcp_client.protocol.tools",
    "RemoteProtocolError": _ERRORS,
    "SendGuard": "mcp_client.ports",
    "ServerGoneError": _ERRORS,
    "ServerSource": "mcp_client.client",
    "ServerSpec": "mcp_client.client",
    "StartError": _ERRORS,
    "Ticket": "mcp_client.ports",
    "Tool": "mcp_client.protocol.tools",
    "ToolListing": "mcp_client.client",
    "ToolResult": "mcp_client.protocol.results",
    "Transport": "mcp_client.ports",
    "UnsupportedVersionError": _ERRORS,
    "connect": "mcp_client.client",
    "open_host": "mcp_client.client",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
