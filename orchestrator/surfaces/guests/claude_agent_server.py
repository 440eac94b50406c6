# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownParameterType=false
# The framework is an extra of its own, and is not there where the types are checked.
"""A snapshot as an in-process MCP server of the Claude Agent SDK. Asks no model."""

from __future__ import annotations

from claude_agent_sdk import McpSdkServerConfig

from orchestrator.surfaces.guests.gateway import gateway_server
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["claude_server"]


def claude_server(view: SnapshotView, name: str = "remit") -> McpSdkServerConfig:
    """Return the gateway's server, for the SDK's own transport in memory.

    It goes into `ClaudeAgentOptions(mcp_servers={"remit": …})`.
    """
    return McpSdkServerConfig(type="sdk", name=name, instance=gateway_server(view))
