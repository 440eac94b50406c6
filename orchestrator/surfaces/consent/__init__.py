"""Asks the person at this terminal: about calls, files, tools, forms, addresses. What belongs to it stands here."""

from __future__ import annotations

from orchestrator.surfaces.consent.terminal import (
    FIELD_BYTES_MAX,
    ITEM_LINES_MAX,
    TRIES_MAX,
    TerminalApprover,
)
from orchestrator.surfaces.consent.words import (
    ARGUMENT_CHARS_MAX,
    ARGUMENT_LINES_MAX,
    Keep,
    always_lines,
    approval_lines,
    elicitation_lines,
    sampling_lines,
)

__all__ = [
    "ARGUMENT_CHARS_MAX",
    "ARGUMENT_LINES_MAX",
    "FIELD_BYTES_MAX",
    "ITEM_LINES_MAX",
    "TRIES_MAX",
    "Keep",
    "TerminalApprover",
    "always_lines",
    "approval_lines",
    "elicitation_lines",
    "sampling_lines",
]
