"""Globs, compiled: `*` for any characters, or within segments and `**` for any segments.

No regular expression is ever run: the time of a match is bounded by the product of both lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

__all__ = ["glob", "route"]


def glob(pattern: str) -> Callable[[str], bool]:
    """Return a test for a pattern with `*`."""
    prefix, *rest = pattern.split("*")
    if not rest:
        return lambda name: name == pattern
    *middle, suffix = rest
    if not middle and not suffix:
        return lambda name: name.startswith(prefix)
    shortest = len(prefix) + len(suffix)

    def match(name: str) -> bool:
        if len(name) < shortest or not name.startswith(prefix) or not name.endswith(suffix):
            return False
        position, end = len(prefix), len(name) - len(suffix)
        for piece in middle:
            found = name.find(piece, position, end)
            if found < 0:
                return False
            position = found + len(piece)
        return True

    return match


def route(pattern: Sequence[str]) -> Callable[[Sequence[str]], bool]:
    """Match segments as a glob matches characters: `**` is the star, and the last star retreats."""
    steps = [None if step == "**" else glob(step) for step in pattern]

    def match(segments: Sequence[str]) -> bool:
        at = step = 0
        star = retry = -1
        while at < len(segments):
            wanted = steps[step] if step < len(steps) else None
            if step < len(steps) and wanted is None:
                star, retry = step, at
                step += 1
            elif wanted is not None and wanted(segments[at]):
                at += 1
                step += 1
            elif star >= 0:
                retry += 1
                at, step = retry, star + 1
            else:
                return False
        return all(left is None for left in steps[step:])

    return match
