"""Every bound of the protocol's HTTP transports, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HttpTransportLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTransportLimits:
    """The bounds of one connection beside those of `ClientLimits`. A test goes one past each.

    Sizes are bytes, times are seconds.
    """

    session_id_chars_max: int = 1_024
    """A session id, which goes with every request: signed tokens are shorter."""
    error_body_bytes_max: int = 64 * 1024
    """The body of a response that is no success: enough for an error with its data."""
    reconnects_max: int = 8
    """Attempts in a row to get a broken stream back: of a request's stream, none of which brought
    anything; of the server's own, none of which lasted `settled_seconds`."""
    settled_seconds: float = 10.0
    """How long the server's own stream lasts that was worth its connection: one that is closed
    sooner costs a request each time, whatever it brought."""
    retry_seconds: float = 1.0
    """Before the first of them, where the server names no time; doubled with each further one."""
    retry_seconds_min: float = 0.1
    """The shortest wait, whatever the server names: it may name none at all, for ever."""
    retry_seconds_max: float = 60.0
    """The longest wait before an attempt, whatever the server names."""
    linger_seconds_max: float = 1.0
    """How long a stream may stay open after its answer: its end lets the connection be reused."""
