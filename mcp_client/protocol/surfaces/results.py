"""The result of `tools/call`, checked by hand, block by block; it interprets nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.content import checked_block

__all__ = ["Blocks", "ToolResult", "checked_result", "read_tool_result"]

Blocks: TypeAlias = tuple[Mapping[str, object], ...]
"""Content blocks as decoded, malformed ones replaced."""


# one for each call, and frozen it takes three times as long: the type checker keeps it as it is
@dataclass(frozen=TYPE_CHECKING, slots=True, kw_only=True)
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

    blocks: Blocks
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
    members, blocks, is_error = checked_result(result, limits, server)
    return ToolResult(
        blocks=blocks,
        structured=members.get("structuredContent"),
        has_structured="structuredContent" in members,
        is_error=is_error,
        meta=as_object(members.get("_meta")) or {},
    )


def checked_result(
    result: object, limits: ClientLimits, server: str
) -> tuple[Mapping[str, object], Blocks, bool]:
    """Check a decoded result as `read_tool_result` does; return its members, blocks and is_error.

    For those who make a value of their own of it.
    """
    if not isinstance(result, dict):
        raise _broken("a result is an object", server)
    members: dict[str, object] = result  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    # some servers leave `content` out where there is structured content
    content = members.get("content")
    if content is None and "content" not in members and "structuredContent" in members:
        content = []
    if not isinstance(content, list):
        raise _broken("the content of a result is an array", server)
    blocks: list[object] = content  # pyright: ignore[reportUnknownVariableType]  # a cast is a call
    if len(blocks) > limits.content_blocks_max:
        raise _broken(f"a result has more than {limits.content_blocks_max} blocks", server)
    is_error = members.get("isError")
    # null is what some servers write where they mean nothing
    if is_error is not None and not isinstance(is_error, bool):
        raise _broken("isError is true or false", server)
    sound: list[Mapping[str, object]] = []
    for block in blocks:
        if isinstance(block, dict):
            known: dict[str, object] = block  # pyright: ignore[reportUnknownVariableType]  # as above
            # nearly all blocks there are are a text, of which this is all that can be wrong
            if (
                known.get("type") == "text"
                and isinstance(known.get("text"), str)
                and "annotations" not in known
            ):
                sound.append(known)
                continue
        sound.append(checked_block(block))  # pyright: ignore[reportUnknownArgumentType]
    return members, tuple(sound), is_error is True


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)
