"""Every bound of the HTTP engine, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HttpLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpLimits:
    """The bounds of one engine. A test goes one past each of them.

    Sizes are bytes, times are seconds. How long a response body may be is for whoever reads it:
    the engine hands bytes on and keeps none.
    """

    head_bytes_max: int = 64 * 1024
    """A response's status line and headers: four times what common servers send at most."""
    header_count_max: int = 256
    """Headers of one response, and again its trailers: twice what common servers allow."""
    informational_max: int = 16
    """1xx responses before the real one: a server has reason to send two or three."""
    chunk_line_bytes_max: int = 256
    """One chunk's size with its extensions: sixteen digits, and an extension nobody reads."""
    chunk_extension_bytes_max: int = 16 * 1024
    """The extensions of all chunks of one response: paid for in bytes that carry nothing."""
    request_head_bytes_max: int = 64 * 1024
    """A request's line and headers, so that the head and its body's beginning are one write."""
    request_body_bytes_max: int = 8 * 1024 * 1024
    """A request's body: one frame of the protocol."""
    first_write_bytes_max: int = 64 * 1024
    """Bytes under one check: of the body beside the head, and of plaintext encrypted at a time."""
    exchanges_max: int = 2_048
    """Exchanges of one engine not yet over: two connections' worth of pending requests."""
    connections_per_origin_max: int = 256
    """Connections to one origin under one credential: the most callers that we measure with."""
    idle_connections_max: int = 256
    """Connections kept open for later, over all origins."""
    requests_per_connection_max: int = 10_000
    """Requests after which a connection is closed, so that balancers get to move us."""
    idle_seconds_max: float = 60.0
    """How long a connection waits for its next request where the server says how long it waits."""
    idle_seconds_unstated: float = 4.0
    """The same where it does not say. Common servers close after five, and a request that meets
    the close may have been executed: nobody can send it again."""
    connect_seconds_max: float = 15.0
    """From the first look-up to a connection that is ready: a SYN lost twice, and a handshake."""
    addresses_max: int = 8
    """Addresses of one name that are tried, one after the other."""
    resolver_threads_max: int = 4
    """Names looked up at once; others wait."""
