"""Conditions over arguments, in three values: true, false, and None for "has no value".

None comes from a missing argument or one of another type, and never turns into false by itself
(Kleene's strong logic). What None means for a rule is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from operator import ge, gt, le, lt
from typing import Final, TypeAlias, TypeGuard, assert_never, cast

from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Comparison,
    Condition,
    Exists,
    Not,
    OneOf,
    Pointer,
    Scalar,
    Template,
    Test,
    Under,
)
from policies.patterns import under

__all__ = ["MISSING", "Predicate", "compile_condition", "look_up", "tests_of", "type_name"]

Predicate: TypeAlias = Callable[[Mapping[str, object]], bool | None]
"""A compiled condition."""

MISSING: Final = object()
"""What `look_up` returns where there is nothing; JSON's null is something."""

_INDEX_DIGITS: Final = 9
_ORDER: Final = {
    Comparison.LESS: lt,
    Comparison.AT_MOST: le,
    Comparison.MORE: gt,
    Comparison.AT_LEAST: ge,
}


def compile_condition(condition: Condition, limits: PolicyLimits) -> Predicate:
    """Turn a condition into a function of the arguments. It never raises.

    Raises:
        PatternError: an `under` whose prefix is no path.
    """
    match condition:
        case Not():
            return _negation(compile_condition(condition.part, limits))
        case AllOf():
            parts = tuple(compile_condition(part, limits) for part in condition.parts)
            return _fold(parts, decisive=False)
        case AnyOf():
            parts = tuple(compile_condition(part, limits) for part in condition.parts)
            return _fold(parts, decisive=True)
        case Exists():
            keys = condition.pointer.keys
            return lambda arguments: look_up(arguments, keys) is not MISSING
        case Compare() | OneOf() | Between() | Under():
            return _at(condition.pointer, _value_test(condition, limits))
        case _:
            assert_never(condition)


def tests_of(condition: Condition) -> Iterator[Test]:
    """Yield each test of a condition, in the order in which they are written."""
    match condition:
        case Not():
            yield from tests_of(condition.part)
        case AllOf() | AnyOf():
            for part in condition.parts:
                yield from tests_of(part)
        case _:
            yield condition


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
        # a length bound first: int() of many thousand digits raises
        plain = len(key) <= _INDEX_DIGITS and key.isascii() and key.isdigit()
        if plain and (key == "0" or key[0] != "0") and int(key) < len(items):
            return items[int(key)]
    return MISSING


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


def _at(pointer: Pointer, test: Callable[[object], bool | None]) -> Predicate:
    if len(pointer.keys) == 1:
        key = pointer.keys[0]
        # MISSING is of no type, so each test answers None to it
        return lambda arguments: test(arguments.get(key, MISSING))
    keys = pointer.keys
    return lambda arguments: test(look_up(arguments, keys))


def _value_test(
    test: Compare | OneOf | Between | Under, limits: PolicyLimits
) -> Callable[[object], bool | None]:
    match test:
        case Compare(comparison=Comparison.EQUAL):
            return _equality(test.literal)
        case Compare(comparison=Comparison.NOT_EQUAL):
            equal = _equality(test.literal)
            return lambda value: None if (same := equal(value)) is None else not same
        case Compare():
            return _ordering(test.comparison, test.literal)
        case OneOf():
            return _membership(test.options)
        case Between():
            low, high = test.low, test.high
            return lambda value: low <= value <= high if _is_number(value) else None
        case Under():
            if isinstance(test.prefix, Template):
                raise TypeError("a template must be filled in before it is compiled")
            below = under(test.prefix, chars_max=limits.path_chars_max)
            return lambda value: below(value) if isinstance(value, str) else None
        case _:
            assert_never(test)


def _equality(literal: Scalar) -> Callable[[object], bool | None]:
    if literal is None:
        # the one comparison across types: it asks whether there is a value
        return lambda value: None if value is MISSING else value is None
    if isinstance(literal, bool):
        return lambda value: value is literal if isinstance(value, bool) else None
    if isinstance(literal, int | float):
        return lambda value: value == literal if _is_number(value) else None
    return lambda value: value == literal if isinstance(value, str) else None


def _ordering(comparison: Comparison, literal: Scalar) -> Callable[[object], bool | None]:
    if isinstance(literal, bool) or not isinstance(literal, int | float):
        raise TypeError("only numbers have an order")
    compare = _ORDER[comparison]
    return lambda value: compare(value, literal) if _is_number(value) else None


def _membership(options: tuple[Scalar, ...]) -> Callable[[object], bool | None]:
    by_type: dict[str, frozenset[object]] = {}
    for option in options:
        name = type_name(option)
        by_type[name] = by_type.get(name, frozenset()) | {option}

    def test(value: object) -> bool | None:
        known = by_type.get(type_name(value))
        return None if known is None else value in known

    return test


def _is_number(value: object) -> TypeGuard[int | float]:
    # type(), not isinstance: true and false are no numbers
    return type(value) is int or (isinstance(value, float) and isfinite(value))


def _negation(part: Predicate) -> Predicate:
    def negated(arguments: Mapping[str, object]) -> bool | None:
        answer = part(arguments)
        return None if answer is None else not answer

    return negated


def _fold(parts: tuple[Predicate, ...], *, decisive: bool) -> Predicate:
    """Join parts: one decisive answer decides; else None if one part has none."""

    def folded(arguments: Mapping[str, object]) -> bool | None:
        result: bool | None = not decisive
        for part in parts:
            answer = part(arguments)
            if answer is decisive:
                return decisive
            if answer is None:
                result = None
        return result

    return folded
