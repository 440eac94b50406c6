"""Streamable HTTP: one POST per message, JSON or events for an answer. One connection is one transport."""

from __future__ import annotations

from mcp_client.transports.streamable_http.transport import StreamableHttpTransport

__all__ = ["StreamableHttpTransport"]
