"""Where the keys of a JSON or TOML text stand. Finds places only; values are decoded elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

__all__ = ["KeyPath", "Places", "json_places", "line_and_column", "toml_places"]

KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the root to a value."""

_PLACES_MAX: Final = 100_000
"""Places kept of one text; what stands after them has the place of what it stands in."""


@dataclass(slots=True)
class Places:
    """Offsets into one text.

    `offsets` has every key and every list element, `duplicate` the first key that its object has
    already, `too_deep` the point where nesting passes the bound; nothing after it is looked at.
    """

    offsets: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    duplicate: tuple[KeyPath, int] | None = None
    too_deep: int | None = None

    def record(self, path: KeyPath, offset: int) -> None:
        """Keep the first place of a path, within the bound."""
        if len(self.offsets) < _PLACES_MAX:
            self.offsets.setdefault(path, offset)


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Return the line and the column of an offset, both counted from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


# ------------------------------------------------------------------------------------------ JSON

_JSON_TOKEN: Final = re.compile(
    r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL
)


@dataclass(slots=True)
class _Open:
    """An object or array that is being read. `key` is the key, or the index, of what comes next."""

    path: KeyPath
    is_object: bool
    key: str | int
    wants_key: bool
    seen: set[str] = field(default_factory=set[str])


def json_places(text: str, *, decode_key: Callable[[str], str], depth_max: int) -> Places:
    """Find the places of a JSON text. A text that is not JSON gives places without meaning.

    `decode_key` turns a key's literal, quotes included, into the key; ValueError leaves it out.
    """
    places = Places()
    stack: list[_Open] = []
    for match in _JSON_TOKEN.finditer(text):
        word, offset = match.group(), match.start()
        top = stack[-1] if stack else None
        if word in "]}":
            if stack:
                stack.pop()
        elif word == ",":
            if top is not None:
                _step(top)
        elif word == ":":
            if top is not None:
                top.wants_key = False
        elif top is not None and top.wants_key:
            _record_key(places, top, word, offset, decode_key)
        else:
            path = (*top.path, top.key) if top is not None else ()
            if top is not None and not top.is_object:
                places.record(path, offset)
            if word in "[{":
                if len(stack) == depth_max:
                    places.too_deep = offset
                    break
                stack.append(_Open(path, word == "{", "" if word == "{" else 0, word == "{"))
    return places


def _step(top: _Open) -> None:
    if isinstance(top.key, int):
        top.key += 1
    else:
        top.wants_key = True


def _record_key(
    places: Places, top: _Open, token: str, offset: int, decode_key: Callable[[str], str]
) -> None:
    try:
        key = decode_key(token)
    except ValueError:
        return
    top.key = key
    if key in top.seen and places.duplicate is None:
        places.duplicate = ((*top.path, key), offset)
    top.seen.add(key)
    places.record((*top.path, key), offset)


# ------------------------------------------------------------------------------------------ TOML

_TOML_SKIP: Final = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_TOML_KEY: Final = re.compile(r""""(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[A-Za-z0-9_-]++""")
_TOML_SCALAR: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}'
    r"|'''(?:[^']|'(?!''))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'"
    r"|[^,\]}#\n]++",
    re.DOTALL,
)
_TOML_BLANK: Final = re.compile(r"[ \t]*+")


def toml_places(text: str, *, decode_key: Callable[[str], str], depth_max: int) -> Places:
    """Find the places of a TOML text that the TOML parser accepted.

    `decode_key` turns a quoted key, quotes included, into the key.
    """
    return _Toml(text, decode_key, depth_max).scan()


class _TooDeepError(Exception):
    pass


class _Toml:
    """One pass over one text. Lenient: what it does not understand it steps over."""

    def __init__(self, text: str, decode_key: Callable[[str], str], depth_max: int) -> None:
        self._text = text
        self._decode_key = decode_key
        self._depth_max = depth_max
        self._at = 0
        self._places = Places()
        self._lengths: dict[KeyPath, int] = {}

    def scan(self) -> Places:
        prefix: KeyPath = ()
        try:
            while self._skip():
                if self._text[self._at] == "[":
                    prefix = self._header()
                elif not self._pair(prefix, depth=1):
                    self._at += 1
        except _TooDeepError:
            self._places.too_deep = self._at
        return self._places

    def _skip(self) -> bool:
        self._at = self._end_of(_TOML_SKIP)
        return self._at < len(self._text)

    def _end_of(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        return match.end() if match else self._at

    def _header(self) -> KeyPath:
        """Read `[a.b]` or `[[a.b]]`; return the path that the keys after it stand under."""
        is_array = self._text.startswith("[[", self._at)
        self._at += 2 if is_array else 1
        keys = self._keys()
        path: KeyPath = ()
        for number, (key, offset) in enumerate(keys, start=1):
            path = (*path, key)
            self._places.record(path, offset)
            if number < len(keys) or not is_array:
                if path in self._lengths:
                    path = (*path, self._lengths[path] - 1)
                continue
            index = self._lengths.get(path, 0)
            self._lengths[path] = index + 1
            path = (*path, index)
            self._places.record(path, offset)
        newline = self._text.find("\n", self._at)
        self._at = len(self._text) if newline < 0 else newline
        return path

    def _keys(self) -> list[tuple[str, int]]:
        """Read a dotted key; what is left starts after it and its blanks."""
        keys: list[tuple[str, int]] = []
        while True:
            self._at = self._end_of(_TOML_BLANK)
            match = _TOML_KEY.match(self._text, self._at)
            if match is None:
                return keys
            if len(keys) == self._depth_max:
                raise _TooDeepError
            keys.append((self._plain(match.group()), match.start()))
            self._at = match.end()
            self._at = self._end_of(_TOML_BLANK)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _plain(self, token: str) -> str:
        if token.startswith("'"):
            return token[1:-1]
        return self._decode_key(token) if token.startswith('"') else token

    def _pair(self, prefix: KeyPath, *, depth: int) -> bool:
        """Read `key = value`; return False if none stands here."""
        keys = self._keys()
        if not keys or not self._text.startswith("=", self._at):
            return False
        path = prefix
        for key, offset in keys:
            path = (*path, key)
            self._places.record(path, offset)
        self._at += 1
        self._value(path, depth=depth)
        return True

    def _value(self, path: KeyPath, *, depth: int) -> None:
        self._at = self._end_of(_TOML_BLANK)
        if self._text.startswith(("[", "{"), self._at):
            if depth == self._depth_max:
                raise _TooDeepError
            self._container(path, depth=depth + 1)
        else:
            self._at = self._end_of(_TOML_SCALAR)

    def _container(self, path: KeyPath, *, depth: int) -> None:
        is_array = self._text[self._at] == "["
        end = "]" if is_array else "}"
        self._at += 1
        index = 0
        while self._skip():
            char = self._text[self._at]
            if char == end:
                self._at += 1
                return
            if char == ",":
                self._at += 1
            elif is_array:
                self._places.record((*path, index), self._at)
                before = self._at
                self._value((*path, index), depth=depth)
                index += 1
                self._at = max(self._at, before + 1)
            elif not self._pair(path, depth=depth):
                self._at += 1
