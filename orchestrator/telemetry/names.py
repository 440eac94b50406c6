"""The names of spans, attributes and metrics. Constants only: the conventions still move.

Source: OpenTelemetry's semantic conventions for generative AI and MCP, all in development. What
backends read today is written; where a name changed, both stand on the span.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "AGENT_NAME",
    "AGENT_SECONDS",
    "CHAT_SECONDS",
    "CONTENT",
    "CONVERSATION_ID",
    "DENIALS",
    "DENIAL_REASON",
    "ERROR_TYPE",
    "INSTRUMENTATION",
    "JSONRPC_REQUEST_ID",
    "MCP_METHOD",
    "MCP_SECONDS",
    "OPERATION",
    "PROMPT_NAME",
    "PROVIDER",
    "REQUEST_MODEL",
    "SECONDS_BUCKETS",
    "SERVER",
    "TOOL_CALL_ID",
    "TOOL_NAME",
    "TOOL_SECONDS",
    "TOOL_TYPE",
    "WORKFLOW_NAME",
]

INSTRUMENTATION: Final = "remit"

OPERATION: Final = "gen_ai.operation.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
"""The run, on every span: a backend that groups by it would leave the others out."""
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
AGENT_NAME: Final = "gen_ai.agent.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
PROVIDER: Final = "gen_ai.provider.name"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
PROMPT_NAME: Final = "gen_ai.prompt.name"
MCP_METHOD: Final = "mcp.method.name"
JSONRPC_REQUEST_ID: Final = "jsonrpc.request.id"
ERROR_TYPE: Final = "error.type"
SERVER: Final = "remit.server"
"""The host's label of a server; the conventions have no name for it."""

CONTENT: Final = frozenset(
    {
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "gen_ai.system_instructions",
        "gen_ai.tool.definitions",
        "gen_ai.tool.description",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "mcp.resource.uri",
        "mcp.session.id",
    }
)
"""Attributes that carry content, or a server's or a user's own text: never set."""

MCP_SECONDS: Final = "mcp.client.operation.duration"
CHAT_SECONDS: Final = "gen_ai.client.operation.duration"
AGENT_SECONDS: Final = "gen_ai.invoke_agent.duration"
TOOL_SECONDS: Final = "gen_ai.execute_tool.duration"
DENIALS: Final = "remit.authority.denials"
DENIAL_REASON: Final = "reason"
SECONDS_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The conventions' buckets for MCP."""
