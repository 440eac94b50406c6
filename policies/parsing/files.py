"""A whole policy file, from text to value: policies, tests, assertions, includes."""

from __future__ import annotations

import posixpath
import re
from itertools import islice
from typing import Final
from unicodedata import category

from policies.errors import Place, PolicyError, excerpt_of
from policies.limits import PolicyLimits
from policies.model import Assertion, Case, Include, Policy, PolicyFile, Target
from policies.parsing.cases import ClaimReader
from policies.parsing.literals import Literals
from policies.parsing.rules import PolicyReader
from policies.parsing.syntax import Node, tree_of

__all__ = ["parse", "parse_file"]

_HIDDEN: Final = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Categories of Unicode: controls, formats, ends of lines and paragraphs."""
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_ESCAPED_MAX: Final = 0xFFFF


def parse(text: str, path: str, *, limits: PolicyLimits | None = None) -> tuple[Policy, ...]:
    """Read the policies of one file. `path` is only for messages.

    Parameters (`${name}`) stay open; `load` fills them in.

    Raises:
        PolicyError: the first thing that is wrong.
    """
    return parse_file(text, path, limits=limits).policies


def parse_file(text: str, path: str, *, limits: PolicyLimits | None = None) -> PolicyFile:
    """Read all of one file. `path` is only for messages.

    Raises:
        PolicyError: the first thing that is wrong.
    """
    bounds = limits or PolicyLimits()
    top = Place(path, 1, 1)
    # characters first, so that an enormous text is not copied to be measured
    if len(text) > bounds.source_bytes_max or _size(text, top) > bounds.source_bytes_max:
        raise PolicyError(f"a policy file has at most {bounds.source_bytes_max} bytes", place=top)
    _refuse_hidden(text, path)
    return _FileReader(Literals(text, path, bounds)).file(tree_of(text, path))


class _FileReader:
    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._policies: dict[str, Policy] = {}
        self._sets: dict[str, frozenset[str]] = {}
        self._sinks: dict[str, tuple[Target, ...]] = {}
        self._includes: dict[str, Include] = {}

    def file(self, tree: Node) -> PolicyFile:
        literals, limits = self._literals, self._literals.limits
        for node in tree.nodes:
            if node.rule == "policy":
                self._policy(node)
            elif node.rule == "include":
                self._include(node)
        reader = ClaimReader(literals, self._sets, self._sinks)
        tests: list[Case] = []
        assertions: list[Assertion] = []
        for node in tree.nodes:
            if node.rule == "tests":
                for inner in node.nodes:
                    tests.append(reader.case(inner))
                    literals.bound(len(tests), limits.cases_max, "tests", tests[-1].place)
            elif node.rule in ("never", "child_subset"):
                assertions.append(reader.assertion(node))
                most = limits.assertions_max
                literals.bound(len(assertions), most, "assertions", assertions[-1].place)
        return PolicyFile(
            path=literals.path,
            policies=tuple(self._policies.values()),
            tests=tuple(tests),
            assertions=tuple(assertions),
            includes=tuple(self._includes.values()),
        )

    def _policy(self, node: Node) -> None:
        literals = self._literals
        policy = PolicyReader(literals).policy(node)
        if policy.name in self._policies:
            literals.refuse(f"policy `{policy.name}` is in this file already", policy.place)
        self._policies[policy.name] = policy
        literals.bound(len(self._policies), literals.limits.policies_max, "policies", policy.place)
        # tests and assertions may use what any policy of the file declares
        for each in policy.sets:
            self._sets[each.name] = self._sets.get(each.name, frozenset()) | each.servers
        for sink in policy.sinks:
            self._sinks[sink.name] = (*self._sinks.get(sink.name, ()), *sink.targets)

    def _include(self, node: Node) -> None:
        literals = self._literals
        (word,) = node.words
        path = literals.plain(word)
        plain = posixpath.normpath(path)
        if not path.endswith(".policy") or path.startswith("/") or plain.split("/")[0] == "..":
            literals.refuse(
                "an included file ends in `.policy` and lies beside this one or below it", word
            )
        if "\\" in path or not path.isprintable():
            literals.refuse("the path of an included file has slashes and visible letters", word)
        if plain in self._includes:
            literals.refuse("this file is included already", word)
        self._includes[plain] = Include(plain, literals.place(word))
        literals.bound(len(self._includes), literals.limits.includes_max, "includes", word)


def _refuse_hidden(text: str, path: str) -> None:
    """Refuse characters that show a file otherwise than it is read.

    One that ends a line for an editor alone would have a rule stand in a comment; one that turns the
    line around, or is not seen at all, would have another name be read than is written.
    """
    hidden = [char for char in set(text) - set("\n\t\r") if category(char) in _HIDDEN]
    places = [text.index(char) for char in hidden]
    places += [found.start() for found in islice(_LONE_RETURN.finditer(text), 1)]
    if not places:
        return
    at = min(places)
    char = text[at]
    place = Place(path, text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
    advice = (
        f"; in a string it is written `\\u{ord(char):04x}`" if ord(char) <= _ESCAPED_MAX else ""
    )
    raise PolicyError(
        f"U+{ord(char):04X} is not seen, or shows the file otherwise than it is read{advice}",
        place=place,
        excerpt=excerpt_of(text, place),
    )


def _size(text: str, top: Place) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise PolicyError("a policy file is valid Unicode text", place=top) from None
