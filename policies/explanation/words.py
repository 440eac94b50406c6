"""Tests and facts in the words of a policy. Shows what a policy says, never an argument's value."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from policies.model import (
    After,
    AnyArgument,
    Argument,
    Before,
    Between,
    Check,
    Compare,
    DigestIs,
    Elements,
    Exists,
    Fact,
    Hint,
    Host,
    Left,
    Length,
    Network,
    OneOf,
    OnlyArguments,
    Operand,
    PathLike,
    Scalar,
    Template,
    Text,
    TimeOfDay,
    TypeIs,
    Under,
    UriPart,
    Weekday,
)

__all__ = ["check_words", "fact_words", "operand_words"]

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def operand_words(operand: Operand) -> str:
    """Return what a test looks at, as a policy writes it."""
    match operand:
        case Argument(pointer=pointer):
            return f"arg({pointer.text})"
        case Elements(pointer=pointer, every=every):
            return f"{'all' if every else 'any'} arg({pointer.text})"
        case AnyArgument():
            return "any arg"
        case Left(metered=metered):
            return f"budget({metered.value})"
        case UriPart(name=name):
            return f"uri({name})"
        case _:
            assert_never(operand)


def check_words(check: Check) -> tuple[str, str]:
    """Return a check's operator, and what stands behind it."""
    match check:
        case Compare():
            return check.comparison.value, _written(check.literal)
        case OneOf():
            return "in", _listed(map(_written, check.options))
        case Between():
            return "in", f"{check.low}..{check.high}"
        case Under():
            return "under", _written(check.prefix)
        case PathLike():
            return "path_like", _written(check.pattern)
        case Text():
            return check.match.value, _written(check.text)
        case Length(high=None):
            return "length", f">= {check.low}"
        case Length():
            return "length", f"in {check.low}..{check.high}"
        case _:
            return _other_check(check)


def _other_check(check: Host | Network | TypeIs | Exists) -> tuple[str, str]:
    match check:
        case Host():
            return "host", f"in {_listed(map(_written, check.hosts))}"
        case Network():
            return "cidr", f"in {_listed(map(_written, check.networks))}"
        case TypeIs():
            return "is", check.type.value
        case Exists():
            return "exists", ""
        case _:
            assert_never(check)


def fact_words(fact: Fact) -> str:
    """Return a fact as a policy writes it."""
    match fact:
        case After():
            origin = f" from {', '.join(fact.written)}" if fact.written else ""
            return f"after {fact.label}{origin}"
        case Hint():
            return f"hint({fact.name.value})"
        case DigestIs(digests=()):
            return "digest pinned"
        case DigestIs():
            return f"digest in {_listed(map(_written, fact.digests))}"
        case OnlyArguments():
            return f"args only ({', '.join(each.text for each in fact.pointers)})"
        case TimeOfDay():
            return f'time in "{_clock(fact.low)}".."{_clock(fact.high)}"'
        case Weekday():
            return f"day in {_listed(_written(_DAYS[day]) for day in sorted(fact.days))}"
        case Before():
            moment = datetime.fromtimestamp(fact.wall, UTC).isoformat().replace("+00:00", "Z")
            return f'now before "{moment}"'
        case _:
            assert_never(fact)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _listed(words: Iterable[str]) -> str:
    return f"[{', '.join(words)}]"


def _written(literal: Scalar) -> str:
    if isinstance(literal, str):
        escaped = literal.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(literal, Template):
        raise TypeError("a loaded set holds no template")
    if literal is None or isinstance(literal, bool):
        return {None: "null", True: "true", False: "false"}[literal]
    return str(literal)
