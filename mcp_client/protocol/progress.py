"""Progress of a request as a server reports it: one bounded value; it keeps no account of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.texts import cut_text

__all__ = ["Progress", "read_progress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a request has come, in the server's own measure; `message` is untrusted."""

    done: float
    total: float | None = None
    message: str = ""


def read_progress(params: Mapping[str, object], limits: ClientLimits) -> Progress | None:
    """Read the params of `notifications/progress`, its token apart; None if they are malformed."""
    done, total = params.get("progress"), params.get("total")
    message = params.get("message", "")
    if not _is_number(done) or not (total is None or _is_number(total)):
        return None
    if not isinstance(message, str):
        return None
    return Progress(
        done=done, total=total, message=cut_text(message, limits.peer_message_chars_max)
    )


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
