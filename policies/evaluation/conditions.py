"""Conditions, compiled: three values, joined by Kleene's strong logic.

None, "no value", never turns into false by itself. What it means for a rule is not decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias, assert_never, cast

from policies.evaluation.checks import ValueTest, about, compile_check
from policies.evaluation.values import MISSING, inside, look_up, type_name
from policies.limits import PolicyLimits
from policies.model import (
    After,
    AllOf,
    AnyArgument,
    AnyOf,
    Argument,
    Before,
    Condition,
    Context,
    DigestIs,
    Elements,
    Fact,
    Hint,
    HintName,
    Left,
    Not,
    OnlyArguments,
    Resource,
    Test,
    TimeOfDay,
    UriPart,
    Weekday,
)

__all__ = ["Predicate", "compile_condition", "reads_resource", "tests_of"]

Predicate: TypeAlias = Callable[[Context, Resource, Mapping[str, str]], bool | None]
"""A compiled condition: of the context, what is asked for, and the parts of its URI."""

_MINUTE: Final = 60
_DAY: Final = 86_400
_THURSDAY: Final = 3  # 1970-01-01


def compile_condition(condition: Condition, limits: PolicyLimits) -> Predicate:
    """Turn a condition into a function. It never raises.

    Raises:
        PatternError: a path, host or network that is none.
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
        case Test():
            return _test(condition, limits)
        case _:
            return _fact(condition)


def tests_of(condition: Condition) -> Iterator[Test | Fact]:
    """Yield each test and fact of a condition, in the order in which they are written."""
    match condition:
        case Not():
            yield from tests_of(condition.part)
        case AllOf() | AnyOf():
            for part in condition.parts:
                yield from tests_of(part)
        case _:
            yield condition


def reads_resource(condition: Condition) -> bool:
    """Return True if the answer depends on more of what is asked for than its name and kind."""
    return any(
        isinstance(test, Hint | DigestIs)
        or (isinstance(test, Test) and isinstance(test.operand, UriPart))
        for test in tests_of(condition)
    )


# ------------------------------------------------------------------------------------------ operands


def _test(test: Test, limits: PolicyLimits) -> Predicate:
    check = compile_check(test.check, limits)
    match test.operand:
        case Argument(pointer=pointer):
            return _argument(pointer.keys, check)
        case Elements(pointer=pointer, every=every):
            return _elements(pointer.keys, check, every=every)
        case AnyArgument():
            return _any_argument(check, about(test.check), limits.leaves_max)
        case Left(metered=metered):
            word = metered.value
            return lambda context, _, __: check(context.left.get(word, MISSING))
        case UriPart(name=name):
            return lambda _, __, parts: check(parts.get(name, MISSING))
        case _:
            assert_never(test.operand)


def _argument(keys: tuple[str, ...], check: ValueTest) -> Predicate:
    if len(keys) == 1:
        key = keys[0]
        # MISSING is of no type, so each check but `exists` answers None to it
        return lambda context, _, __: check(context.arguments.get(key, MISSING))
    return lambda context, _, __: check(look_up(context.arguments, keys))


def _elements(keys: tuple[str, ...], check: ValueTest, *, every: bool) -> Predicate:
    def test(context: Context, _: Resource, __: Mapping[str, str]) -> bool | None:
        value = look_up(context.arguments, keys)
        if value is MISSING:
            return None
        items = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
        result: bool | None = every
        for item in items:
            answer = check(item)
            if answer is not every:
                if answer is not None:
                    return answer
                result = None
        return result

    return test


def _any_argument(check: ValueTest, types: frozenset[str] | None, leaves_max: int) -> Predicate:
    def test(context: Context, _: Resource, __: Mapping[str, str]) -> bool | None:
        result: bool | None = False
        for count, value in enumerate(inside(context.arguments)):
            if count >= leaves_max:
                return None
            if types is not None and type_name(value) not in types:
                continue
            answer = check(value)
            if answer is True:
                return True
            if answer is None:
                result = None
        return result

    return test


# --------------------------------------------------------------------------------------------- facts


def _fact(fact: Fact) -> Predicate:
    match fact:
        case After(label=label, servers=servers):
            return lambda context, _, __: any(
                found.name == label and (servers is None or found.server in servers)
                for found in context.labels
            )
        case Hint(name=name):
            return _hint(name)
        case DigestIs(digests=digests):
            return _digest(frozenset(digests))
        case OnlyArguments():
            return _only(fact)
        case TimeOfDay(low=low, high=high):
            return _time(low, high)
        case Weekday(days=days):
            return lambda context, _, __: (
                None if context.wall is None else int(context.wall // _DAY + _THURSDAY) % 7 in days
            )
        case Before(wall=wall):
            return lambda context, _, __: None if context.wall is None else context.wall < wall
        case _:
            assert_never(fact)


def _hint(name: HintName) -> Predicate:
    match name:
        case HintName.READ_ONLY:
            return lambda _, resource, __: resource.annotations.read_only
        case HintName.DESTRUCTIVE:
            return lambda _, resource, __: resource.annotations.destructive
        case HintName.IDEMPOTENT:
            return lambda _, resource, __: resource.annotations.idempotent
        case HintName.OPEN_WORLD:
            return lambda _, resource, __: resource.annotations.open_world
        case _:
            assert_never(name)


def _digest(digests: frozenset[str]) -> Predicate:
    if not digests:
        return lambda _, resource, __: resource.digest != ""
    return lambda _, resource, __: resource.digest in digests if resource.digest else None


def _time(low: int, high: int) -> Predicate:
    def test(context: Context, _: Resource, __: Mapping[str, str]) -> bool | None:
        if context.wall is None:
            return None
        minute = context.wall % _DAY // _MINUTE
        return low <= minute < high if low < high else minute >= low or minute < high

    return test


class _Known:
    """The arguments that are known, as a tree: what is below a whole one is known as well."""

    __slots__ = ("inner", "whole")

    def __init__(self) -> None:
        self.whole = False
        self.inner: dict[str, _Known] = {}


def _only(fact: OnlyArguments) -> Predicate:
    root = _Known()
    for pointer in fact.pointers:
        here = root
        for key in pointer.keys:
            here = here.inner.setdefault(key, _Known())
        here.whole = True

    def known(value: object, tree: _Known) -> bool:
        if tree.whole:
            return True
        if isinstance(value, Mapping):
            members = cast("Mapping[str, object]", value).items()
        elif isinstance(value, list | tuple):
            items = cast("Sequence[object]", value)
            members = ((str(index), item) for index, item in enumerate(items))
        else:
            return False
        return all(
            (inner := tree.inner.get(key)) is not None and known(item, inner)
            for key, item in members
        )

    return lambda context, _, __: known(context.arguments, root)


# --------------------------------------------------------------------------------------------- joins


def _negation(part: Predicate) -> Predicate:
    def negated(context: Context, resource: Resource, parts: Mapping[str, str]) -> bool | None:
        answer = part(context, resource, parts)
        return None if answer is None else not answer

    return negated


def _fold(parts: tuple[Predicate, ...], *, decisive: bool) -> Predicate:
    """Join parts: one decisive answer decides; else None if one part has none."""

    def folded(context: Context, resource: Resource, uri: Mapping[str, str]) -> bool | None:
        result: bool | None = not decisive
        for part in parts:
            answer = part(context, resource, uri)
            if answer is decisive:
                return decisive
            if answer is None:
                result = None
        return result

    return folded
