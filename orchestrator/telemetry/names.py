"""The names of spans, attributes and metrics. Constants only: the conventions still move.

Source: OpenTelemetry's semantic conventions for generative AI and MCP, all in development. What
backends read today is written; where a name changed, both stand on the span.
"""

from __future__ import annotations

from typing import Final

INSTRUMENTATION: Final = "remit"

OPERATION: Final = "gen_ai.operation.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
"""The run, on every span: a backend that groups by it would leave the others out."""
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_ID: Final = "gen_ai.agent.id"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
PROVIDER: Final = "gen_ai.provider.name"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  # the name of an attribute
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
PROMPT_NAME: Final = "gen_ai.prompt.name"
MCP_METHOD: Final = "mcp.method.name"
MCP_VERSION: Final = "mcp.protocol.version"
JSONRPC_REQUEST_ID: Final = "jsonrpc.request.id"
RPC_STATUS: Final = "rpc.response.status_code"
NETWORK_TRANSPORT: Final = "network.transport"
NETWORK_PROTOCOL: Final = "network.protocol.name"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
ERROR_TYPE: Final = "error.type"

SERVER: Final = "remit.server"
"""The host's label of a server; the conventions have no name for it."""
AUTHORITY_DECISION: Final = "remit.authority.decision"
"""What the policy said: `permit`, `ask` or `forbid`; `error.type` says if it was refused."""
AUTHORITY_REASON: Final = "remit.authority.reason"
GENERATION: Final = "remit.authority.generation"
SNAPSHOT_ID: Final = "remit.authority.snapshot_id"
POLICY_DIGEST: Final = "remit.policy.digest"
POLICY_RULE: Final = "remit.policy.rule"
DELIVERY: Final = "remit.delivery"
"""What the server may have seen of a call that was refused."""
BYTES_SENT: Final = "remit.bytes_sent"
PARENT_ID: Final = "remit.subagent.parent_id"
DEPTH: Final = "remit.subagent.depth"
LIFETIME: Final = "remit.subagent.lifetime"
BUDGET_LEFT: Final = "remit.budget.{}.remaining"
TRUST_LABEL: Final = "remit.trust.label"

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
SESSION_SECONDS: Final = "mcp.client.session.duration"
CHAT_SECONDS: Final = "gen_ai.client.operation.duration"
AGENT_SECONDS: Final = "gen_ai.invoke_agent.duration"
AGENT_INFERENCE_CALLS: Final = "gen_ai.invoke_agent.inference_calls"
AGENT_TOOL_CALLS: Final = "gen_ai.invoke_agent.tool_calls"
TOOL_SECONDS: Final = "gen_ai.execute_tool.duration"
TOKENS: Final = "gen_ai.client.token.usage"
DENIALS: Final = "remit.authority.denials"
DENIAL_REASON: Final = "reason"
APPROVALS_PENDING: Final = "remit.approvals.pending"
SECONDS_BUCKETS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""The conventions' buckets for MCP."""
COUNT_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""For calls of one agent."""
TOKEN_BUCKETS: Final = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)
"""The conventions' buckets for tokens, as far as requests go."""
