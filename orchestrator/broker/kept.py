"""Results as bytes, so that one can be kept and be handed over once more. Opens no file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mcp_client.protocol.jsonrpc import encode, reread
from orchestrator.core.content import Origin, UntrustedContent
from orchestrator.core.ids import CallId, ServerName

__all__ = ["content_bytes", "kept_content", "kept_value", "value_bytes"]

_DEPTH_MAX = 256
"""Past what any result can hold, within its envelope."""


def content_bytes(content: UntrustedContent) -> bytes:
    """Return a result as bytes. Raises LocalProtocolError for what is no result of a server's."""
    origin = content.origin
    return value_bytes(
        {
            "server": origin.server,
            "kind": origin.kind,
            "name": origin.name,
            "call": origin.call,
            "blocks": list(content.blocks),
            "structured": content.structured,
            "is_error": content.is_error,
            "truncated": content.truncated,
        }
    )


def kept_content(data: bytes) -> UntrustedContent:
    """Return what `content_bytes` was handed. It is as untrusted as it was."""
    value = cast("Mapping[str, Any]", reread(data))
    return UntrustedContent(
        origin=Origin(
            server=ServerName(value["server"]),
            kind=value["kind"],
            name=value["name"],
            call=CallId(value["call"]),
        ),
        blocks=tuple(value["blocks"]),
        structured=value["structured"],
        is_error=value["is_error"],
        truncated=value["truncated"],
    )


def value_bytes(value: object) -> bytes:
    """Return JSON values as canonical bytes."""
    return encode(value, depth_max=_DEPTH_MAX)


def kept_value(data: bytes) -> object:
    """Return what `value_bytes` was handed."""
    return reread(data)
