"""JSON values whose RFC 8785 form the standard library writes as well, and many times faster. It decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, cast

__all__ = ["plain_bytes"]

_DEPTH_MAX: Final = 64
"""What is nested deeper is left to the slow writer, which tells what is too deep."""
_INT_MAX: Final = 2**53 - 1
"""RFC 8785, 3.2.2.3: what a double holds exactly."""
_LEAVES: Final = frozenset({str, bool, type(None)})
_ONLY_TEXT: Final = frozenset({str})

_write: Final = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode


def plain_bytes(value: object) -> bytes | None:
    """Return the RFC 8785 form of a value; None where only a writer of that form knows it.

    That is where numbers are floats, which ECMAScript writes in its own way, or beyond 2**53, where
    names are not ASCII, which may be sorted otherwise, and where a value is no JSON. Raises ValueError
    for lone surrogates, which have no form.
    """
    level: list[object] = [value]
    for _ in range(_DEPTH_MAX):
        below: list[object] = []
        for item in level:
            children = _children(item)
            if children is None:
                return None
            below += [child for child in children if type(child) not in _LEAVES]
        if not below:
            return _write(value).encode()
        level = below
    return None


def _children(item: object) -> Iterable[object] | None:
    """Return what is in a plain object, array or number; None for anything that is not plain."""
    kind = type(item)
    if kind is dict:
        members = cast("dict[object, object]", item)
        if not _ONLY_TEXT.issuperset(map(type, members)):
            return None
        names = "".join(cast("dict[str, object]", members))
        return members.values() if names.isascii() else None
    if kind is list:
        return cast("list[object]", item)
    if kind is int:
        return () if -_INT_MAX <= cast("int", item) <= _INT_MAX else None
    return () if kind in _LEAVES else None
