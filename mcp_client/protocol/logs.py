"""A server's log messages and their levels, bounded; it writes none of them anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from mcp_client.protocol.jsonrpc import canonical
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.texts import cut_text, short_text, text_of

__all__ = ["LogLevel", "LogMessage", "read_log"]


class LogLevel(Enum):
    """How much a message matters, from the least to the most: the levels of RFC 5424."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMessage:
    """One message of a server: untrusted.

    Attributes:
        level: how much it matters, as the server says.
        logger: what the server calls the place that it comes from; empty if it does not say.
        text: the data: a text as it is, any other JSON value as JSON. Cut at `log_chars_max`.
    """

    level: LogLevel
    logger: str
    text: str


def read_log(params: Mapping[str, object], limits: ClientLimits) -> LogMessage | None:
    """Read the params of `notifications/message`; None if they are malformed."""
    level = _LEVELS.get(text_of(params, "level"))
    if level is None or "data" not in params or not isinstance(params.get("logger"), str | None):
        return None
    data = params["data"]
    text = data if isinstance(data, str) else canonical(data).decode()
    return LogMessage(
        level=level,
        logger=short_text(params, "logger", limits.name_chars_max),
        text=cut_text(text, limits.log_chars_max),
    )


_LEVELS: Final[Mapping[str, LogLevel]] = {level.value: level for level in LogLevel}
