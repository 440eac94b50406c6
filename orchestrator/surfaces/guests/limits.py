"""Every bound on guests, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GuestLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestLimits:
    """The bounds of one guest. A test goes one past each. Sizes are bytes, times are seconds."""

    calls_waiting_max: int = 64
    """Calls of one guest that wait for others of it to end; each keeps its arguments in memory."""
    name_chars_max: int = 256
    """A tool's name that a guest made up, as it goes on record."""
    uri_chars_max: int = 8192
    """A URI that a guest asks for, the server's label with it; longer ones no server takes either."""
    answer_bytes_max: int = 7 * 1024 * 1024
    """One answer of the gateway, as JSON: with what is put around it, it is still one frame of MCP."""
    page_bytes_max: int = 1024 * 1024
    """One page of a list: eight tools with the largest schema there may be."""
    body_bytes_max: int = 4 * 1024 * 1024
    """One request over HTTP: four times the arguments of a call."""
    http_sessions_max: int = 16
    """Sessions of clients over HTTP: one program reconnects, and does not come in crowds."""
    http_connections_max: int = 64
    """Connections at a time: a call and a stream for each session, and some room."""
    http_idle_seconds_max: float = 1800.0
    """A session over HTTP without a request, after which its client has gone."""
    http_closing_seconds_max: float = 1.0
    """How long open answers are waited for when the gateway ends."""
