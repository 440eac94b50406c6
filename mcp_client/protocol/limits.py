"""Every bound of the client, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """The bounds of one connection. A test goes one past each of them.

    Sizes are bytes, times are seconds.
    """

    frame_bytes_max: int = 8 * 1024 * 1024
    """One JSON-RPC frame, in either direction, its newline not counted."""
    nesting_depth_max: int = 64
    """Arrays and objects inside one another in a frame: deeper than any real schema."""
    noise_lines_max: int = 10_000
    """Lines on stdout that are not JSON-RPC: skipped and counted up to here, then the connection ends."""
    pending_requests_max: int = 1_024
    """Requests of one connection in flight: four times the most callers that we measure with."""
    batch_messages_max: int = 256
    """Messages of one array, at the one version that has arrays: a quarter of the calls in flight."""
    outbox_bytes_max: int = 32 * 1024 * 1024
    """Frames queued and not yet written: four of the largest."""
    flush_bytes_max: int = 64 * 1024
    """Frames joined into one write: the usual size of a pipe's buffer."""
    pages_max: int = 1_000
    """Pages of one listing."""
    cursor_chars_max: int = 8_192
    """A cursor of a listing, which is sent back as it came and remembered to find loops."""
    tools_max: int = 20_000
    """Tools of one server."""
    description_chars_max: int = 16_384
    """A tool's description; longer ones are cut, and marked as cut."""
    instructions_chars_max: int = 16_384
    """A server's instructions; longer ones are cut, and marked as cut."""
    name_chars_max: int = 256
    """A tool's name: twice what the specification recommends; a longer one quarantines the tool."""
    schema_bytes_max: int = 256 * 1024
    """One tool's input schema; a larger one quarantines the tool."""
    content_blocks_max: int = 1_000
    """Content blocks of one result."""
    peer_message_chars_max: int = 4_096
    """A server's own error text."""
    stderr_tail_bytes_max: int = 16 * 1024
    """The end of stderr that is kept."""
    peer_requests_max: int = 64
    """Requests from the server that wait for our answer."""
    initialize_seconds_max: float = 30.0
    """From the start of a server to its answer to `initialize`: slow interpreters on slow disks."""
    request_seconds_max: float = 60.0
    """From sending a request to its answer, where the caller names no deadline."""
    progress_seconds_max: float = 600.0
    """From sending a request to its end, however much progress resets the clock until then."""
    close_seconds_max: float = 2.0
    """Between end of input and SIGTERM, and again between SIGTERM and SIGKILL."""
