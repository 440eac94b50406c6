"""What an agent may answer: plain JSON values within bounds, copied. Judges no content."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from orchestrator.core.errors import RemitError

__all__ = ["plain_answer"]

_INTEGER_BITS_MAX = 1_024
"""Longer integers take quadratic time to write down."""


def plain_answer(value: object, *, bytes_max: int, depth_max: int) -> object:
    """Return a copy of `value` made of dicts, lists, strings, numbers, booleans and None.

    Tuples become lists. Raises RemitError: `E-ANSWER-TYPE` for anything else, with its path;
    `E-ANSWER-SIZE` past `bytes_max` bytes of JSON (as a lower bound: escapes are not counted) or
    `depth_max` lists and objects inside one another.
    """
    return _Copy(bytes_max, bytes_max, depth_max).of(value, "", 0)


@dataclass(slots=True)
class _Copy:
    left: int
    bytes_max: int
    depth_max: int

    def of(self, value: object, path: str, depth: int) -> object:
        if depth == self.depth_max and isinstance(value, list | tuple | Mapping):
            raise _too_large(f"nested more than {self.depth_max} deep")
        match value:
            case None | bool():
                self._take(4)
                return value
            case str():
                self._take(_utf8_length(value, path) + 2)
                return str(value)
            case int() if value.bit_length() <= _INTEGER_BITS_MAX:
                self._take(len(str(value)))
                return int(value)
            case float() if math.isfinite(value):
                self._take(len(repr(value)))
                return float(value)
            case list() | tuple():
                self._take(2)
                items = cast("Iterable[object]", value)
                return [
                    self._item(item, f"{path}/{index}", depth) for index, item in enumerate(items)
                ]
            case Mapping():
                self._take(2)
                return self._object(cast("Mapping[object, object]", value), path, depth)
            case _:
                raise _wrong_type(path, f"a {type(value).__name__} is not a JSON value")

    def _object(self, value: Mapping[object, object], path: str, depth: int) -> dict[str, object]:
        copy: dict[str, object] = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise _wrong_type(path, f"a key is a {type(key).__name__}, not a string")
            self._take(_utf8_length(key, path) + 3)
            copy[str(key)] = self._item(item, f"{path}/{key[:64]}", depth)
        return copy

    def _item(self, value: object, path: str, depth: int) -> object:
        self._take(1)
        return self.of(value, path, depth + 1)

    def _take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise _too_large(f"more than {self.bytes_max} bytes")


def _utf8_length(text: str, path: str) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise _wrong_type(path, "a string has half of a surrogate pair") from None


def _wrong_type(path: str, why: str) -> RemitError:
    return RemitError(
        "the answer cannot be kept",
        code="E-ANSWER-TYPE",
        why=f"{why} (at {path or 'the top'})",
        fix="answer with dicts, lists, strings, finite numbers, booleans and None",
    )


def _too_large(why: str) -> RemitError:
    return RemitError(
        "the answer is too large",
        code="E-ANSWER-SIZE",
        why=why,
        fix="answer with what matters, and write the rest to a file through a tool",
    )
