"""Percent escapes, decoded once. Knows neither URIs nor paths."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ESCAPE", "HOSTILE", "decoded"]

HOSTILE: Final = re.compile(r"[\x00-\x1f\x7f\\]")
"""Characters that two programs take for different things: controls, and the backslash."""
ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
"""One escape."""


def decoded(text: str) -> str | None:
    """Decode percent escapes once; None if that is no text."""
    if "%" not in text:
        return text
    try:
        return ESCAPE.sub(lambda m: bytes((int(m[1], 16),)), text.encode()).decode()
    except UnicodeError:
        return None
