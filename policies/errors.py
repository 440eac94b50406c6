"""Where something stands in a policy file, and what is wrong there. Knows no rule of the language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

__all__ = ["Place", "PolicyError", "excerpt_of", "nearest_word"]

_EXCERPT_CHARS = 160
_CUTOFF = 0.6
_WORD_CHARS = 128


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a policy file. Lines and columns count from 1.

    Line 0 means that there is no file: a rule that is built in.
    """

    path: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if self.line else self.path


class PolicyError(Exception):
    """A policy that cannot be used as it is written. `str()` shows the line with a caret below it.

    Attributes:
        message: what is wrong, one line, without the place.
        place: where.
        expected: what could have stood there, in the words of the language; may be empty.
        nearest: the right word that the wrong one looks most like; empty if there is none.
        excerpt: the line of the source and a caret below the place; empty if unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        place: Place,
        expected: tuple[str, ...] = (),
        nearest: str = "",
        excerpt: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.expected = expected
        self.nearest = nearest
        self.excerpt = excerpt

    def __str__(self) -> str:
        column = f":{self.place.column}" if self.place.column else ""
        head = f"{self.place}{column}: {self.message}"
        if self.expected:
            head += f"; expected {_listed(self.expected)}"
        if self.nearest:
            head += f"; did you mean `{self.nearest}`?"
        return f"{head}\n{self.excerpt}" if self.excerpt else head


def nearest_word(word: str, candidates: Iterable[str]) -> str:
    """Return the candidate that `word` looks most like, or an empty string.

    Candidates of equal likeness are taken in the order of the alphabet, so that the same mistake
    always gets the same advice.
    """
    word = word[:_WORD_CHARS]
    by_folded = {candidate.casefold(): candidate for candidate in sorted(candidates, reverse=True)}
    letters = sorted(word.casefold())
    for folded in sorted(by_folded):
        # letters in the wrong order, as in `=<`
        if sorted(folded) == letters:
            return by_folded[folded]
    found = get_close_matches(word.casefold(), sorted(by_folded), n=1, cutoff=_CUTOFF)
    return by_folded[found[0]] if found else ""


def excerpt_of(text: str, place: Place) -> str:
    """Return the line of `text` at `place`, indented, with a caret below its column."""
    lines = text.split("\n")
    if not 1 <= place.line <= len(lines):
        return ""
    line = lines[place.line - 1].replace("\t", " ").rstrip("\r")
    column = min(max(place.column, 1), len(line) + 1)
    # a very long line is shown around the place only
    start = max(0, column - _EXCERPT_CHARS // 2)
    shown = line[start : start + _EXCERPT_CHARS]
    visible = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in shown)
    return f"    {visible}\n    {' ' * (column - 1 - start)}^"


def _listed(words: tuple[str, ...]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"
