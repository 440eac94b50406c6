"""What a request of the protocol ends with, if not with a result. Knows no session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.core.display import safe_line, safe_text
from orchestrator.core.errors import ConfigError, RemitError
from policies import PolicyError

__all__ = [
    "CANCELLED",
    "INTERNAL",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "NOT_FOUND",
    "PARSE",
    "RequestError",
    "request_error",
]

PARSE: Final = -32700
"""A line that is no JSON."""
INVALID_REQUEST: Final = -32600
"""JSON that is no message, or one that may not come now."""
METHOD_NOT_FOUND: Final = -32601
"""A method that is not known."""
INVALID_PARAMS: Final = -32602
"""Params that are not as the method has them."""
INTERNAL: Final = -32603
"""Anything else that went wrong here."""
NOT_FOUND: Final = -32002
"""A session that is not there."""
CANCELLED: Final = -32800
"""A request that was cancelled."""


class RequestError(Exception):
    """An error of JSON-RPC: what an editor is answered, or what it answered."""

    def __init__(self, code: int, message: str, data: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def to_json(self) -> dict[str, object]:
        """Return the object of the frame."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = dict(self.data)
        return error


def request_error(error: RemitError | PolicyError) -> RequestError:
    """Return how an error of ours is told: its code, what happened, why, and what mends it."""
    if isinstance(error, PolicyError):
        return _told(
            INVALID_PARAMS, "E-POLICY", f"{error.place}: {error.message}", error.excerpt, ""
        )
    code = INVALID_PARAMS if isinstance(error, ConfigError) else INTERNAL
    return _told(code, error.code, error.message, error.why, error.fix)


def _told(number: int, code: str, message: str, why: str, fix: str) -> RequestError:
    shown = safe_line(message, reveal=True)
    details = [safe_text(why, reveal=True), fix and f"fix: {safe_text(fix, reveal=True)}"]
    # `reason` and `details` are what editors show
    return RequestError(
        number,
        f"{code}: {shown}",
        {
            "code": code,
            "reason": shown,
            "details": "\n".join(text for text in details if text),
            "fix": safe_text(fix, reveal=True),
        },
    )
