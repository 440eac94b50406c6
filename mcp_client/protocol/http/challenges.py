"""What `WWW-Authenticate` says (RFC 9110, 11.6.1), read and bounded; it asks for no credentials."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Challenge", "read_challenges"]

CHALLENGES_MAX: Final = 8
"""Challenges of one response: a server knows two or three schemes."""
PARAMETERS_MAX: Final = 32
"""Parameters of one challenge: the specifications name ten."""
HEADER_CHARS_MAX: Final = 16_384
"""All headers of the kind together."""

_NAME = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER: Final = re.compile(
    rf'({_NAME})[ \t]*=[ \t]*(?:({_NAME})|"((?:[^"\\]|\\.)*)")(?=[ \t]*(?:,|$))'
)
_SCHEME: Final = re.compile(rf"({_NAME})(?:[ \t]+|(?=,|$))")
_TOKEN68: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))")
_SEPARATOR: Final = re.compile(r"[ \t]*(?:,[ \t]*)*")
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Challenge:
    """One scheme that the server would take credentials of. Untrusted.

    Attributes:
        scheme: in lower case, such as `bearer`.
        parameters: by name in lower case; the first of two of one name.
    """

    scheme: str
    parameters: Mapping[str, str]


def read_challenges(values: Iterable[str]) -> tuple[Challenge, ...]:
    """Return the challenges of the headers with these values, as far as they can be read.

    Reading one header ends at what the grammar does not allow. Never raises.
    """
    found: list[Challenge] = []
    chars = 0
    for value in values:
        chars += len(value)
        if chars > HEADER_CHARS_MAX:
            break
        found += _read(value)
    return tuple(found[:CHALLENGES_MAX])


def _read(value: str) -> Iterator[Challenge]:
    at = _skip(value, 0)
    while scheme := _SCHEME.match(value, at):
        at = scheme.end()
        parameters: dict[str, str] = {}
        token = _TOKEN68.match(value, at)
        if token is not None and not _PARAMETER.match(value, at):
            at = token.end()
        at = _skip(value, at)
        while parameter := _PARAMETER.match(value, at):
            name, plain, quoted = parameter.groups()
            if len(parameters) < PARAMETERS_MAX:
                text = plain if quoted is None else _ESCAPE.sub(r"\1", quoted)
                parameters.setdefault(name.lower(), text)
            at = _skip(value, parameter.end())
        yield Challenge(scheme=scheme[1].lower(), parameters=parameters)


def _skip(value: str, at: int) -> int:
    separator = _SEPARATOR.match(value, at)
    return at if separator is None else separator.end()
