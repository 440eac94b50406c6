"""What agents do, shown as it happens: a live tree, plain lines, or nothing."""

from __future__ import annotations

from orchestrator.surfaces.progress.board import AgentRow, Board
from orchestrator.surfaces.progress.lines import event_line
from orchestrator.surfaces.progress.shells import (
    HELD_LINES_MAX,
    Progress,
    ProgressStyle,
    open_progress,
    style_for,
)

__all__ = [
    "HELD_LINES_MAX",
    "AgentRow",
    "Board",
    "Progress",
    "ProgressStyle",
    "event_line",
    "open_progress",
    "style_for",
]
