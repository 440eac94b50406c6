"""Every bound of the Agent Client Protocol, each with the reason for its value."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AcpLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AcpLimits:
    """The bounds of one connection with an editor. Sizes are bytes, times are seconds."""

    frame_bytes_max: int = 8 * 1024 * 1024
    """One JSON-RPC frame, in either direction; editors read lines of 10 MiB."""
    outbox_bytes_max: int = 32 * 1024 * 1024
    """Frames that an editor has not read yet: four of the largest. With more it is given up."""
    requests_open_max: int = 256
    """Requests of the editor that are at work at the same time, and again requests to it."""
    sessions_max: int = 32
    """Sessions that are open at the same time; each has processes of its own."""
    sessions_kept_max: int = 1_000
    """Sessions that can be loaded again; then the one that was used longest ago is forgotten."""
    sessions_page_max: int = 50
    """Sessions of one page of a list."""
    servers_max: int = 64
    """Servers that an editor hands to one session."""
    prompt_chars_max: int = 1024 * 1024
    """Texts of one prompt: more than any model reads at once."""
    prompt_blocks_max: int = 256
    """Blocks of one prompt."""
    chunk_chars_max: int = 64 * 1024
    """Text of one update; a longer answer is sent in several."""
    title_chars_max: int = 80
    """A session's title: the beginning of its first prompt."""
    input_chars_max: int = 16 * 1024
    """Arguments of one call that are shown; more than anybody reads."""
    result_chars_max: int = 16 * 1024
    """Text of one result that is shown; the agent was handed all of it."""
    locations_max: int = 16
    """Files of one call that an editor may follow."""
    lines_kept_max: int = 50
    """Lines that stand in the tool call of a subagent; the oldest go first."""
    plan_entries_max: int = 64
    """Entries of one plan: as many as there are agents below one."""
    refusals_max: int = 1_000
    """Refusals that hold for the rest of a session; then each further one holds once."""
    visits_max: int = 64
    """Visits of one session whose end the editor is told; then the oldest is not told of."""
    settle_seconds_max: float = 5.0
    """How long a cancelled turn is waited for before it is answered."""
