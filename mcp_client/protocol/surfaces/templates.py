"""URI templates (RFC 6570) expanded, and URIs matched back to them; it runs no regular expression.

The templates are the servers' words, so they are read here before the library sees them.
"""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits

__all__ = ["expand_template", "match_template", "template_variables"]


@dataclass(frozen=True, slots=True)
class _Expression:
    """What stands in braces. `plain` is true where no variable has a modifier."""

    operator: str
    names: tuple[str, ...]
    plain: bool


_Part = str | _Expression

_OPERATORS: Final = "+#./;?&"
_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-._~%")
_RESERVED: Final = frozenset(":/?#[]@!$&'()*+,;=")
_NAME_CHARS: Final = frozenset(string.ascii_letters + string.digits + "_.%")
_SEPARATORS: Final = {"": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}
_PREFIXES: Final = {"": "", "+": "", "#": "#", ".": ".", "/": "/", ";": ";", "?": "?", "&": "&"}
_NAMED: Final = frozenset(";?&")


def template_variables(template: str, limits: ClientLimits) -> tuple[str, ...]:
    """Return the names of a template's variables in their order, each once.

    Raises LocalProtocolError if it is no template, or one over its bounds.
    """
    parts = _parse(template, limits)
    names = (name for part in parts if isinstance(part, _Expression) for name in part.names)
    return tuple(dict.fromkeys(names))


def expand_template(
    template: str, values: Mapping[str, str | Sequence[str]], limits: ClientLimits
) -> str:
    """Return the URI that a template makes of values; a variable without a value is left out.

    Raises LocalProtocolError if it is no template, a value is for no variable of it, or the
    template or its URI is over a bound.
    """
    unknown = set(values) - set(template_variables(template, limits))
    if unknown:
        raise LocalProtocolError("a value is for no variable of the template", stage="send")
    uri = _expand(template, values)
    if len(uri) > limits.uri_chars_max:
        raise LocalProtocolError(
            f"the URI has more than {limits.uri_chars_max} characters", stage="send"
        )
    return uri


def match_template(template: str, uri: str, limits: ClientLimits) -> Mapping[str, str] | None:
    """Return values of which the template makes exactly this URI, or None if none are found.

    Each variable gets at least one character, unless its whole expression may be left out. Where
    several readings are possible, later expressions take the least. Templates with the modifiers
    `*` and `:n` are not matched. Takes time in proportion to URI and template.

    Raises LocalProtocolError if it is no template, or one over its bounds.
    """
    parts = _parse(template, limits)
    if len(uri) > limits.uri_chars_max:
        return None
    if not all(part.plain for part in parts if isinstance(part, _Expression)):
        return None
    values = _values(uri, parts, _reach(uri, parts))
    # whatever the reading was: what does not lead back to the URI is no match
    return values if values is not None and _expand(template, values) == uri else None


def _expand(template: str, values: Mapping[str, str | Sequence[str]]) -> str:
    from uritemplate import expand
    from uritemplate.variable import VariableValue

    given: dict[str, VariableValue] = {
        name: value if isinstance(value, str) else list(value) for name, value in values.items()
    }
    return expand(template, given)


# ---------------------------------------------------------------------------------------- reading


def _parse(template: str, limits: ClientLimits) -> tuple[_Part, ...]:
    if len(template) > limits.uri_chars_max:
        raise _malformed(f"it has more than {limits.uri_chars_max} characters")
    parts: list[_Part] = []
    rest = template
    while rest:
        literal, brace, rest = rest.partition("{")
        if "}" in literal:
            raise _malformed("a brace is closed that was not opened")
        if literal:
            parts.append(literal)
        if brace:
            inside, closed, rest = rest.partition("}")
            if not closed:
                raise _malformed("a brace is not closed")
            parts.append(_parse_expression(inside))
        if len(parts) > limits.template_parts_max:
            raise _malformed(f"it has more than {limits.template_parts_max} parts")
    return tuple(parts)


def _parse_expression(inside: str) -> _Expression:
    operator = inside[:1] if inside[:1] in _OPERATORS else ""
    names: list[str] = []
    plain = True
    for variable in inside[len(operator) :].split(","):
        name, colon, length = variable.removesuffix("*").partition(":")
        plain = plain and name == variable
        # RFC 6570: a length is one to four digits
        if colon and not (length.isascii() and length.isdigit() and len(length) <= 4):
            raise _malformed("a variable has a modifier that there is not")
        if not name or not set(name) <= _NAME_CHARS:
            raise _malformed("a variable has no name, or an operator is not known")
        names.append(name)
    return _Expression(operator, tuple(names), plain)


def _malformed(detail: str) -> LocalProtocolError:
    return LocalProtocolError(f"the URI template cannot be used: {detail}", stage="send")


# --------------------------------------------------------------------------------------- matching


def _reach(uri: str, parts: Sequence[_Part]) -> list[set[int]]:
    """Return for each part where in the URI it may begin, and at last where the template may end."""
    reached: list[set[int]] = [{0}]
    for part in parts:
        starts = reached[-1]
        if isinstance(part, str):
            ends = {start + len(part) for start in starts if uri.startswith(part, start)}
        else:
            ends = _ends(uri, starts, part)
        reached.append(ends)
    return reached


def _ends(uri: str, starts: set[int], part: _Expression) -> set[int]:
    prefix = _PREFIXES[part.operator]
    allowed = _chars(part)
    # with a prefix the whole expression may have been left out
    ends = set(starts) if prefix else set[int]()
    open_ = False
    for at, char in enumerate(uri):
        begins = at in starts and (not prefix or char == prefix)
        open_ = (open_ or begins) and char in allowed
        if open_:
            ends.add(at + 1)
    return ends


def _chars(part: _Expression) -> frozenset[str]:
    if part.operator in ("+", "#"):
        return _UNRESERVED | _RESERVED
    own = {_PREFIXES[part.operator], _SEPARATORS[part.operator]}
    return _UNRESERVED | own | ({"="} if part.operator in _NAMED else set[str]())


def _values(
    uri: str, parts: Sequence[_Part], reached: Sequence[set[int]]
) -> Mapping[str, str] | None:
    """Go back from the end of the URI, along what can be reached from its beginning."""
    end = len(uri)
    if end not in reached[-1]:
        return None
    values: dict[str, str] = {}
    for part, starts in zip(reversed(parts), reversed(reached[:-1]), strict=True):
        if isinstance(part, str):
            end -= len(part)
            continue
        found = _last_reading(uri, end, starts, part)
        if found is None:
            return None
        end, read = found
        for name, value in read.items():
            if values.setdefault(name, value) != value:
                return None
    return values


def _last_reading(
    uri: str, end: int, starts: set[int], part: _Expression
) -> tuple[int, Mapping[str, str]] | None:
    """Return where the shortest text that ends there and fits begins, and what it says."""
    prefix = _PREFIXES[part.operator]
    allowed = _chars(part)
    for start in range(end - 1, -1, -1):
        if uri[start] not in allowed:
            break
        if start in starts and uri.startswith(prefix, start):
            read = _read(uri[start + len(prefix) : end], part)
            if read is not None:
                return start, read
    return (end, {}) if prefix and end in starts else None


def _read(text: str, part: _Expression) -> Mapping[str, str] | None:
    """Return the values of an expression's text, without its prefix; None if it does not fit."""
    single = len(part.names) == 1
    texts = [text] if single else text.split(_SEPARATORS[part.operator])
    if part.operator in _NAMED:
        pairs = [each.partition("=")[::2] for each in texts]
    elif len(texts) == len(part.names):
        pairs = list(zip(part.names, texts, strict=True))
    else:
        return None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name not in part.names or name in values:
            return None
        if not value and part.operator not in _NAMED:
            return None
        try:
            values[name] = unquote(value, errors="strict")
        except UnicodeDecodeError:
            return None
    return values
