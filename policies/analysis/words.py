"""Words that tell patterns apart: one for each way in which several patterns can match together.

A pattern is a text in which `*` stands for any characters. Such patterns are regular, so all that can
happen is found by walking through the product of their automata. Knows no policy.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

__all__ = ["STAR", "Pattern", "Words", "pattern_of", "words_for"]

STAR: Final = None
"""Stands for any characters, none included."""
Pattern: TypeAlias = tuple[str | None, ...]
"""Single characters and stars, in order."""

_OTHERS: Final = "xyzqwjk0123456789_abcdefghilmnoprstuv"


@dataclass(frozen=True, slots=True)
class Words:
    """Shortest words, no two of which match the same patterns; `complete` if they are all there are."""

    words: tuple[str, ...]
    complete: bool


_State: TypeAlias = frozenset[tuple[int, int]]
"""Positions in patterns that a word can have led to."""


def pattern_of(text: str, *, starts: bool = True, ends: bool = True, stars: bool = True) -> Pattern:
    """Return the pattern of a text. Without `starts` or `ends` anything may stand before or after it.

    Without `stars` a `*` is a character like others.
    """
    inner = tuple(STAR if stars and char == "*" else char for char in text)
    return (() if starts else (STAR,)) + inner + (() if ends else (STAR,))


def words_for(patterns: Iterable[Pattern], *, states_max: int, empty: bool = False) -> Words:
    """Return a word for each set of patterns that some word matches together, and no other.

    `states_max` bounds the work; beyond it what was found so far is returned, incomplete. The empty
    word is left out unless `empty`.
    """
    unique = list(dict.fromkeys(patterns))
    other = _other(unique)
    start = _closed(unique, {(at, 0) for at in range(len(unique))})
    found: dict[frozenset[int], str] = {}
    seen: set[_State] = {start}
    waiting: deque[tuple[_State, str]] = deque([(start, "")])
    while waiting:
        state, word = waiting.popleft()
        if word or empty:
            found.setdefault(_matched(unique, state), word)
        # characters that no pattern waits for all do the same: one stands for them
        for char in (*_awaited(unique, state), other):
            following = _closed(unique, _moved(unique, state, char))
            if following not in seen:
                if len(seen) >= states_max:
                    return Words(tuple(found.values()), complete=False)
                seen.add(following)
                waiting.append((following, word + char))
            elif not word and not empty:
                # back at the start, where the empty word was left out
                found.setdefault(_matched(unique, following), char)
    return Words(tuple(found.values()), complete=True)


def _other(patterns: Sequence[Pattern]) -> str:
    taken = {char for pattern in patterns for char in pattern}
    # private characters at the end: there are more of them than a pattern has characters
    spare = (chr(code) for code in range(0xE000, 0xF8FF))
    return next(char for char in chain(_OTHERS, spare) if char not in taken)


def _closed(patterns: Sequence[Pattern], state: set[tuple[int, int]]) -> _State:
    """Add what is reached without a character: the place behind a star."""
    reached = set(state)
    waiting = list(state)
    while waiting:
        at, position = waiting.pop()
        pattern = patterns[at]
        if (
            position < len(pattern)
            and pattern[position] is STAR
            and (at, position + 1) not in reached
        ):
            reached.add((at, position + 1))
            waiting.append((at, position + 1))
    return frozenset(reached)


def _moved(patterns: Sequence[Pattern], state: _State, char: str) -> set[tuple[int, int]]:
    moved: set[tuple[int, int]] = set()
    for at, position in state:
        pattern = patterns[at]
        if position < len(pattern):
            if pattern[position] is STAR:
                moved.add((at, position))
            elif pattern[position] == char:
                moved.add((at, position + 1))
    return moved


def _awaited(patterns: Sequence[Pattern], state: _State) -> list[str]:
    awaited = {
        char
        for at, position in state
        if position < len(patterns[at]) and (char := patterns[at][position]) is not None
    }
    return sorted(awaited)


def _matched(patterns: Sequence[Pattern], state: _State) -> frozenset[int]:
    return frozenset(at for at, position in state if position == len(patterns[at]))
