"""A server as a child process: pipes that we write ourselves, under a supervisor that outlives us."""

from __future__ import annotations

from mcp_client.transports.stdio.hardening import harden_process
from mcp_client.transports.stdio.supervisor import Supervisor, open_supervisor
from mcp_client.transports.stdio.transport import StdioTransport

__all__ = ["StdioTransport", "Supervisor", "harden_process", "open_supervisor"]
