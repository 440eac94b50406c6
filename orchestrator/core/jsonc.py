"""JSON as editors write it: comments and trailing commas turned into blanks. Decodes nothing.

Every other character keeps its offset, so that an error still names the place a person sees.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["blank_comments"]

_TOKEN: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'  # a string: nothing in it is a comment
    r"|//[^\n\r]*+"
    r"|/\*.*?(?:\*/|\Z)"
    r"|,(?=(?:\s|//[^\n\r]*+|/\*.*?\*/)*+[}\]])",
    re.DOTALL,
)
_NOT_A_BREAK: Final = re.compile(r"[^\n\r]")


def blank_comments(text: str) -> str:
    """Return the text with each comment and each trailing comma replaced by as many blanks."""
    return _TOKEN.sub(_blanked, text)


def _blanked(match: re.Match[str]) -> str:
    found = match.group()
    return found if found.startswith('"') else _NOT_A_BREAK.sub(" ", found)
