"""What every answer of a gateway has: the mark beside content, why there is none, pages of lists."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from mcp.shared.exceptions import MCPError

from orchestrator.core.content import AUTHORITY, TRUST, UntrustedContent
from orchestrator.core.errors import AuthorityError, CallFailedError, RemitError
from orchestrator.surfaces.guests.limits import GuestLimits
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = [
    "CONTENT_KEY",
    "ERROR_KEY",
    "INVALID_CODE",
    "MARKED",
    "REFUSED_CODE",
    "as_protocol_error",
    "error_object",
    "mark_of",
    "page",
    "require",
    "told",
]

CONTENT_KEY: Final = "remit/content"
"""In `_meta` of a result: whose content it is, and that it has no authority."""
ERROR_KEY: Final = "remit/error"
"""In `_meta` of a failed call, and in the data of an error: why, and what the server has seen of it."""
REFUSED_CODE: Final = -32010
"""The JSON-RPC error of what was refused, or of any request to a snapshot that was taken back."""
INVALID_CODE: Final = -32602
"""The JSON-RPC error of a cursor that was not handed out."""
MARKED: Final = f'[trust="{TRUST}" authority="{AUTHORITY}"]'
"""Stands before each description of a server's."""

_LIMITS: Final = GuestLimits()


def mark_of(content: UntrustedContent) -> dict[str, object]:
    """Return the `_meta` of a result: where it came from, and that it may permit nothing."""
    origin = content.origin
    mark = {
        "trust": TRUST,
        "authority": AUTHORITY,
        "server": origin.server,
        "kind": origin.kind,
        "name": origin.name,
        "call": origin.call,
        "truncated": content.truncated,
    }
    return {"_meta": {CONTENT_KEY: mark}}


def told(error: RemitError) -> str:
    """Return an error as a model reads it. A server's own text is not part of it."""
    if isinstance(error, AuthorityError):
        said = f"reason: {error.reason.value}, delivery: {error.delivery.value}"
        return f"not done: {error.message} ({said})"
    if isinstance(error, CallFailedError):
        return f"failed: {error.message} (delivery: {error.delivery.value})"
    return f"not done: {error.message}"


def error_object(error: RemitError) -> dict[str, object]:
    """Return an error as a host's program reads it. A server's own text is not part of it."""
    said: dict[str, object] = {"code": error.code, "message": error.message, "fix": error.fix}
    if isinstance(error, AuthorityError):
        said |= {
            "reason": error.reason.value,
            "delivery": error.delivery.value,
            "bytes_sent": error.bytes_sent,
        }
    elif isinstance(error, CallFailedError):
        said |= {"server": error.server, "stage": error.stage, "delivery": error.delivery.value}
    return said


@contextmanager
def as_protocol_error() -> Generator[None]:
    """Turn an error of ours into one of JSON-RPC's, with why in its data."""
    try:
        yield
    except RemitError as error:
        raise MCPError(REFUSED_CODE, told(error), {ERROR_KEY: error_object(error)}) from None


def require(view: SnapshotView) -> None:
    """Raise the error that says that nothing is answered any more, unless the snapshot holds."""
    with as_protocol_error():
        view.require()


def page(
    items: Sequence[Mapping[str, object]],
    cursor: str | None,
    *,
    bytes_max: int = _LIMITS.page_bytes_max,
) -> tuple[list[Mapping[str, object]], str | None]:
    """Return the items from a cursor on that fit a page, one at least, and the cursor of the next."""
    start = 0
    if cursor is not None:
        if (
            not cursor.isdecimal()
            or len(cursor) > len(str(len(items)))
            or int(cursor) >= len(items)
        ):
            raise MCPError(INVALID_CODE, "there is no such page: list again from the start")
        start = int(cursor)
    found: list[Mapping[str, object]] = []
    size = 0
    for item in items[start:]:
        size += len(json.dumps(item))
        if found and size > bytes_max:
            return found, str(start + len(found))
        found.append(item)
    return found, None
