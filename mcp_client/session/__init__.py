"""The protocol and a transport joined: pending requests, deadlines, cancellation; no I/O of its own."""

from __future__ import annotations

from mcp_client.session.asking import ask
from mcp_client.session.pending import PendingRequest
from mcp_client.session.session import ClientSession

__all__ = ["ClientSession", "PendingRequest", "ask"]
