"""Policies and their rules, from tree to value: declarations, targets, who, when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policies.errors import Place, PolicyError, nearest_word
from policies.limits import PolicyLimits
from policies.model import (
    DepthBound,
    Effect,
    Kind,
    Names,
    Operation,
    Policy,
    Role,
    Rule,
    ServerSet,
    Target,
)
from policies.parsing.conditions import read_condition
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node, Word, tree_of
from policies.patterns import PatternError, expand_braces, parse_uri_pattern

__all__ = ["parse"]

_VERSION: Final = "v1"


def parse(text: str, path: str, *, limits: PolicyLimits | None = None) -> tuple[Policy, ...]:
    """Read the policies of one file. `path` is only for messages.

    Parameters (`${name}`) stay open; `load` fills them in.

    Raises:
        PolicyError: the first thing that is wrong.
    """
    bounds = limits or PolicyLimits()
    top = Place(path, 1, 1)
    # characters first, so that an enormous text is not copied to be measured
    if len(text) > bounds.source_bytes_max or _size(text, top) > bounds.source_bytes_max:
        raise PolicyError(f"a policy file has at most {bounds.source_bytes_max} bytes", place=top)
    literals = Literals(text, path, bounds)
    policies: dict[str, Policy] = {}
    for node in tree_of(text, path).nodes:
        policy = _PolicyReader(literals).policy(node)
        if policy.name in policies:
            literals.refuse(f"policy `{policy.name}` is in this file already", policy.place)
        policies[policy.name] = policy
        literals.bound(len(policies), bounds.policies_max, "policies", policy.place)
    return tuple(policies.values())


def _size(text: str, top: Place) -> int:
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise PolicyError("a policy file is valid Unicode text", place=top) from None


@dataclass(slots=True)
class _PolicyReader:
    """Reads one policy; remembers what it declares, since rules refer to that."""

    literals: Literals
    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    sets: dict[str, ServerSet] = field(default_factory=dict[str, ServerSet])
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])
    default_seen: bool = False

    def policy(self, node: Node) -> Policy:
        literals = self.literals
        name, version = node.words
        if version.text != _VERSION:
            literals.refuse(f"unknown version `{version.text}`", version, nearest=_VERSION)
        # declarations may stand below the rules that use them
        for statement in node.nodes:
            match statement.rule:
                case "roles":
                    self._declare_roles(statement)
                case "set":
                    self._declare_set(statement)
                case "default":
                    self._check_default(statement)
                case _:
                    pass
        for statement in node.nodes:
            if statement.rule == "rule":
                self._add(self._rule(statement))
        return Policy(
            name=literals.name(name),
            place=literals.place(name),
            roles=tuple(self.roles.values()),
            sets=tuple(self.sets.values()),
            rules=tuple(self.rules.values()),
        )

    def _check_default(self, node: Node) -> None:
        (word,) = node.words
        if word.text != "deny":
            self.literals.refuse(
                f"the default cannot be `{word.text}`: what no rule permits is denied",
                word,
                expected=("`deny`",),
                nearest="deny",
            )
        if self.default_seen:
            self.literals.refuse("the default is written already", word)
        self.default_seen = True

    def _declare_roles(self, node: Node) -> None:
        for word in node.words:
            if word.text in self.roles:
                self.literals.refuse(f"role `{word.text}` is declared already", word)
            self.roles[word.text] = Role(self.literals.name(word), self.literals.place(word))
            self.literals.bound(len(self.roles), self.literals.limits.roles_max, "roles", word)

    def _declare_set(self, node: Node) -> None:
        literals = self.literals
        name, *servers = node.words
        if name.text in self.sets:
            literals.refuse(f"set `{name.text}` is declared already", name)
        literals.bound(len(servers), literals.limits.set_servers_max, "servers", name)
        members = frozenset(self._server(word) for word in servers)
        self.sets[name.text] = ServerSet(literals.name(name), members, literals.place(name))

    def _add(self, rule: Rule) -> None:
        if rule.id in self.rules:
            self.literals.refuse(f'rule "{rule.id}" is in this policy already', rule.place)
        self.rules[rule.id] = rule
        self.literals.bound(len(self.rules), self.literals.limits.rules_max, "rules", rule.place)

    def _rule(self, node: Node) -> Rule:
        literals = self.literals
        parts = {part.rule: part for part in node.nodes}
        (name,) = node.words
        (effect,) = parts["effect"].words
        operations: list[str] = []
        for inner in parts["operations"].nodes:
            (word,) = inner.words
            if word.text in operations:
                literals.refuse(f"`{word.text}` is written twice", word)
            operations.append(word.text)
        return Rule(
            id=self._visible(name, "the id of a rule"),
            effect=Effect(effect.text),
            operations=frozenset(Operation(operation) for operation in operations),
            target=self._target(parts["target"]),
            place=literals.place(effect),
            roles=self._scope(parts["scope"]) if "scope" in parts else None,
            depth=self._depth(parts["depth"]) if "depth" in parts else None,
            condition=read_condition(node, literals),
        )

    def _scope(self, node: Node) -> frozenset[str]:
        for word in node.words:
            if word.text not in self.roles:
                self.literals.refuse(
                    f"role `{word.text}` is not declared",
                    word,
                    nearest=nearest_word(word.text, self.roles),
                )
        return frozenset(word.text for word in node.words)

    def _depth(self, node: Node) -> DepthBound:
        sign, word = node.words
        number = self.literals.number(word)
        if isinstance(number, float) or number < 0:
            self.literals.refuse("a depth is a whole number, 0 or more", word)
        return DepthBound(high=number) if sign.terminal == "LE" else DepthBound(low=number)

    def _target(self, node: Node) -> Target:
        literals = self.literals
        server = node.nodes[0].words[0]
        kind_node = node.only("kind")
        kind = None if kind_node is None else Kind(kind_node.words[0].text)
        servers: frozenset[str] | None = None
        if server.terminal == "STARRED":
            literals.refuse(
                f"`{server.text}` is not a server: name one, name a set, or write `any server`",
                server,
                nearest="any server",
            )
        elif server.terminal == "NAME" and server.text in self.sets:
            servers = self.sets[server.text].servers
        elif server.terminal != "ANY_SERVER":
            servers = frozenset((self._server(server),))
        return Target(
            servers=servers,
            names=self._names(node.words[0], kind),
            kind=kind,
            written="any server" if servers is None else server.text.strip('"'),
            place=literals.place(server),
        )

    def _server(self, word: Word) -> str:
        if word.terminal == "NAME":
            return self.literals.name(word)
        name = self._visible(word, "a server")
        if "*" in name:
            self.literals.refuse("a server has no `*`; write `any server` for all", word)
        return name

    def _names(self, word: Word, kind: Kind | None) -> Names:
        literals = self.literals
        try:
            if word.terminal == "NAMES":
                text = word.text[1:]
                return Names(text=text, alternatives=expand_braces(text, literals.limits))
            text = literals.plain(word)
            if kind is Kind.RESOURCE:
                uri = parse_uri_pattern(text, literals.limits)
                return Names(text=text, alternatives=(uri,), by_segment=True)
        except PatternError as error:
            literals.refuse(str(error), word)
        if not text:
            literals.refuse("a name is missing", word)
        literals.bound(len(text), literals.limits.pattern_chars_max, "characters", word)
        return Names(text=text, alternatives=(text,))

    def _visible(self, word: Word, what: str) -> str:
        text = self.literals.plain(word)
        if not text.strip() or not text.isprintable():
            self.literals.refuse(f"{what} is visible text", word)
        self.literals.bound(len(text), self.literals.limits.name_chars_max, "characters", word)
        return text
