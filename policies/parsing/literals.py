"""Strings, numbers, names and pointers as a policy writes them, and refusing what is none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NoReturn

from policies.errors import Place, PolicyError, excerpt_of
from policies.limits import PolicyLimits
from policies.model import Parameter, Pointer, Scalar, Template
from policies.parsing.syntax import Node, Word
from policies.patterns import PatternError, parse_pointer

__all__ = ["Literals", "quoted"]

_ESCAPES: Final = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", "$": "$"}
_CONSTANTS: Final = {"TRUE": True, "FALSE": False, "NULL": None}
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_THOUSANDS: Final = {"k": 1_000, "M": 1_000_000}
_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_PIECE: Final = re.compile(
    r"""\\u(?P<code>[0-9a-fA-F]{4})
      | \\(?P<escape>[nt"\\/$])
      | \$\{(?P<parameter>[A-Za-z_][A-Za-z0-9_.-]*)\}
      | (?P<wrong>\\.|\$\{)
      | (?P<plain>[^\\$]+|\$)""",
    re.VERBOSE | re.DOTALL,
)


_WRITTEN: Final = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\", "$": "\\$"}
_LAST_ESCAPED: Final = 0xFFFF


def quoted(text: str) -> str:
    """Return a string as a policy writes it: what is not seen, or turns the line around, as a number.

    What has no such number, beyond U+FFFF, stays; a file with it is refused.
    """
    return f'"{"".join(_WRITTEN.get(each) or _letter(each) for each in text)}"'


def _letter(each: str) -> str:
    return each if each.isprintable() or ord(each) > _LAST_ESCAPED else f"\\u{ord(each):04x}"


@dataclass(frozen=True, slots=True)
class Literals:
    """Reads the literals of one file."""

    text: str
    path: str
    limits: PolicyLimits

    def place(self, word: Word) -> Place:
        """Return where a token stands."""
        return Place(self.path, word.line, word.column)

    def start_of(self, node: Node, otherwise: Word | None) -> Word | Place:
        """Return the first word of a node; one that has none of its own is placed by another."""
        word = node.first()
        return word or otherwise or Place(self.path, 1, 1)

    def version(self, word: Word) -> int:
        """Return the number of a version like `v2`."""
        found = re.fullmatch(r"v([1-9][0-9]{0,8})", word.text)
        if found is None:
            self.refuse(f"`{word.text}` is no version", word, expected=("a version like `v1`",))
        return int(found[1])

    def refuse(
        self, message: str, at: Word | Place, *, expected: tuple[str, ...] = (), nearest: str = ""
    ) -> NoReturn:
        """Raise a `PolicyError` at a token or a place, with the line of the source."""
        place = at if isinstance(at, Place) else self.place(at)
        raise PolicyError(
            message,
            place=place,
            expected=expected,
            nearest=nearest,
            excerpt=excerpt_of(self.text, place),
        )

    def bound(self, count: int, most: int, what: str, at: Word | Place) -> None:
        """Refuse more than `most` of something."""
        if count > most:
            self.refuse(f"at most {most} {what} are allowed here", at)

    def name(self, word: Word) -> str:
        """Return a name of a policy, role, set or server."""
        self.bound(len(word.text), self.limits.name_chars_max, "characters", word)
        return word.text

    def plain(self, word: Word) -> str:
        """Return a string in which parameters have no place."""
        string = self.string(word)
        if isinstance(string, Template):
            self.refuse("a parameter is filled in after `when` and `unless` only", word)
        return string

    def string(self, word: Word) -> str | Template:
        """Return a string; with a parameter in it, its pieces."""
        parts: list[str | Parameter] = []
        plain = ""
        for found in _PIECE.finditer(word.text[1:-1]):
            place = Place(self.path, word.line, word.column + 1 + found.start())
            if found["wrong"] is not None:
                self.refuse(
                    "a backslash in a string is written `\\\\`, and `${` without a name `\\${`",
                    place,
                )
            if found["parameter"] is not None:
                parts += [plain] * bool(plain)
                parts.append(Parameter(found["parameter"], place))
                plain = ""
            else:
                plain += self._character(found["code"], found["escape"], place) or found["plain"]
        length = len(plain) + sum(len(part) for part in parts if isinstance(part, str))
        self.bound(length, self.limits.string_chars_max, "characters", word)
        return Template((*parts, *[plain] * bool(plain))) if parts else plain

    def _character(self, code: str | None, escape: str | None, place: Place) -> str:
        if escape is not None:
            return _ESCAPES[escape]
        if code is None:
            return ""
        character = chr(int(code, 16))
        if "\ud800" <= character <= "\udfff":
            self.refuse("half of a surrogate pair is no character; write it as it is", place)
        return character

    def number(self, word: Word) -> int | float:
        """Return a number: whole ones exactly, others as JSON decoders read them."""
        self.bound(len(word.text), self.limits.number_chars_max, "digits", word)
        return float(word.text) if "." in word.text else int(word.text)

    def count(self, word: Word, what: str, *, least: int = 1) -> int:
        """Return a whole number, `200k` included."""
        if word.terminal == "SIZE":
            self.bound(len(word.text), self.limits.number_chars_max, "digits", word)
            return int(word.text[:-1]) * _THOUSANDS[word.text[-1]]
        number = self.number(word) if word.terminal == "NUMBER" else -1
        if isinstance(number, float) or number < least:
            self.refuse(f"{what} is a whole number, {least} or more", word)
        return number

    def seconds(self, word: Word) -> float:
        """Return the seconds of `30s`, `5m`, `1h`."""
        self.bound(len(word.text), self.limits.number_chars_max, "digits", word)
        digits = word.text.rstrip("dhms")
        seconds = int(digits) * _UNITS[word.text[len(digits) :]]
        if not 0 < seconds <= self.limits.duration_seconds_max:
            most = self.limits.duration_seconds_max // 86_400
            self.refuse(f"a time is more than nothing and at most {most} days", word)
        return seconds

    def moment(self, word: Word) -> float:
        """Return seconds since 1970-01-01 UTC of an ISO 8601 date and time with its zone."""
        try:
            found = datetime.fromisoformat(self.plain(word))
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            self.refuse(
                "not a moment",
                word,
                expected=('a date, time and zone like "2027-01-31T09:00:00Z"',),
            )
        return found.timestamp()

    def minutes(self, word: Word) -> int:
        """Return the minute of the day of `09:30`."""
        found = _TIME.fullmatch(self.plain(word))
        if found is None:
            self.refuse("not a time of day", word, expected=('a time like "09:30"',))
        return int(found[1]) * 60 + int(found[2])

    def scalar(self, word: Word) -> Scalar:
        """Return any literal."""
        if word.terminal == "STRING":
            return self.string(word)
        if word.terminal == "NUMBER":
            return self.number(word)
        return _CONSTANTS[word.terminal]

    def scalars(self, words: Iterable[Word]) -> tuple[Scalar, ...]:
        """Return several literals."""
        return tuple(self.scalar(word) for word in words)

    def pointer(self, word: Word) -> Pointer:
        """Return what stands between the parentheses of `arg(...)`."""
        text = self.plain(word) if word.terminal == "STRING" else word.text
        try:
            return parse_pointer(text, self.limits)
        except PatternError as error:
            self.refuse(str(error), word)
