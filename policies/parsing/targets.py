"""On what and by whom, from tree to value: servers, names, sinks, roles, agents, depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from policies.errors import nearest_word
from policies.model import DepthBound, Kind, Names, Target, Who
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node, Word
from policies.patterns import PatternError, expand_braces, parse_uri_pattern

__all__ = ["TargetReader", "read_servers", "read_who", "server_name", "visible"]


def visible(word: Word, what: str, literals: Literals) -> str:
    """Return a string that people can tell apart: an id, a server, an agent."""
    text = literals.plain(word)
    if not text.strip() or not text.isprintable():
        literals.refuse(f"{what} is visible text", word)
    literals.bound(len(text), literals.limits.name_chars_max, "characters", word)
    return text


def server_name(word: Word, literals: Literals) -> str:
    """Return the name of one server."""
    if word.terminal == "NAME":
        return literals.name(word)
    name = visible(word, "a server", literals)
    if "*" in name:
        literals.refuse("a server has no `*`; write `any server` for all", word)
    return name


def read_servers(
    nodes: Iterable[Node], literals: Literals, sets: Mapping[str, frozenset[str]]
) -> tuple[frozenset[str] | None, tuple[str, ...]]:
    """Return the servers that some `server` nodes name, None for any, and how they are written."""
    found: set[str] = set()
    written: list[str] = []
    everywhere = False
    for node in nodes:
        (word,) = node.words
        if word.terminal == "STARRED":
            _refuse_star(word, literals)
        if word.terminal == "ANY_SERVER":
            everywhere = True
            written.append("any server")
        elif word.terminal == "NAME" and word.text in sets:
            found |= sets[word.text]
            written.append(word.text)
        else:
            name = server_name(word, literals)
            found.add(name)
            written.append(name)
    return (None if everywhere or not written else frozenset(found)), tuple(written)


def read_who(nodes: Iterable[Node], literals: Literals, roles: Iterable[str] | None) -> Who:
    """Return whom a rule is about. `roles` are those that may be named; None is any."""
    who = Who()
    for node in nodes:
        match node.rule:
            case "for_role":
                who = replace(who, roles=_roles(node, literals, roles))
            case "for_agent":
                who = replace(who, agents=_agents(node, literals))
            case "below_role":
                who = replace(who, below_roles=_roles(node, literals, roles))
            case "below_agent":
                who = replace(who, below_agents=_agents(node, literals))
            case "depth":
                who = replace(who, depth=_depth(node, literals))
            case "surface":
                who = replace(who, interactive=node.words[0].terminal == "INTERACTIVE")
            case _:
                pass
    return who


class TargetReader:
    """Reads targets, with the sets and sinks that are declared so far."""

    def __init__(
        self,
        literals: Literals,
        sets: Mapping[str, frozenset[str]],
        sinks: Mapping[str, tuple[Target, ...]],
    ) -> None:
        self._literals = literals
        self._sets = sets
        self._sinks = sinks

    def targets(self, node: Node) -> tuple[Target, ...]:
        """Return all targets of a list, those of its sinks among them."""
        literals = self._literals
        found: list[Target] = []
        for inner in node.nodes:
            found += self._sink(inner) if inner.rule == "sink" else (self._target(inner),)
            literals.bound(len(found), literals.limits.targets_max, "targets", inner.start())
        return tuple(found)

    def _sink(self, node: Node) -> tuple[Target, ...]:
        name = node.words[1]
        if name.text not in self._sinks:
            self._literals.refuse(
                f"sink `{name.text}` is not declared",
                name,
                nearest=nearest_word(name.text, self._sinks),
            )
        return tuple(replace(target, sink=name.text) for target in self._sinks[name.text])

    def _target(self, node: Node) -> Target:
        literals = self._literals
        server = node.nodes[0].words[0]
        kind_node = node.only("kind")
        kind = None if kind_node is None else Kind(kind_node.words[0].text)
        servers, written = read_servers(node.nodes[:1], literals, self._sets)
        return Target(
            servers=servers,
            names=self._names(node.words[0], kind) if node.words else _ALL_NAMES,
            kind=kind,
            written=written[0],
            place=literals.place(server),
        )

    def _names(self, word: Word, kind: Kind | None) -> Names:
        literals = self._literals
        try:
            if word.terminal == "NAMES":
                text = word.text[1:]
                return Names(text=text, alternatives=expand_braces(text, literals.limits))
            text = literals.plain(word)
            if kind is Kind.RESOURCE:
                return parse_uri_pattern(text, literals.limits)
        except PatternError as error:
            literals.refuse(str(error), word)
        if not text:
            literals.refuse("a name is missing", word)
        literals.bound(len(text), literals.limits.pattern_chars_max, "characters", word)
        return Names(text=text, alternatives=(text,))


_ALL_NAMES = Names(text="*", alternatives=("*",))


def _refuse_star(word: Word, literals: Literals) -> None:
    literals.refuse(
        f"`{word.text}` is not a server: name one, name a set, or write `any server`",
        word,
        nearest="any server",
    )


def _roles(node: Node, literals: Literals, roles: Iterable[str] | None) -> frozenset[str]:
    literals.bound(len(node.words), literals.limits.roles_max, "roles", node.words[0])
    known = None if roles is None else tuple(roles)
    for word in node.words:
        if known is not None and word.text not in known:
            literals.refuse(
                f"role `{word.text}` is not declared",
                word,
                nearest=nearest_word(word.text, known),
            )
    return frozenset(word.text for word in node.words)


def _agents(node: Node, literals: Literals) -> tuple[str, ...]:
    literals.bound(len(node.words), literals.limits.roles_max, "agents", node.words[0])
    return tuple(visible(word, "an agent", literals) for word in node.words)


def _depth(node: Node, literals: Literals) -> DepthBound:
    sign, word = node.words
    number = literals.number(word)
    if isinstance(number, float) or number < 0:
        literals.refuse("a depth is a whole number, 0 or more", word)
    return DepthBound(high=number) if sign.terminal == "LE" else DepthBound(low=number)
