"""Every bound of MCP 2026-07-28 and of the extensions, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ModernLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernLimits:
    """The bounds of one connection, beside its `ClientLimits`. A test goes one past each of them.

    Sizes are bytes, times are seconds.
    """

    discover_seconds_max: float = 5.0
    """From asking a server for its era to taking its silence for an old one: half a person's patience."""
    supported_versions_max: int = 64
    """Versions that a server names: there are five so far."""
    extensions_max: int = 64
    """Extensions that a server declares; one with more declares none."""
    input_requests_max: int = 16
    """Questions of one unfinished answer: each may need a person."""
    input_key_chars_max: int = 256
    """A server's name for one of its questions, which is sent back as it came."""
    request_state_chars_max: int = 1024 * 1024
    """A server's state, which is kept and sent back: an eighth of a frame."""
    input_pause_seconds: float = 0.2
    """Before a request without questions is made again, doubled with each round."""
    input_rounds_max: int = 8
    """Unfinished answers to one request that are taken up without being asked to."""
    subscriptions_max: int = 16
    """Streams of notices on one connection: each may hold a socket."""
    subscribed_resources_max: int = 1_000
    """Resources of one stream of notices."""
    listen_seconds_max: float = 6 * 60 * 60
    """One stream of notices, before it is asked for anew: nothing waits for ever."""
    relisten_seconds_min: float = 1.0
    """Before a stream of notices that broke is asked for anew; doubled with each failure."""
    relistens_max: int = 8
    """Streams in a row that end soon; then nobody listens any more."""
    listen_settled_seconds: float = 60.0
    """A stream of notices that lasts so long is no failure when it ends."""
    cached_results_max: int = 512
    """Answers kept for their time to live."""
    cached_bytes_max: int = 32 * 1024 * 1024
    """Answers kept, by the size that they had on the wire: four of the largest frames."""
    cached_seconds_max: float = 60 * 60
    """An answer that is kept, however long its server says it lives."""
    task_id_chars_max: int = 1_024
    """A server's name for a task."""
    task_poll_seconds_min: float = 0.1
    """Between two questions after a task, however eager its server."""
    task_poll_seconds: float = 1.0
    """Between two questions after a task whose server does not say."""
    task_poll_seconds_max: float = 60.0
    """Between two questions after a task, however slow its server."""
    task_seconds_max: float = 60 * 60
    """From the start of a task to giving up on it, where the caller names no deadline."""
    skills_max: int = 1_000
    """Skills of one server."""
    skill_files_max: int = 1_000
    """Files of one skill; one with more is quarantined."""
    skill_file_bytes_max: int = 1024 * 1024
    """One file of a skill: text for a model, or a script."""
    frontmatter_bytes_max: int = 16 * 1024
    """The head of a SKILL.md: its description alone may have 1,024 characters."""
    frontmatter_nodes_max: int = 1_000
    """Values in the head of a SKILL.md."""
