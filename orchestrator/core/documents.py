"""Reads JSON and TOML texts within bounds, and knows the place of every key. Opens no file."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn, TypeVar, cast, overload

import rfc8785

from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean
from orchestrator.core.places import (
    KeyPath,
    Places,
    json_places,
    line_and_column,
    toml_places,
)
from orchestrator.core.plain import plain_bytes

__all__ = [
    "Document",
    "KeyPath",
    "Table",
    "canonical_bytes",
    "canonical_digest",
    "read_bounded",
    "read_json",
    "read_toml",
]

_T = TypeVar("_T")

_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max
_DEPTH_MAX: Final = 32
"""Tables and lists inside one another: no file of ours has more than six."""
_KEY_PARTS: Final = re.compile(
    r"(?:^|[\[{,])[ \t]*(?:(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+)"
    f"{{{_DEPTH_MAX}}}",
    re.MULTILINE,
)
"""A dotted key beyond the depth: the TOML parser of the library takes quadratic time over it."""
_TOML_PLACE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read_json(text: str | bytes, path: str, *, bytes_max: int = _BYTES_MAX) -> Document:
    """Read one JSON object. `path` is for messages only.

    Raises ConfigError, with the place, for what is not UTF-8 or JSON, for a key given twice, for
    NaN and infinities, and past the bounds of size and depth.
    """
    plain = _decoded(text, path, bytes_max)
    twice = False

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal twice
        table = dict(items)
        twice = twice or len(table) != len(items)
        return table

    try:
        value: object = json.loads(
            plain,
            object_pairs_hook=pairs,
            parse_constant=_refuse_number,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        where = Where(path, error.lineno, error.colno)
        raise _syntax_error(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", where) from None
    except ValueError as error:  # a constant that is not JSON, an integer of thousands of digits
        raise _syntax_error(f"not JSON: {error}", Where(path)) from None
    except RecursionError:
        too_deep = _json_places(plain).too_deep or 0
        raise _depth_error(Where(path, *line_and_column(plain, too_deep))) from None
    document = _document(path, plain, value, _json_places)
    duplicate = _json_places(plain).duplicate if twice else None
    if duplicate is not None:
        keys, offset = duplicate
        first = document.where(keys)
        raise ConfigError(
            f"the key {_shown(keys[-1])} is given twice",
            code="E-CONFIG-DUPLICATE-KEY",
            fix=f"remove one; the first is in line {first.line}",
            where=Where(path, *line_and_column(plain, offset)),
        )
    return document


def read_bounded(text: str) -> dict[str, object]:
    """Read an object that the caller has bounded, in bytes and in depth, and keeps no place of.

    Of a key that is given twice the last value counts. Raises ValueError for anything else.
    """
    value = cast("object", _decode_bounded(text))
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return cast("dict[str, object]", value)


def read_toml(text: str | bytes, path: str, *, bytes_max: int = _BYTES_MAX) -> Document:
    """Read one TOML text. `path` is for messages only.

    Raises ConfigError, with the place, for what is not UTF-8 or TOML (a key given twice is not),
    and past the bounds of size and depth.
    """
    plain = _decoded(text, path, bytes_max)
    long_key = _KEY_PARTS.search(plain)
    if long_key is not None:
        raise _depth_error(Where(path, *line_and_column(plain, long_key.start())))
    try:
        value = tomllib.loads(plain)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        if place is None:
            where = Where(path)
        elif place.group(1) is None:
            where = Where(path, *line_and_column(plain, len(plain)))
        else:
            where = Where(path, int(place.group(1)), int(place.group(2)))
        message = _TOML_PLACE.sub("", message)
        raise _syntax_error(f"not TOML: {message[:1].lower()}{message[1:]}", where) from None
    except ValueError as error:  # an integer of thousands of digits, a day that does not exist
        raise _syntax_error(f"not TOML: {error}", Where(path)) from None
    except RecursionError:
        raise _depth_error(Where(path)) from None
    return _document(path, plain, value, _toml_places)


def canonical_bytes(value: object) -> bytes:
    """Return the RFC 8785 form of a JSON value. ValueError if it has none (2**53, NaN, dates)."""
    plain = plain_bytes(value)
    if plain is not None:  # as most definitions are
        return plain
    try:
        return rfc8785.dumps(cast("Any", value))
    except RecursionError:
        raise ValueError("nested too deeply to be written canonically") from None


def canonical_digest(value: object) -> str:
    """Return the SHA-256 of the RFC 8785 form, in hexadecimal. ValueError as `canonical_bytes`."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


class Document:
    """One text that was read: its value, and the place of each key in it."""

    def __init__(
        self, path: str, text: str, root: Mapping[str, object], find: Callable[[str], Places]
    ) -> None:
        self.path = path
        self.root = root
        self._text = text
        self._find = find

    def where(self, keys: KeyPath = ()) -> Where:
        """Return the place of a key; of the nearest thing around it, where it does not exist."""
        for length in range(len(keys), 0, -1):
            offset = self._places.offsets.get(keys[:length])
            if offset is not None:
                return Where(self.path, *line_and_column(self._text, offset))
        return Where(self.path)

    def table(self) -> Table:
        """Return the whole document as a table."""
        return Table(self, (), self.root)

    @cached_property
    def _places(self) -> Places:
        return self._find(self._text)


class _Required:
    pass


_REQUIRED: Final = _Required()


class Table:
    """One object of a document, read key by key. Every error has the place of what is wrong.

    The readers raise ConfigError if the key is missing (where no default is given) or has a value
    of another type. A default comes back as it is.
    """

    def __init__(self, document: Document, keys: KeyPath, value: Mapping[str, object]) -> None:
        self.document = document
        self.keys = keys
        self.value = value

    def __contains__(self, name: str) -> bool:
        return name in self.value

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def where(self, name: str = "") -> Where:
        """Return the place of one key, or of the table itself."""
        return self.document.where((*self.keys, name) if name else self.keys)

    def error(self, message: str, name: str = "", *, why: str = "", fix: str = "") -> ConfigError:
        """Make an error about one value of this table, for what only the caller can judge."""
        return ConfigError(message, code="E-CONFIG-VALUE", why=why, fix=fix, where=self.where(name))

    def only(self, known: Collection[str]) -> None:
        """Raise ConfigError for the first key that is not known, with the nearest that is."""
        for name in self.value:
            if name not in known:
                inside = f" in {self._title()}" if self.keys else ""
                raise ConfigError(
                    f"unknown key {_shown(name)}{inside}",
                    code="E-CONFIG-UNKNOWN-KEY",
                    fix=did_you_mean(name, known),
                    where=self.where(name),
                )

    @overload
    def text(self, name: str) -> str: ...
    @overload
    def text(self, name: str, default: _T) -> str | _T: ...
    def text(self, name: str, default: object = _REQUIRED) -> object:
        """Read a string."""
        value = self._get(name, default)
        if value is default or isinstance(value, str):
            return value
        raise self._type_error(name, "a string", value)

    @overload
    def integer(self, name: str) -> int: ...
    @overload
    def integer(self, name: str, default: _T) -> int | _T: ...
    def integer(self, name: str, default: object = _REQUIRED) -> object:
        """Read a whole number; true and false are none."""
        value = self._get(name, default)
        if value is default or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self._type_error(name, "a whole number", value)

    @overload
    def number(self, name: str) -> float: ...
    @overload
    def number(self, name: str, default: _T) -> float | _T: ...
    def number(self, name: str, default: object = _REQUIRED) -> object:
        """Read a finite number, whole or not."""
        value = self._get(name, default)
        if value is default:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
        raise self._type_error(name, "a finite number", value)

    @overload
    def flag(self, name: str) -> bool: ...
    @overload
    def flag(self, name: str, default: _T) -> bool | _T: ...
    def flag(self, name: str, default: object = _REQUIRED) -> object:
        """Read true or false."""
        value = self._get(name, default)
        if value is default or isinstance(value, bool):
            return value
        raise self._type_error(name, "true or false", value)

    @overload
    def strings(self, name: str) -> tuple[str, ...]: ...
    @overload
    def strings(self, name: str, default: _T) -> tuple[str, ...] | _T: ...
    def strings(self, name: str, default: object = _REQUIRED) -> object:
        """Read a list of strings. The error of a wrong element has the element's place."""
        value = self._get(name, default)
        if value is default:
            return value
        if not isinstance(value, list):
            raise self._type_error(name, "a list of strings", value)
        elements = cast("list[object]", value)
        for index, element in enumerate(elements):
            if not isinstance(element, str):
                raise self._type_error(name, "a list of strings", element, index)
        return tuple(cast("list[str]", elements))

    def choice(self, name: str, allowed: Collection[str], default: str | None = None) -> str:
        """Read one of a few words; the error names the nearest that is allowed."""
        value = self.text(name) if default is None else self.text(name, default)
        if value not in allowed:
            raise self.error(
                f"{_shown(name)} cannot be {_shown(value)}", name, fix=did_you_mean(value, allowed)
            )
        return value

    def table(self, name: str) -> Table:
        """Read a table that must be there."""
        return self._table(name, self._get(name, _REQUIRED))

    def optional(self, name: str) -> Table | None:
        """Read a table that may be missing."""
        return self._table(name, self.value[name]) if name in self.value else None

    def tables(self) -> Iterator[tuple[str, Table]]:
        """Go through a table whose keys are names and whose values are all tables."""
        for name, value in self.value.items():
            yield name, self._table(name, value)

    def table_list(self, name: str) -> tuple[Table, ...]:
        """Read a list of tables; empty if the key is missing."""
        value = self.value.get(name, [])
        if not isinstance(value, list):
            raise self._type_error(name, "a list of tables", value)
        found: list[Table] = []
        for index, element in enumerate(cast("list[object]", value)):
            if not isinstance(element, dict):
                raise self._type_error(name, "a list of tables", element, index)
            element_keys = (*self.keys, name, index)
            found.append(Table(self.document, element_keys, cast("dict[str, object]", element)))
        return tuple(found)

    def _table(self, name: str, value: object) -> Table:
        if not isinstance(value, dict):
            raise self._type_error(name, "a table", value)
        return Table(self.document, (*self.keys, name), cast("dict[str, object]", value))

    def _get(self, name: str, default: object) -> object:
        if name in self.value:
            return self.value[name]
        if default is not _REQUIRED:
            return default
        raise ConfigError(
            f"{self._title()} needs the key {_shown(name)}",
            code="E-CONFIG-MISSING-KEY",
            where=self.where(),
        )

    def _type_error(
        self, name: str, wanted: str, value: object, index: int | None = None
    ) -> ConfigError:
        keys: KeyPath = (*self.keys, name)
        message = f"{_shown(name)} must be {wanted}, not {_kind(value)}"
        if index is not None:
            keys = (*keys, index)
            message = f"{_shown(name)} must be {wanted}; element {index + 1} is {_kind(value)}"
        return ConfigError(message, code="E-CONFIG-TYPE", where=self.document.where(keys))

    def _title(self) -> str:
        if not self.keys:
            return "the file"
        return safe_line(".".join(str(key) for key in self.keys), chars_max=120)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON value")


_decode_bounded: Final = json.JSONDecoder(parse_constant=_no_number).decode


def _document(path: str, text: str, value: object, find: Callable[[str], Places]) -> Document:
    if not isinstance(value, dict):
        raise _syntax_error(f"an object is expected, not {_kind(value)}", Where(path, 1, 1))
    document = Document(path, text, cast("dict[str, object]", value), find)
    too_deep = _first_beyond(cast("dict[str, object]", value))
    if too_deep is not None:
        raise _depth_error(document.where(too_deep))
    return document


def _first_beyond(root: object) -> KeyPath | None:
    """Return the path of a table or list that is nested beyond the bound, if there is one."""
    waiting: list[tuple[KeyPath, object]] = [((), root)]
    while waiting:
        path, value = waiting.pop()
        children: Iterable[tuple[str | int, object]]
        if isinstance(value, dict):
            children = cast("dict[str, object]", value).items()
        elif isinstance(value, list):
            children = enumerate(cast("list[object]", value))
        else:
            continue
        if len(path) == _DEPTH_MAX:
            return path
        waiting.extend(((*path, key), child) for key, child in children)
    return None


def _decoded(text: str | bytes, path: str, bytes_max: int) -> str:
    size = len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        raise ConfigError(
            f"the file is larger than {bytes_max} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=Where(path),
        )
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "the file is not UTF-8", code="E-CONFIG-ENCODING", where=Where(path, line)
        ) from None


def _json_places(text: str) -> Places:
    return json_places(text, decode_key=_decode_key, depth_max=_DEPTH_MAX)


def _toml_places(text: str) -> Places:
    return toml_places(text, decode_key=_decode_key, depth_max=_DEPTH_MAX)


def _decode_key(literal: str) -> str:
    """Decode a quoted key. TOML has an escape more than JSON; a key with it stays as written."""
    try:
        return str(json.loads(literal))
    except ValueError:
        return literal[1:-1]


def _refuse_number(literal: str) -> float:
    raise ValueError(f"{literal[:20]} is not a JSON number, or is too large for one")


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _refuse_number(literal)


def _syntax_error(message: str, where: Where) -> ConfigError:
    message = safe_line(message, reveal=True, chars_max=200)
    return ConfigError(message, code="E-CONFIG-SYNTAX", where=where)


def _depth_error(where: Where) -> ConfigError:
    return ConfigError(
        f"tables or lists are nested more than {_DEPTH_MAX} deep",
        code="E-CONFIG-TOO-DEEP",
        where=where,
    )


def _shown(name: object) -> str:
    return f"'{safe_line(str(name), reveal=True, chars_max=80)}'"


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, list):
        return "a list"
    return "a table" if isinstance(value, dict) else "a date or time"
