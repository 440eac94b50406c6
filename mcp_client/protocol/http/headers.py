"""What a header says of a message (MCP 2026-07-28): encoding, and arguments mirrored; it sends nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.jsonrpc import as_object

__all__ = [
    "HeaderMark",
    "HeaderMarkError",
    "decode_value",
    "encode_value",
    "mirrored_headers",
    "read_header_marks",
]

MARK: Final = "x-mcp-header"
PARAM_PREFIX: Final = "Mcp-Param-"
INTEGER_MAX: Final = 2**53 - 1
"""The largest integer that every reader of JSON holds exactly."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_PLAIN: Final = re.compile(r"[\x20-\x7e]*").fullmatch
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_TYPES: Final = ("string", "integer", "boolean")

# Keywords of JSON Schema that hold schemas, by the shape in which they hold them. `properties`
# alone keeps a place reachable; data such as `default` or `enum` holds no schema.
_HOLD_ONE: Final = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_HOLD_MANY: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_HOLD_NAMED: Final = (
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
)


class HeaderMarkError(ValueError):
    """A tool asks for a header that cannot be made: it is dropped. The message is our own text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderMark:
    """One argument that a header mirrors.

    Attributes:
        header: the name of the header.
        path: the members that lead to the argument.
        type: the type that the schema gives it: string, integer or boolean.
    """

    header: str
    path: tuple[str, ...]
    type: str


def encode_value(value: str) -> str:
    """Return a text as a header can carry it: plain if it is, else in base64 between markers.

    Raises LocalProtocolError for a lone surrogate.
    """
    # a value that looks encoded is encoded, or its reader would take it for what it is not
    looks_encoded = value.startswith(_PREFIX) and value.endswith(_SUFFIX)
    if _PLAIN(value) and value == value.strip(" ") and not looks_encoded:
        return value
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("a text holds a lone surrogate", stage="send") from None
    return f"{_PREFIX}{base64.b64encode(raw).decode()}{_SUFFIX}"


def decode_value(value: str) -> str | None:
    """Return what `encode_value` was given; None if the markers hold nothing that it makes."""
    if not (value.startswith(_PREFIX) and value.endswith(_SUFFIX)):
        return value
    payload = value[len(_PREFIX) : -len(_SUFFIX)]
    try:
        raw = base64.b64decode(payload, validate=True)
        text = raw.decode()
    except ValueError:
        return None
    return text if base64.b64encode(raw).decode() == payload else None


def read_header_marks(schema: Mapping[str, object]) -> tuple[HeaderMark, ...]:
    """Return the arguments that an input schema marks to be mirrored.

    Raises HeaderMarkError if a mark is empty, no token, given twice (in any case of letters), on
    something else than a string, an integer or a boolean, or at a place that not `properties`
    alone lead to.
    """
    marks: list[HeaderMark] = []
    seen: set[str] = set()
    for path, place in _places(schema):
        if MARK not in place:
            continue
        token, kind = place[MARK], place.get("type")
        if not path:
            raise HeaderMarkError("a header is asked for where no argument can be named")
        if not isinstance(token, str) or not _TOKEN(token):
            raise HeaderMarkError("a header's name is no token")
        if not isinstance(kind, str) or kind not in _TYPES:
            raise HeaderMarkError("a header is asked for what is no string, integer or boolean")
        if token.lower() in seen:
            raise HeaderMarkError("a header is asked for twice")
        seen.add(token.lower())
        marks.append(HeaderMark(header=PARAM_PREFIX + token, path=path, type=kind))
    return tuple(marks)


def mirrored_headers(
    marks: Sequence[HeaderMark], arguments: Mapping[str, object]
) -> tuple[tuple[str, str], ...]:
    """Return the headers for one call. An argument that is absent or null has none.

    Neither has one that is of another type than its mark says: the server refuses what does not
    fit its schema. Raises LocalProtocolError for an integer past what every reader can hold.
    """
    headers: list[tuple[str, str]] = []
    for mark in marks:
        text = _text(mark, _find(arguments, mark.path))
        if text is not None:
            headers.append((mark.header, encode_value(text)))
    return tuple(headers)


def _text(mark: HeaderMark, value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower() if mark.type == "boolean" else None
    if isinstance(value, str):
        return value if mark.type == "string" else None
    if not isinstance(value, int) or mark.type != "integer":
        return None
    if abs(value) > INTEGER_MAX:
        raise LocalProtocolError(
            f"an integer that a header mirrors is at most {INTEGER_MAX}", stage="send"
        )
    return str(value)


def _find(arguments: Mapping[str, object], path: Sequence[str]) -> object:
    place: object = arguments
    for member in path:
        members = as_object(place)
        if members is None:
            return None
        place = members.get(member)
    return place


def _places(schema: object) -> Iterator[tuple[tuple[str, ...], Mapping[str, object]]]:
    """Yield each schema within a schema, with the path to its argument; an empty one if none leads.

    References are not followed: what they lead to is a place of its own.
    """
    waiting: list[tuple[object, tuple[str, ...], bool]] = [(schema, (), True)]
    while waiting:
        value, path, reachable = waiting.pop()
        place = as_object(value)
        if place is None:
            continue
        yield (path if reachable else ()), place
        for name, below in (as_object(place.get("properties")) or {}).items():
            waiting.append((below, (*path, name), reachable))
        waiting += [(place[keyword], (), False) for keyword in _HOLD_ONE if keyword in place]
        for keyword in _HOLD_MANY:
            several = place.get(keyword)
            if isinstance(several, list):
                waiting += [(below, (), False) for below in cast("list[object]", several)]
        for keyword in _HOLD_NAMED:
            named = as_object(place.get(keyword)) or {}
            waiting += [(below, (), False) for below in named.values()]
