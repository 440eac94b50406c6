"""Servers files: what stands in them, what may be used of it, and why the rest may not.

Reads `.mcp.json` as other clients write it. Connects to nothing and approves nothing.
"""

from __future__ import annotations

from orchestrator.sessions.configuration.file import load_servers, read_servers
from orchestrator.sessions.configuration.source import OUT_VARIABLE, ServersSource
from orchestrator.sessions.entries import (
    ConfigWarning,
    DescriptionTrust,
    EntryState,
    Isolation,
    ServerEntry,
    ServersFile,
    ServerTransport,
    merge_servers,
    server_item,
)

__all__ = [
    "OUT_VARIABLE",
    "ConfigWarning",
    "DescriptionTrust",
    "EntryState",
    "Isolation",
    "ServerEntry",
    "ServerTransport",
    "ServersFile",
    "ServersSource",
    "load_servers",
    "merge_servers",
    "read_servers",
    "server_item",
]
