"""The result of `tools/call`, checked by hand, block by block; it interprets nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeGuard, cast

from mcp_client.protocol.content import checked_block
from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits

__all__ = ["ToolResult", "read_tool_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool returned: untrusted.

    Attributes:
        blocks: the content blocks as decoded; `{"type": "quarantined", "reason": …}` in place of
            each that is malformed.
        structured: `structuredContent`, any JSON value; look at `has_structured` first, since
            null and false are values.
        has_structured: whether the server sent `structuredContent`.
        is_error: the tool says that it failed.
        meta: `_meta`, as decoded.
    """

    blocks: tuple[Mapping[str, object], ...]
    structured: object = None
    has_structured: bool = False
    is_error: bool = False
    meta: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines; other blocks are left out."""
        parts = (block.get("text") for block in self.blocks if block.get("type") == "text")
        return "\n".join(part for part in parts if isinstance(part, str))


def read_tool_result(result: object, limits: ClientLimits, *, server: str = "") -> ToolResult:
    """Check a decoded result. Raises RemoteProtocolError if it is none; a bad block is replaced."""
    members = as_object(result)
    if members is None:
        raise _broken("a result is an object", server)
    has_structured = "structuredContent" in members
    # some servers leave `content` out where there is structured content
    content = members.get("content", [] if has_structured else None)
    if not isinstance(content, list):
        raise _broken("the content of a result is an array", server)
    blocks = cast("list[object]", content)
    if len(blocks) > limits.content_blocks_max:
        raise _broken(f"a result has more than {limits.content_blocks_max} blocks", server)
    is_error = members.get("isError")
    # null is what some servers write where they mean nothing
    if not isinstance(is_error, bool | None):
        raise _broken("isError is true or false", server)
    return ToolResult(
        blocks=tuple([block if _is_text(block) else checked_block(block) for block in blocks]),
        structured=members.get("structuredContent"),
        has_structured=has_structured,
        is_error=is_error is True,
        meta=as_object(members.get("_meta")) or {},
    )


def _is_text(block: object) -> TypeGuard[Mapping[str, object]]:
    """Say at once of nearly all blocks there are that nothing is wrong with them."""
    members = as_object(block)
    return (
        members is not None
        and members.get("type") == "text"
        and isinstance(members.get("text"), str)
        and "annotations" not in members
    )


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
