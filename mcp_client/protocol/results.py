"""The result of `tools/call`, checked by hand, block by block; it interprets nothing of it."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits

__all__ = ["QUARANTINED", "ToolResult", "read_tool_result"]

QUARANTINED: Final = "quarantined"
"""The `type` of a block that stands where a malformed one was; its `reason` is our own text."""


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
    """

    blocks: tuple[Mapping[str, object], ...]
    structured: object = None
    has_structured: bool = False
    is_error: bool = False

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
        blocks=tuple([_checked(block) for block in blocks]),
        structured=members.get("structuredContent"),
        has_structured=has_structured,
        is_error=is_error is True,
    )


def _broken(detail: str, server: str) -> RemoteProtocolError:
    return RemoteProtocolError(detail, server=server, stage="receive", delivery=Delivery.ANSWERED)


def _checked(block: object) -> Mapping[str, object]:
    members = as_object(block)
    if members is None:
        return _quarantine("a content block is an object")
    kind = members.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return _quarantine("a content block of an unknown type")
    reason = check(members)
    annotations = members.get("annotations")
    if not reason and annotations is not None and as_object(annotations) is None:
        reason = "the annotations of a content block are an object"
    return _quarantine(reason) if reason else members


def _quarantine(reason: str) -> Mapping[str, object]:
    return {"type": QUARANTINED, "reason": reason}


def _fault_of_text(block: Mapping[str, object]) -> str:
    return "" if isinstance(block.get("text"), str) else "a text block has a text"


def _fault_of_media(block: Mapping[str, object]) -> str:
    if not isinstance(block.get("mimeType"), str):
        return "an image or audio block has a mimeType"
    return "" if _is_base64(block.get("data")) else "an image or audio block has base64 data"


def _fault_of_link(block: Mapping[str, object]) -> str:
    has_both = isinstance(block.get("uri"), str) and isinstance(block.get("name"), str)
    return "" if has_both else "a resource link has a uri and a name"


def _fault_of_resource(block: Mapping[str, object]) -> str:
    resource = as_object(block.get("resource"))
    if resource is None or not isinstance(resource.get("uri"), str):
        return "an embedded resource has a uri"
    if isinstance(resource.get("text"), str):
        return ""
    return "" if _is_base64(resource.get("blob")) else "an embedded resource has a text or a blob"


def _is_base64(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except ValueError:  # binascii.Error is one, and so is what is not ASCII
        return False
    return True


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, object]], str]]] = {
    "text": _fault_of_text,
    "image": _fault_of_media,
    "audio": _fault_of_media,
    "resource_link": _fault_of_link,
    "resource": _fault_of_resource,
}
