"""Examples of one value: one for each way in which some checks can see it, where that can be had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from math import floor

from policies.evaluation.values import MISSING, is_index
from policies.limits import PolicyLimits
from policies.model import (
    Before,
    Between,
    Check,
    Compare,
    Exists,
    Host,
    JsonType,
    Length,
    Network,
    OneOf,
    PathLike,
    Text,
    TextMatch,
    TimeOfDay,
    TypeIs,
    Under,
    Weekday,
)
from policies.patterns import normal_path, parse_network

__all__ = ["Examples", "examples_of", "instants", "nested"]

_DAY = 86_400
_LENGTHS_MAX = 4_096
"""Characters of an example: longer ones are not made."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Values to try; `complete` if no other value could be seen in another way."""

    values: Sequence[object]
    complete: bool


def examples_of(checks: Iterable[Check], limits: PolicyLimits) -> Examples:
    """Return examples of a value that these checks look at; `MISSING` is the last."""
    kinds = _Kinds()
    for check in checks:
        kinds.note(check)
    numbers = _between(kinds.numbers, typed=kinds.typed)
    values = [*kinds.strings(limits), *numbers, *kinds.plain, *kinds.arrays()]
    # two open patterns on one string may meet in ways that neither's own example shows
    open_ones = kinds.open + bool(kinds.prefixes) + bool(kinds.lengths)
    complete = open_ones <= 1 and not (kinds.open and kinds.strings_seen) and kinds.complete
    # the only object has no members
    complete = complete and not (kinds.typed and kinds.measured)
    # another type is an object, which is also what a pointer to something inside needs
    return Examples([*values, {}, MISSING], complete)


def nested(
    key: Sequence[str], keys: Iterable[Sequence[str]], checks: Iterable[Check], *, elements: bool
) -> bool:
    """Return True if what is below a pointer shows in what is looked at there.

    `elements`: whether the elements there are looked at. The examples of both are then not all that
    there is: of what has something below it there are only objects, each with nothing else in it.
    """
    below = [each[len(key)] for each in keys if len(each) > len(key) and each[: len(key)] == key]
    seen = list(checks)
    if below and any(isinstance(check, Length) for check in seen):
        return True
    typed = any(isinstance(check, TypeIs) for check in seen)
    return (elements or typed) and any(map(is_index, below))


@dataclass(slots=True)
class _Kinds:
    numbers: set[int | float] = field(default_factory=set[int | float])
    strings_seen: set[str] = field(default_factory=set[str])
    prefixes: set[str] = field(default_factory=set[str])
    plain: list[object] = field(default_factory=list[object])
    lengths: set[int] = field(default_factory=set[int])
    samples: list[str] = field(default_factory=list[str])
    open: int = 0
    typed: bool = False
    measured: bool = False
    complete: bool = True

    def note(self, check: Check) -> None:
        """Sort one check in."""
        match check:
            case Compare():
                self._literal(check.literal)
            case OneOf():
                for option in check.options:
                    self._literal(option)
            case Between():
                self.numbers |= {check.low, check.high}
            case Under():
                self.prefixes.add(str(check.prefix))
            case Length():
                self._length(check)
            case TypeIs():
                self._type(check.type)
            case Exists():
                pass
            case Text() | PathLike() | Host() | Network():
                self.open += 1
                self.samples += _samples(check)

    def _literal(self, literal: object) -> None:
        if isinstance(literal, bool):
            self.plain.extend(value for value in (True, False) if value not in self.plain)
        elif literal is None:
            self.plain.append(None)
        elif isinstance(literal, int | float):
            self.numbers.add(literal)
        else:
            self.strings_seen.add(str(literal))

    def _length(self, check: Length) -> None:
        self.measured = True
        for bound in (check.low, check.high):
            if bound is not None:
                self.lengths |= {max(bound - 1, 0), bound, bound + 1}
        kept = {length for length in self.lengths if length <= _LENGTHS_MAX}
        self.complete = self.complete and kept == self.lengths
        self.lengths = kept

    def _type(self, _: JsonType) -> None:
        self.typed = True
        self.plain += [None, True]
        self.numbers |= {0, 0.5}
        self.lengths.add(0)

    def arrays(self) -> list[object]:
        """Return arrays of the lengths that are looked at."""
        return [[None] * length for length in sorted(self.lengths)]

    def strings(self, limits: PolicyLimits) -> list[object]:
        """Return strings: the literals, paths, samples of patterns, some of each length, another."""
        if not (self.prefixes or self.strings_seen or self.samples or self.lengths):
            return []
        taken = "\n".join((*self.prefixes, *self.strings_seen, *self.samples))
        other = "other"
        while other in taken:
            other += "_"
        found: list[object] = [*sorted(self.strings_seen), *self.samples]
        for prefix in sorted(self.prefixes):
            root = normal_path(prefix, chars_max=limits.path_chars_max)
            if root is not None:
                top = "/" * root.absolute
                rest = "".join(f"{part}/" for part in root.parts)
                # the second one is below or beside, as one decodes: it has no value
                found += [f"{top}{rest}{other}", f"{top}{_escaped(rest[:1])}{rest[1:]}{other}"]
        if self.prefixes:
            found += [f"/{other}", f"{other}\\"]
        # no literal is a row of this character
        char = next(each for each in map(chr, count(ord("x"))) if each not in taken)
        return [*found, *(char * length for length in sorted(self.lengths)), other]


def _samples(check: Text | PathLike | Host | Network) -> list[str]:
    """Return strings that the check takes, and, where it has one, a string without a value."""
    match check:
        case Text(match=TextMatch.LIKE):
            return [str(check.text).replace("*", ""), str(check.text).replace("*", "x"), ""]
        case Text():
            # the empty string has none of it, whatever "another" string may have
            return [str(check.text), f"{check.text}x", f"x{check.text}", ""]
        case PathLike():
            plain = str(check.pattern).replace("**/", "").replace("**", "x").replace("*", "x")
            root = "/" * plain.startswith("/")
            return [plain, f"{root}y", f"{root}z/z/z", "x\\"]
        case Host():
            names = [str(host) for host in check.hosts]
            return [*(name.replace("*", "x") for name in names), "https://x@y/", "10.0.0.1"]
        case Network():
            networks = [parse_network(str(network)) for network in check.networks]
            return [
                *(str(network.network_address) for network in networks),
                "192.0.2.1",
                "198.51.100.7",
                "::1",
            ]


def _between(numbers: set[int | float], *, typed: bool) -> list[object]:
    """Return the numbers, and one of each stretch around them; if `typed` a broken one as well."""
    ordered = sorted(numbers)
    if not ordered:
        return []
    found: list[object] = [*ordered]
    # floor() is exact where a half of two large numbers, or one more than a float, is not
    for low, high in pairwise([floor(ordered[0]) - 2, *ordered, floor(ordered[-1]) + 2]):
        whole = floor(low) + 1
        if whole < high:
            found.append(whole)
        if typed or whole >= high:
            found.append((low + min(whole, high)) / 2)
    return found


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass"))


def instants(facts: Sequence[TimeOfDay | Weekday | Before]) -> Examples:
    """Return moments to try, in seconds since 1970-01-01 UTC; None, an unknown time, is the last."""
    minutes = {0}
    for fact in facts:
        if isinstance(fact, TimeOfDay):
            minutes |= {fact.low, fact.high}
    days = range(7) if any(isinstance(fact, Weekday) for fact in facts) else range(1)
    walls = sorted({fact.wall for fact in facts if isinstance(fact, Before)})
    # a whole week in each stretch between two moments; a stretch may be shorter than that
    starts = [(walls[0] // _DAY - 9) * _DAY if walls else 0.0]
    starts += [(wall // _DAY + 1) * _DAY for wall in walls]
    found: list[object] = [
        start + day * _DAY + minute * 60 for start in starts for day in days for minute in minutes
    ]
    complete = all(high - low > 9 * _DAY for low, high in pairwise(walls))
    return Examples([*found, *walls, None], complete)
