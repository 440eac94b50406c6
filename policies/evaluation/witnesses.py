"""Contexts worth trying: one for each way in which a set of conditions can see what is known.

Conditions can tell apart only finitely many kinds of values: a literal, what lies between two
numbers, what lies under a path, another type, nothing at all. One example of each, combined over
all that is looked at, answers "is there any context such that …" without a solver. Where examples
of each kind cannot be had so simply, that is said, and nothing is concluded from having none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod
from typing import TypeAlias, cast

from policies.evaluation.conditions import tests_of
from policies.evaluation.examples import Examples, examples_of, instants, nested
from policies.evaluation.values import MISSING
from policies.limits import PolicyLimits
from policies.model import (
    After,
    AnyArgument,
    Argument,
    Before,
    Check,
    Condition,
    Context,
    Elements,
    Exists,
    Fact,
    Label,
    Left,
    OnlyArguments,
    Test,
    TimeOfDay,
    UriPart,
    Weekday,
)

__all__ = ["put_argument", "witnesses"]

_ELSEWHERE = "another server"
_UNKNOWN = "another argument"
_Choices: TypeAlias = Sequence[object]


def witnesses(
    conditions: Sequence[Condition], limits: PolicyLimits
) -> tuple[Iterator[Context], bool]:
    """Return contexts to try, and True if they cover every case."""
    seen = _Seen()
    for condition in conditions:
        for test in tests_of(condition):
            seen.note(test)
    return seen.contexts(limits)


@dataclass(slots=True)
class _Seen:
    """All that conditions look at."""

    values: dict[tuple[str, ...], list[Check]] = field(
        default_factory=dict[tuple[str, ...], list[Check]]
    )
    elements: dict[tuple[str, ...], list[Check]] = field(
        default_factory=dict[tuple[str, ...], list[Check]]
    )
    anywhere: list[Check] = field(default_factory=list[Check])
    left: dict[str, list[Check]] = field(default_factory=dict[str, list[Check]])
    labels: set[Label] = field(default_factory=set[Label])
    times: list[TimeOfDay | Weekday | Before] = field(
        default_factory=list[TimeOfDay | Weekday | Before]
    )
    complete: bool = True

    def note(self, test: Test | Fact) -> None:
        """Add what one test looks at."""
        match test:
            case After():
                servers = test.servers if test.servers is not None else (_ELSEWHERE,)
                self.labels |= {Label(test.label, server) for server in servers}
            case TimeOfDay() | Weekday() | Before():
                self.times.append(test)
            case OnlyArguments():
                self._only(test)
            case Test():
                self._test(test)
            case _:
                # hints and digests are those of the thing itself
                pass

    def _only(self, test: OnlyArguments) -> None:
        self.values.setdefault((_UNKNOWN,), []).append(Exists())
        # what lies beside an inner argument is not tried
        self.complete = self.complete and all(len(each.keys) == 1 for each in test.pointers)

    def _test(self, test: Test) -> None:
        match test.operand:
            case Argument(pointer=pointer):
                self.values.setdefault(pointer.keys, []).append(test.check)
            case Elements(pointer=pointer):
                self.elements.setdefault(pointer.keys, []).append(test.check)
                self.values.setdefault(pointer.keys, [])
            case AnyArgument():
                self.anywhere.append(test.check)
                self.complete = False
            case Left(metered=metered):
                self.left.setdefault(metered.value, []).append(test.check)
            case UriPart():
                pass

    def contexts(self, limits: PolicyLimits) -> tuple[Iterator[Context], bool]:
        """Return the combinations, and True if they are all that there are."""
        if self.anywhere:
            self.values.setdefault((_UNKNOWN,), [])
        # parents come before their children, so that a child knows whether it has a place
        pointers = sorted(self.values)
        arguments = [self._choices(pointer, limits) for pointer in pointers]
        budgets = [self._found(examples_of(self.left[name], limits)) for name in sorted(self.left)]
        labels = [(False, True)] * len(self.labels)
        times = self._found(instants(self.times)) if self.times else (None,)
        dimensions = (*arguments, *budgets, *labels, times)
        count = prod(len(dimension) for dimension in dimensions)
        names = sorted(self.left)
        clinging = sorted(self.labels)

        def contexts() -> Iterator[Context]:
            for values in product(*dimensions):
                chosen = iter(values)
                given = _put_all(pointers, list(islice(chosen, len(pointers))))
                left = dict(zip(names, islice(chosen, len(names)), strict=True))
                on = dict(zip(clinging, islice(chosen, len(clinging)), strict=True))
                if given is not None:
                    yield Context(
                        arguments=given,
                        labels=frozenset(label for label, carried in on.items() if carried),
                        wall=cast("float | None", next(chosen)),
                        left={
                            name: cast("float", value)
                            for name, value in left.items()
                            if value is not MISSING
                        },
                    )

        return islice(contexts(), limits.witnesses_max), self.complete and (
            count <= limits.witnesses_max
        )

    def _choices(self, pointer: tuple[str, ...], limits: PolicyLimits) -> _Choices:
        checks = self.values[pointer]
        inner = self.elements.get(pointer, [])
        if nested(pointer, self.values, [*checks, *self.anywhere], elements=bool(inner)):
            self.complete = False
        # whatever may stand anywhere may stand here
        own = self._found(examples_of([*checks, *self.anywhere], limits))
        if not inner:
            return own
        items = [each for each in self._found(examples_of(inner, limits)) if each is not MISSING]
        # with one test, arrays of one element show all that longer ones can
        self.complete = self.complete and len(inner) == 1 and not checks
        return [*own, *items, [], *([item] for item in items)]

    def _found(self, found: Examples) -> _Choices:
        self.complete = self.complete and found.complete
        return found.values


def _put_all(
    pointers: Sequence[tuple[str, ...]], values: Sequence[object]
) -> Mapping[str, object] | None:
    arguments: dict[str, object] = {}
    for keys, value in zip(pointers, values, strict=True):
        if not put_argument(arguments, keys, value):
            return None
    return arguments


def put_argument(arguments: dict[str, object], keys: tuple[str, ...], value: object) -> bool:
    """Place a value at a pointer's keys, making objects on the way.

    False if what is there already leaves no room, so that the case is void.
    """
    if value is MISSING:
        return True
    here = arguments
    for key in keys[:-1]:
        inner = here.setdefault(key, {})
        if not isinstance(inner, dict):
            return False
        here = cast("dict[str, object]", inner)
    if keys[-1] in here:
        return False
    # a copy: an example of an object is filled by its children
    here[keys[-1]] = {} if value == {} else value
    return True
