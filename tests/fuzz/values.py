"""JSON values made of any bytes, rich in the words of the protocol, so that readers get far."""

from __future__ import annotations

from typing import Any, Final

from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import decode
from mcp_client.protocol.limits import ClientLimits

__all__ = ["WORDS", "value_of"]

_LIMITS = ClientLimits()
_DEPTH = 12
_TEXT: Final = """jsonrpc id method params result error code message data name title description uri
uriTemplate mimeType size inputSchema outputSchema type object properties required items enum
enumNames oneOf anyOf allOf const format default minLength maxLength minimum maximum minItems
maxItems pattern $ref $defs $schema x-mcp-header string integer number boolean array null content
contents text blob image audio resource resource_link messages role user assistant arguments
structuredContent isError annotations audience priority lastModified icons src sizes theme _meta
completion values total hasMore level logger info debug mode form url requestedSchema elicitations
elicitationId maxTokens systemPrompt stopSequences temperature modelPreferences hints
costPriority tools toolChoice tool_use tool_result toolUseId input includeContext thisServer
capabilities protocolVersion serverInfo version instructions listChanged subscribe nextCursor
tasks taskId status working completed failed input_required cancelled ttl ttlMs pollInterval
pollIntervalMs createdAt statusMessage resultType inputRequests requestState supportedVersions
supported requested cacheScope public private extensions io.modelcontextprotocol/tasks
progressToken progress notifications/progress notifications/message notifications/cancelled
notifications/tools/list_changed requestId reason ping roots/list sampling/createMessage
elicitation/create frontmatter files digest sha256: SKILL.md skill://a/SKILL.md
io.modelcontextprotocol/subscriptionId toolsListChanged resourceSubscriptions taskIds
execution taskSupport optional forbidden https://a.example/x http://127.0.0.1/ file:///a {a} {?b*}
AAAA email date date-time 2025-11-25 2026-07-28 2.0
http://json-schema.org/draft-07/schema# \x1b[31m \x00 \u202e"""
WORDS: Final = tuple(_TEXT.split())


def value_of(data: bytes) -> Any:
    """Return the JSON value that the bytes are; where they are none, one that they describe."""
    try:
        return decode(data, _LIMITS)
    except RemoteProtocolError:
        return _Maker(data).value(0)


class _Maker:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def value(self, depth: int) -> Any:
        byte = self._byte()
        kind, more = byte & 7, byte >> 3
        if depth >= _DEPTH and kind < 4:
            kind = 7
        match kind:
            case 0 | 1 | 2:
                return {self._word(): self.value(depth + 1) for _ in range(more % 9)}
            case 3:
                return [self.value(depth + 1) for _ in range(more % 6)]
            case 4:
                return (None, True, False, 0, 1, -1, 0.5, 1e308, 10**30, -(10**400) + 1)[more % 10]
            case 5:
                return self._word() * (1, 1, 1, 1, 50, 300)[more % 6]
            case 6:
                return self._byte() * 256 + self._byte()
            case _:
                return self._word()

    def _word(self) -> str:
        return WORDS[self._byte() % len(WORDS)]
