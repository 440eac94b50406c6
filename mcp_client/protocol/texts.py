"""A server's texts, cut to their bounds and marked where they were; it knows no message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["CUT_MARK", "cut_text", "short_text", "text_of"]

CUT_MARK: Final = " […cut]"
"""Stands at the end of a server's text that was over its bound."""


def cut_text(text: str, chars_max: int) -> str:
    """Return a server's text within its bound, the mark of the cut included."""
    if len(text) <= chars_max:
        return text
    return text[: max(0, chars_max - len(CUT_MARK))] + CUT_MARK


def text_of(members: Mapping[str, object], name: str) -> str:
    """Return a member that is a text; empty if there is none or it is something else."""
    text = members.get(name)
    return text if isinstance(text, str) else ""


def short_text(members: Mapping[str, object], name: str, chars_max: int) -> str:
    """Return a member that is a text, cut; empty if there is none or it is something else."""
    return cut_text(text_of(members, name), chars_max)
