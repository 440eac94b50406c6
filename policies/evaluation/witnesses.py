"""Arguments worth trying: one for each way in which a set of conditions can see a value.

Conditions can tell apart only finitely many kinds of values: a literal, what lies between two
numbers, what lies under a path, another type, nothing at all. One example of each, combined over
all pointers, answers "is there any argument such that …" without a solver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from typing import cast

from policies.evaluation.conditions import MISSING, tests_of
from policies.limits import PolicyLimits
from policies.model import Between, Compare, Condition, Exists, OneOf, Test, Under
from policies.patterns import normal_path

__all__ = ["witnesses"]


def witnesses(
    conditions: Sequence[Condition], limits: PolicyLimits
) -> Iterator[Mapping[str, object]] | None:
    """Return arguments that cover every case, or None if they are more than the bound."""
    by_pointer: dict[tuple[str, ...], list[Test]] = {}
    for condition in conditions:
        for test in tests_of(condition):
            by_pointer.setdefault(test.pointer.keys, []).append(test)
    # parents come before their children, so that a child knows whether it has a place
    pointers = sorted(by_pointer)
    choices = [_examples(by_pointer[pointer], limits) for pointer in pointers]
    if prod(len(choice) for choice in choices) > limits.witnesses_max:
        return None
    return _combined(pointers, choices)


def _combined(
    pointers: Sequence[tuple[str, ...]], choices: Sequence[Sequence[object]]
) -> Iterator[Mapping[str, object]]:
    for values in product(*choices):
        arguments: dict[str, object] = {}
        if all(_put(arguments, keys, value) for keys, value in zip(pointers, values, strict=True)):
            yield arguments


def _put(arguments: dict[str, object], keys: tuple[str, ...], value: object) -> bool:
    """Place a value; False if what is there already leaves no room, so that the case is void."""
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


def _examples(tests: Sequence[Test], limits: PolicyLimits) -> list[object]:
    numbers: set[int | float] = set()
    strings: set[str] = set()
    prefixes: set[str] = set()
    plain: list[object] = []
    for test in tests:
        match test:
            case Compare():
                _sort_in(test.literal, numbers, strings, plain)
            case OneOf():
                for option in test.options:
                    _sort_in(option, numbers, strings, plain)
            case Between():
                numbers |= {test.low, test.high}
            case Under():
                prefixes.add(str(test.prefix))
            case Exists():
                pass
    found = [*_paths(prefixes, strings, limits), *_between(numbers), *plain]
    # another type is an object, which is also what a pointer to something inside needs
    return [*found, {}, MISSING]


def _sort_in(
    literal: object, numbers: set[int | float], strings: set[str], plain: list[object]
) -> None:
    if isinstance(literal, bool):
        plain.extend(value for value in (True, False) if value not in plain)
    elif literal is None:
        plain.append(None)
    elif isinstance(literal, int | float):
        numbers.add(literal)
    else:
        strings.add(str(literal))


def _between(numbers: set[int | float]) -> list[object]:
    ordered = sorted(numbers)
    if not ordered:
        return []
    gaps = [(low + high) / 2 for low, high in pairwise(ordered)]
    return [*ordered, *gaps, ordered[0] - 1, ordered[-1] + 1]


def _paths(prefixes: set[str], strings: set[str], limits: PolicyLimits) -> list[object]:
    if not prefixes and not strings:
        return []
    taken = "\n".join((*prefixes, *strings))
    other = "other"
    while other in taken:
        other += "_"
    examples: list[object] = [*sorted(strings)]
    for prefix in sorted(prefixes):
        root = normal_path(prefix, chars_max=limits.path_chars_max)
        if root is not None:
            top = "/" * root.absolute
            rest = "".join(f"{part}/" for part in root.parts)
            # the second one is below or beside, as one decodes: it has no value
            examples += [f"{top}{rest}{other}", f"{top}{_escaped(rest[:1])}{rest[1:]}{other}"]
    if prefixes:
        examples += [f"/{other}", f"{other}\\"]
    return [*examples, other]


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))
