"""JSON values as conditions see them: what a pointer points at, its type, all that is inside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final, TypeGuard, cast

__all__ = ["MISSING", "inside", "is_index", "is_number", "look_up", "type_name"]

MISSING: Final = object()
"""What `look_up` returns where there is nothing; JSON's null is something."""

_INDEX_DIGITS: Final = 9


def look_up(arguments: Mapping[str, object], keys: Sequence[str]) -> object:
    """Return what a pointer points at, or `MISSING`. Array indices are written without zeros."""
    here: object = arguments
    for key in keys:
        here = _step(here, key)
        if here is MISSING:
            break
    return here


def _step(here: object, key: str) -> object:
    if isinstance(here, Mapping):
        return cast("Mapping[str, object]", here).get(key, MISSING)
    if isinstance(here, list | tuple):
        items = cast("Sequence[object]", here)
        if is_index(key) and int(key) < len(items):
            return items[int(key)]
    return MISSING


def is_index(key: str) -> bool:
    """Return True if a pointer's key may be one of an array: digits without a zero before them."""
    # a length bound first: int() of many thousand digits raises
    plain = len(key) <= _INDEX_DIGITS and key.isascii() and key.isdigit()
    return plain and (key == "0" or key[0] != "0")


def type_name(value: object) -> str:
    """Return JSON's word for the type of a value; `missing` for `MISSING`."""
    if value is MISSING:
        return "missing"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if isinstance(value, int) or isfinite(value) else "not a number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    return "array" if isinstance(value, list | tuple) else "unknown"


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a finite number; true and false are none."""
    # type(), not isinstance: true and false are no numbers
    return type(value) is int or (isinstance(value, float) and isfinite(value))


def inside(arguments: Mapping[str, object]) -> Iterator[object]:
    """Yield every value at any depth, the names of members among them; not the arguments themselves."""
    waiting: list[object] = [arguments]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Mapping):
            for key, value in cast("Mapping[str, object]", here).items():
                yield key
                yield value
                waiting.append(value)
        elif isinstance(here, list | tuple):
            for value in cast("Sequence[object]", here):
                yield value
                waiting.append(value)
