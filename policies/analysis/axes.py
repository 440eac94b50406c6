"""What requests can differ in, each with values that stand for all others. Knows no decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Final

from policies.analysis.reading import Looked
from policies.analysis.words import Pattern, Words, pattern_of, words_for
from policies.evaluation import MISSING
from policies.evaluation.examples import Examples, examples_of, instants, nested
from policies.limits import PolicyLimits
from policies.model import (
    Check,
    Compare,
    Host,
    Label,
    Length,
    Network,
    OneOf,
    PathLike,
    Principal,
    Text,
    TextMatch,
    Under,
)

__all__ = ["Axis", "axes_of"]

_OTHER: Final = "some_other"
_SUBSETS_MAX: Final = 4
"""Labels, or agents above, of which every subset is tried."""
_ELEMENTS: Final = 2
"""Tests of elements that arrays of so many elements can tell apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One thing that requests can differ in.

    Attributes:
        field: which part of a request: a role, a pointer's keys, a budget's word.
        values: one for each way in which the rules can see it, the least remarkable first.
        complete: False if some way may be missing.
    """

    field: str
    key: tuple[str, ...]
    values: tuple[object, ...]
    complete: bool


def axes_of(looked: Looked, limits: PolicyLimits) -> tuple[Axis, ...]:
    """Return the axes that some rules can see, only those with more than one value."""
    found = [*_principal(looked, limits), *_facts(looked, limits), *_arguments(looked, limits)]
    return tuple(axis for axis in found if len(axis.values) > 1 or not axis.complete)


def _principal(looked: Looked, limits: PolicyLimits) -> Iterator[Axis]:
    roles = {role for who in looked.who for role in who.roles or ()}
    yield Axis("role", (), (_OTHER, *sorted(roles)), complete=True)
    named = _words((each for who in looked.who for each in who.agents or ()), limits)
    yield Axis("agent", (), ("", *named.words), named.complete)
    bounds = [who.depth for who in looked.who if who.depth is not None]
    edges = {edge for bound in bounds for edge in (bound.low, bound.high) if edge is not None}
    depths = {0, *(max(edge + step, 0) for edge in edges for step in (-1, 0, 1))}
    yield Axis("depth", (), tuple(sorted(depths)), complete=True)
    asked = any(who.interactive is not None for who in looked.who)
    yield Axis("interactive", (), (False, True) if asked else (False,), complete=True)
    above_roles = {role for who in looked.who for role in who.below_roles or ()}
    above = _words((each for who in looked.who for each in who.below_agents or ()), limits)
    single = [Principal(role=role) for role in sorted(above_roles)]
    single += [Principal(role=_OTHER, agent=agent) for agent in above.words]
    yield _subsets("above", single, complete=above.complete)


def _facts(looked: Looked, limits: PolicyLimits) -> Iterator[Axis]:
    labels = {
        Label(after.label, server)
        for after in looked.labels
        for server in (*(after.servers or ()), _OTHER)
    }
    yield _subsets("labels", sorted(labels), complete=True)
    digests = sorted({digest for each in looked.digests for digest in each.digests})
    pinned = ("", _OTHER, *digests) if looked.digests else ("",)
    yield Axis("digest", (), pinned, complete=True)
    for hint in sorted(looked.hints, key=lambda each: each.value):
        yield Axis("hint", (hint.value,), (None, True, False), complete=True)
    if looked.moments:
        moments = instants(looked.moments)
        yield Axis("wall", (), tuple(reversed(moments.values)), moments.complete)
    for metered, checks in looked.left.items():
        numbers = examples_of(checks, limits)
        yield Axis("left", (metered.value,), tuple(reversed(numbers.values)), numbers.complete)


def _arguments(looked: Looked, limits: PolicyLimits) -> Iterator[Axis]:
    keys = sorted({*looked.arguments, *looked.elements})
    for key in keys:
        checks = [*looked.arguments.get(key, ()), *looked.anywhere]
        found = _value_examples(checks, limits)
        inner = looked.elements.get(key)
        if inner:
            found = _arrays(found, inner, checks, limits)
        whole = found.complete and not nested(key, keys, checks, elements=bool(inner))
        yield Axis("argument", key, _quiet_first(found.values), whole)
    if looked.others:
        found = _value_examples(looked.anywhere, limits)
        single = len(set(looked.anywhere)) <= 1 and not looked.beside
        yield Axis(
            "argument", (_OTHER,), _quiet_first((*found.values, True)), found.complete and single
        )
    if looked.parts:
        yield Axis("uri", (), ("",), complete=False)


def _value_examples(checks: Sequence[Check], limits: PolicyLimits) -> Examples:
    """Return examples of a value; of strings all that only texts and literals can tell apart."""
    plain = examples_of(checks, limits)
    if any(isinstance(check, Under | PathLike | Host | Network | Length) for check in checks):
        return plain
    patterns = [pattern for check in checks for pattern in _patterns(check)]
    if not patterns:
        return plain
    words = words_for(patterns, states_max=limits.analysis_states_max, empty=True)
    return Examples([*words.words, *plain.values], words.complete)


def _patterns(check: Check) -> Iterator[Pattern]:
    match check:
        case Text():
            anywhere = check.match is TextMatch.CONTAINS
            yield pattern_of(
                str(check.text),
                starts=not anywhere and check.match is not TextMatch.ENDS,
                ends=not anywhere and check.match is not TextMatch.STARTS,
                stars=check.match is TextMatch.LIKE,
            )
        case Compare():
            if isinstance(check.literal, str):
                yield pattern_of(check.literal, stars=False)
        case OneOf():
            for option in check.options:
                if isinstance(option, str):
                    yield pattern_of(option, stars=False)
        case _:
            pass


def _arrays(
    whole: Examples, inner: Sequence[Check], checks: Sequence[Check], limits: PolicyLimits
) -> Examples:
    """Return examples of what may be an array whose elements are looked at."""
    single = _value_examples([*inner, *checks], limits)
    elements = [value for value in single.values if value is not MISSING]
    arrays = [
        list(each) for size in range(_ELEMENTS + 1) for each in product(elements, repeat=size)
    ]
    few = len(set(inner)) <= _ELEMENTS
    # a test of the array itself sees more than its elements: how many there are, or of what type it is
    complete = single.complete and whole.complete and few and not checks
    return Examples([*arrays, *whole.values, *elements], complete)


def _words(patterns: Iterable[str], limits: PolicyLimits) -> Words:
    return words_for(map(pattern_of, patterns), states_max=limits.analysis_states_max)


def _subsets(field: str, single: Sequence[object], *, complete: bool) -> Axis:
    """Return an axis of sets: every subset of few, of many none, each alone, and all."""
    sizes = range(len(single) + 1) if len(single) <= _SUBSETS_MAX else (0, 1, len(single))
    values = tuple(each for size in sizes for each in combinations(single, size))
    return Axis(field, (), values, complete and len(single) <= _SUBSETS_MAX)


def _quiet_first(values: Iterable[object]) -> tuple[object, ...]:
    """Return the values without repetitions, nothing at all first."""
    kept: list[object] = [MISSING]
    for value in values:
        # 1, 1.0 and True are equal, and are not the same to a rule
        if not any(type(value) is type(each) and value == each for each in kept):
            kept.append(value)
    return tuple(kept)
