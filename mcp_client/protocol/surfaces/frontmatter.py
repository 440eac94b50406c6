"""The YAML head of a SKILL.md, compared with what a server listed: bounded; nothing is constructed.

The head is read as events and compared as texts. No value is made of it, no tag is heeded, and
what only a program would write (anchors, aliases, tags, several documents) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

import yaml

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.modern.limits import ModernLimits

__all__ = ["FrontmatterError", "says_the_same", "split_head"]

FLOW_BRACKETS_MAX: Final = 256
"""Brackets in a head: nested by the thousands they cost a reader written in Python seconds."""
_DEPTH_MAX: Final = 16

_FENCE: Final = re.compile(r"(?m)^---[ \t]*$")
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,18}").fullmatch
_FLOAT: Final = re.compile(
    r"[-+]?(?:[0-9]{1,18}\.[0-9]{0,18}|\.[0-9]{1,18})(?:[eE][-+]?[0-9]{1,2})?"
)

_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})
_NULL: Final = frozenset({"", "~", "null"})


class FrontmatterError(ValueError):
    """A head that cannot be read. The message is our own text."""


@dataclass(frozen=True, slots=True)
class _Scalar:
    text: str
    plain: bool


_Node: TypeAlias = "_Scalar | list[_Node] | dict[str, _Node]"


def split_head(content: bytes) -> str:
    """Return the head of a SKILL.md, between its fences. Raises FrontmatterError if it has none."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise FrontmatterError("the file is not UTF-8") from None
    fence = _FENCE.match(text)
    end = None if fence is None else _FENCE.search(text, fence.end() + 1)
    if fence is None or end is None:
        raise FrontmatterError("the file does not begin with a head between lines of dashes")
    return text[fence.end() + 1 : end.start()]


def says_the_same(head: str, listed: Mapping[str, object], bounds: ModernLimits) -> bool:
    """Return whether a head says what a server listed, field by field.

    What YAML leaves open is settled in favour of the server: a plain `1.10` is the text and the
    number, a plain `yes` the text and true. Raises FrontmatterError if the head cannot be read.
    """
    if len(head.encode()) > bounds.frontmatter_bytes_max:
        raise FrontmatterError(f"the head has more than {bounds.frontmatter_bytes_max} bytes")
    if head.count("[") + head.count("{") > FLOW_BRACKETS_MAX:
        raise FrontmatterError(f"the head has more than {FLOW_BRACKETS_MAX} brackets")
    return _same(_read(head, bounds), listed)


def _read(head: str, bounds: ModernLimits) -> _Node:
    try:
        # events alone: nothing is resolved or constructed, whatever loader it is
        events = _counted(yaml.parse(head, Loader=_LOADER), bounds.frontmatter_nodes_max)
        _expect(events, yaml.StreamStartEvent)
        _expect(events, yaml.DocumentStartEvent)
        node = _node(events, next(events), 0)
        _expect(events, yaml.DocumentEndEvent)
        _expect(events, yaml.StreamEndEvent)
    except (yaml.YAMLError, StopIteration, RecursionError, ValueError) as error:
        if isinstance(error, FrontmatterError):
            raise
        raise FrontmatterError("the head is not YAML") from None
    return node


_LOADER: Final = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _counted(events: Iterator[yaml.Event], most: int) -> Iterator[yaml.Event]:
    for count, event in enumerate(events):
        # a collection has two events, and the document four
        if count > 2 * most + 4:
            raise FrontmatterError(f"the head has more than {most} values")
        yield event


def _expect(events: Iterator[yaml.Event], kind: type[yaml.Event]) -> None:
    if not isinstance(next(events), kind):
        raise FrontmatterError("the head is one YAML document")


def _node(events: Iterator[yaml.Event], event: yaml.Event, depth: int) -> _Node:
    if depth > _DEPTH_MAX:
        raise FrontmatterError(f"the head is nested more than {_DEPTH_MAX} deep")
    if not isinstance(event, yaml.NodeEvent) or isinstance(event, yaml.AliasEvent) or event.anchor:
        raise FrontmatterError("the head has anchors or aliases")
    if isinstance(event, yaml.ScalarEvent):
        if event.tag is not None:
            raise FrontmatterError("the head has tags")
        return _Scalar(event.value, event.implicit[0])
    if not isinstance(event, yaml.CollectionStartEvent) or event.tag is not None:
        raise FrontmatterError("the head has tags")
    if isinstance(event, yaml.SequenceStartEvent):
        return [*_items(events, depth)]
    return _mapping(events, depth)


def _items(events: Iterator[yaml.Event], depth: int) -> Iterator[_Node]:
    while not isinstance(event := next(events), yaml.SequenceEndEvent):
        yield _node(events, event, depth + 1)


def _mapping(events: Iterator[yaml.Event], depth: int) -> dict[str, _Node]:
    found: dict[str, _Node] = {}
    while not isinstance(event := next(events), yaml.MappingEndEvent):
        key = _node(events, event, depth + 1)
        if not isinstance(key, _Scalar) or key.text in found:
            raise FrontmatterError("a field of the head is given twice, or is no text")
        found[key.text] = _node(events, next(events), depth + 1)
    return found


def _same(node: _Node, listed: object) -> bool:
    if isinstance(node, _Scalar):
        return _same_scalar(node, listed)
    if isinstance(node, list):
        if not isinstance(listed, list) or len(cast("list[object]", listed)) != len(node):
            return False
        pairs = zip(node, cast("list[object]", listed), strict=True)
        return all(_same(each, other) for each, other in pairs)
    members = as_object(listed)
    if members is None or members.keys() != node.keys():
        return False
    return all(_same(each, members[name]) for name, each in node.items())


def _same_scalar(scalar: _Scalar, listed: object) -> bool:
    text = scalar.text
    if isinstance(listed, str):
        return listed == text
    if not scalar.plain:
        return False
    if listed is None:
        return text.lower() in _NULL
    if isinstance(listed, bool):
        return text.lower() in (_TRUE if listed else _FALSE)
    if isinstance(listed, int | float):
        number = _INTEGER(text) or _FLOAT.fullmatch(text)
        return number is not None and float(text) == listed
    return False
