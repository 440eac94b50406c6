"""What a file says twice in one list: read from its tree, since a rule keeps a set. Refuses nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.errors import Place
from policies.model import Source
from policies.parsing.syntax import Node, Word, tree_of

__all__ = ["Repeat", "repeats_in"]

_OF_WORDS: Final[Mapping[str, str]] = {
    "roles": "role",
    "set": "server",
    "trust": "server",
    "for_role": "role",
    "for_agent": "agent",
    "below_role": "role",
    "below_agent": "agent",
    "redact": "argument",
    "keep": "argument",
    "only": "argument",
    "host": "host",
    "cidr": "network",
    "digest": "digest",
    "day": "day",
    "by": "rule",
}
"""Lists whose members are words, and what one of them is."""
_OF_NODES: Final[Mapping[str, tuple[str, str]]] = {
    "targets": ("target", "target"),
    "one_of": ("literal", "value"),
    "after": ("server", "server"),
}
"""Lists whose members are nodes: of which rule, and what one of them is."""
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
"""Alternatives of a name; one that was parsed has no other braces."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A member of a list that stands in it before: what it is, as it is written, and where."""

    what: str
    text: str
    place: Place


def repeats_in(source: Source) -> Iterator[Repeat]:
    """Yield what lists of a file say twice, in its order.

    Raises PolicyError for a file that cannot be parsed.
    """
    waiting = [tree_of(source.text, source.path)]
    while waiting:
        node = waiting.pop()
        waiting += reversed(node.nodes)
        seen: set[tuple[str, str]] = set()
        for what, key, word in _members(node):
            if key in seen:
                yield Repeat(what, key[1], Place(source.path, word.line, word.column))
            seen.add(key)


def _members(node: Node) -> Iterator[tuple[str, tuple[str, str], Word]]:
    """Yield the members of a list: what each is, what it is told apart by, and where it begins."""
    if node.rule in _OF_WORDS:
        # a set's own name comes first
        for word in node.words[node.rule == "set" :]:
            # a name and a string that says it are one server
            yield _OF_WORDS[node.rule], ("", word.text.strip('"')), word
    elif node.rule in _OF_NODES:
        rule, what = _OF_NODES[node.rule]
        for inner in node.nodes:
            if inner.rule == rule:
                # 1 and "1" are two values
                kind = inner.start().terminal if rule == "literal" else ""
                yield what, (kind, " ".join(_texts(inner)).replace(" /", "/")), inner.start()
    for word in node.words:
        if word.terminal == "NAMES":
            for at, inside in enumerate(_BRACES.findall(word.text)):
                for name in inside.split(","):
                    yield "name", (str(at), name.strip()), word


def _texts(node: Node) -> Iterator[str]:
    for child in node.children:
        if isinstance(child, Node):
            yield from _texts(child)
        else:
            yield str(child)
