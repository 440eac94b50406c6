"""The right name for a misspelt one. Compares words; knows nothing of what they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["did_you_mean", "nearest"]

_CHARS_MAX: Final = 64
"""Longer words are not compared: nobody mistypes them, and the comparison is quadratic."""
_CANDIDATES_MAX: Final = 2_000
"""Candidates compared in full: a whole catalogue of misspellings must not stall an error."""
_LISTED_MAX: Final = 8
"""Names worth listing where none is near."""


def nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate that `word` was most likely meant to be, or None if none is near.

    Case and the choice between `-`, `_` and space count for nothing. Otherwise at most a third of
    the letters may be wrong, missing, extra or swapped; among equals the first by alphabet wins.
    """
    if len(word) > _CHARS_MAX:
        return None
    folded = _fold(word)
    budget = max(1, len(folded) // 3)
    best: tuple[int, str] | None = None
    compared = 0
    for candidate in sorted(set(candidates)):
        other = _fold(candidate)
        if other == folded:
            return candidate
        if abs(len(other) - len(folded)) > budget or compared == _CANDIDATES_MAX:
            continue
        compared += 1
        distance = _distance(folded, other)
        if distance <= budget and (best is None or distance < best[0]):
            best = (distance, candidate)
    return best[1] if best else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return advice for an error: the nearest name, else the few there are, else nothing."""
    known = sorted(set(candidates))
    near = nearest(word, known)
    if near is not None:
        return f"did you mean {near!r}?"
    if 0 < len(known) <= _LISTED_MAX:
        return "known here: " + ", ".join(known)
    return ""


def _fold(word: str) -> str:
    return word.casefold().replace("-", "_").replace(" ", "_")


def _distance(left: str, right: str) -> int:
    """Optimal string alignment: edits, and swaps of neighbours, between two short words."""
    before: list[int] = []
    above = list(range(len(right) + 1))
    for row, char in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            cost = min(
                above[column] + 1, current[column - 1] + 1, above[column - 1] + (char != other)
            )
            if row > 1 and column > 1 and char == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, above = above, current
    return above[-1]
