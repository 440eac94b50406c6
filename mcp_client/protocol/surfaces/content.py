"""Content blocks of every kind, checked one by one by hand; it interprets and fetches nothing.

A block stays what was decoded: its annotations, `_meta` and unknown members are carried along.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Mapping
from typing import Final

from mcp_client.protocol.jsonrpc import as_object

__all__ = [
    "QUARANTINED",
    "checked_block",
    "fault_of_block",
    "fault_of_contents",
    "is_base64",
    "quarantined_block",
]

QUARANTINED: Final = "quarantined"
"""The `type` of a block that stands where a malformed one was; its `reason` is our own text."""


def checked_block(block: object) -> Mapping[str, object]:
    """Return the block, or `{"type": "quarantined", "reason": …}` if it is malformed."""
    reason = fault_of_block(block)
    members = as_object(block)
    return quarantined_block(reason) if reason or members is None else members


def quarantined_block(reason: str) -> Mapping[str, object]:
    """Return what stands in place of a malformed block."""
    return {"type": QUARANTINED, "reason": reason}


def fault_of_block(block: object) -> str:
    """Return what is wrong with a content block; empty if nothing is."""
    members = as_object(block)
    if members is None:
        return "a content block is an object"
    kind = members.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return "a content block of an unknown type"
    reason = check(members)
    annotations = members.get("annotations")
    if not reason and annotations is not None and as_object(annotations) is None:
        reason = "the annotations of a content block are an object"
    return reason


def fault_of_contents(resource: Mapping[str, object]) -> str:
    """Return what is wrong with the contents of a resource; empty if nothing is."""
    if not isinstance(resource.get("uri"), str):
        return "a resource has a uri"
    if not isinstance(resource.get("mimeType"), str | None):
        return "the mimeType of a resource is a text"
    if isinstance(resource.get("text"), str):
        return ""
    return "" if is_base64(resource.get("blob")) else "a resource has a text or a blob in base64"


def is_base64(value: object) -> bool:
    """Return whether a value is a text in base64, padding included."""
    if not isinstance(value, str):
        return False
    try:
        binascii.a2b_base64(value, strict_mode=True)
    except ValueError:  # binascii.Error is one, and so is what is not ASCII
        return False
    return True


def _fault_of_text(block: Mapping[str, object]) -> str:
    return "" if isinstance(block.get("text"), str) else "a text block has a text"


def _fault_of_media(block: Mapping[str, object]) -> str:
    if not isinstance(block.get("mimeType"), str):
        return "an image or audio block has a mimeType"
    return "" if is_base64(block.get("data")) else "an image or audio block has base64 data"


def _fault_of_link(block: Mapping[str, object]) -> str:
    has_both = isinstance(block.get("uri"), str) and isinstance(block.get("name"), str)
    return "" if has_both else "a resource link has a uri and a name"


def _fault_of_resource(block: Mapping[str, object]) -> str:
    resource = as_object(block.get("resource"))
    return "an embedded resource is an object" if resource is None else fault_of_contents(resource)


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, object]], str]]] = {
    "text": _fault_of_text,
    "image": _fault_of_media,
    "audio": _fault_of_media,
    "resource_link": _fault_of_link,
    "resource": _fault_of_resource,
}
