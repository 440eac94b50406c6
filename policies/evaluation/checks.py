"""What one value is held against, compiled: true, false, and None for "has no value".

None comes from a missing value or one of another type, and never turns into false by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import ge, gt, le, lt
from typing import Final, TypeAlias, assert_never

from policies.evaluation.values import MISSING, is_number, type_name
from policies.limits import PolicyLimits
from policies.model import (
    Between,
    Check,
    Compare,
    Comparison,
    Exists,
    Host,
    JsonType,
    Length,
    Network,
    OneOf,
    PathLike,
    Scalar,
    Template,
    Text,
    TextMatch,
    TypeIs,
    Under,
)
from policies.patterns import glob, host_in, network_in, path_like, under

__all__ = ["ValueTest", "about", "compile_check"]

ValueTest: TypeAlias = Callable[[object], bool | None]
"""A compiled check. It never raises; `MISSING` has no value, except to `exists`."""

_ORDER: Final = {
    Comparison.LESS: lt,
    Comparison.AT_MOST: le,
    Comparison.MORE: gt,
    Comparison.AT_LEAST: ge,
}
_STRING: Final = frozenset({"string"})


def compile_check(check: Check, limits: PolicyLimits) -> ValueTest:
    """Turn a check into a function of a value.

    Raises:
        PatternError: a path, host or network that is none.
    """
    match check:
        case Compare():
            return _comparison(check)
        case OneOf():
            return _membership(check.options)
        case Between():
            low, high = check.low, check.high
            return lambda value: low <= value <= high if is_number(value) else None
        case Length():
            return _length(check)
        case TypeIs():
            return _type(check.type)
        case Exists():
            return lambda value: value is not MISSING
        case _:
            return _of_string(_string_test(check, limits))


def about(check: Check) -> frozenset[str] | None:
    """Return the types that a check is about, by `type_name`; None if it is about any."""
    match check:
        case Compare(literal=None) | TypeIs() | Exists():
            return None
        case Compare():
            return frozenset({type_name(check.literal)})
        case OneOf():
            return frozenset(type_name(option) for option in check.options)
        case Between():
            return frozenset({"number"})
        case Under() | PathLike() | Text() | Host() | Network():
            return _STRING
        case Length():
            return frozenset({"string", "array", "object"})
        case _:
            assert_never(check)


def _filled(text: str | Template) -> str:
    if isinstance(text, Template):
        raise TypeError("a template must be filled in before it is compiled")
    return text


def _string_test(
    check: Under | PathLike | Text | Host | Network, limits: PolicyLimits
) -> Callable[[str], bool | None]:
    match check:
        case Under():
            return under(_filled(check.prefix), chars_max=limits.path_chars_max)
        case PathLike():
            return path_like(_filled(check.pattern), chars_max=limits.path_chars_max)
        case Text():
            return _text(check.match, _filled(check.text))
        case Host():
            return host_in(map(_filled, check.hosts), chars_max=limits.host_chars_max)
        case Network():
            return network_in(map(_filled, check.networks), chars_max=limits.host_chars_max)
        case _:
            assert_never(check)


def _of_string(test: Callable[[str], bool | None]) -> ValueTest:
    return lambda value: test(value) if isinstance(value, str) else None


def _text(match: TextMatch, text: str) -> Callable[[str], bool]:
    match match:
        case TextMatch.STARTS:
            return lambda value: value.startswith(text)
        case TextMatch.ENDS:
            return lambda value: value.endswith(text)
        case TextMatch.CONTAINS:
            return lambda value: text in value
        case TextMatch.LIKE:
            return glob(text)
        case _:
            assert_never(match)


def _length(check: Length) -> ValueTest:
    low, high = check.low, check.high

    def test(value: object) -> bool | None:
        if not isinstance(value, str | list | tuple | Mapping):
            return None
        length = len(value)  # pyright: ignore[reportUnknownArgumentType]  # only counted
        return low <= length and (high is None or length <= high)

    return test


def _type(wanted: JsonType) -> ValueTest:
    if wanted is JsonType.INTEGER:
        return lambda value: None if value is MISSING else is_number(value) and value == value // 1
    word = wanted.value
    return lambda value: None if value is MISSING else type_name(value) == word


def _equality(literal: Scalar) -> ValueTest:
    if literal is None:
        # the one comparison across types: it asks whether there is a value
        return lambda value: None if value is MISSING else value is None
    if isinstance(literal, bool):
        return lambda value: value is literal if isinstance(value, bool) else None
    if isinstance(literal, int | float):
        return lambda value: value == literal if is_number(value) else None
    return lambda value: value == literal if isinstance(value, str) else None


def _comparison(check: Compare) -> ValueTest:
    if check.comparison in _ORDER:
        return _ordering(check.comparison, check.literal)
    equal = _equality(check.literal)
    if check.comparison is Comparison.EQUAL:
        return equal
    return lambda value: None if (same := equal(value)) is None else not same


def _ordering(comparison: Comparison, literal: Scalar) -> ValueTest:
    if isinstance(literal, bool) or not isinstance(literal, int | float):
        raise TypeError("only numbers have an order")
    compare = _ORDER[comparison]
    return lambda value: compare(value, literal) if is_number(value) else None


def _membership(options: tuple[Scalar, ...]) -> ValueTest:
    by_type: dict[str, frozenset[object]] = {}
    for option in options:
        name = type_name(option)
        by_type[name] = by_type.get(name, frozenset()) | {option}

    def test(value: object) -> bool | None:
        known = by_type.get(type_name(value))
        return None if known is None else value in known

    return test
