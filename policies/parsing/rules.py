"""Policies and their rules, from tree to value: declarations, targets, who, when, duties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from policies.errors import nearest_word
from policies.model import (
    AllOf,
    AnyOf,
    Argument,
    Condition,
    Elements,
    Hint,
    Not,
    OnlyArguments,
    Operation,
    Pointer,
    Policy,
    Role,
    Rule,
    RuleWord,
    ServerSet,
    SinkSet,
    Test,
    Trust,
    UriPart,
)
from policies.parsing.conditions import joined, read_after, read_condition
from policies.parsing.duties import read_duties
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node, Word
from policies.parsing.targets import TargetReader, read_who, server_name, visible

__all__ = ["PolicyReader", "read_operations", "read_scope", "refuse_repeated", "tests_in"]


@dataclass(slots=True)
class PolicyReader:
    """Reads one policy; remembers what it declares, since rules refer to that."""

    literals: Literals
    roles: dict[str, Role] = field(default_factory=dict[str, Role])
    sets: dict[str, ServerSet] = field(default_factory=dict[str, ServerSet])
    sinks: dict[str, SinkSet] = field(default_factory=dict[str, SinkSet])
    trusts: list[Trust] = field(default_factory=list[Trust])
    rules: dict[str, Rule] = field(default_factory=dict[str, Rule])
    default_seen: bool = False

    def policy(self, node: Node) -> Policy:
        """Return the policy of a `policy` node. Raises PolicyError."""
        literals = self.literals
        name, version = node.words
        # declarations may stand below the rules that use them; sinks use sets
        for statement in node.nodes:
            match statement.rule:
                case "roles":
                    self._declare_roles(statement)
                case "set":
                    self._declare_set(statement)
                case "default":
                    self._check_default(statement)
                case "trust":
                    self._declare_trust(statement)
                case _:
                    pass
        for statement in node.nodes:
            if statement.rule == "sink_set":
                self._declare_sink(statement)
        for statement in node.nodes:
            if statement.rule == "rule":
                self._add(self._rule(statement))
        return Policy(
            name=literals.name(name),
            place=literals.place(name),
            version=literals.version(version),
            roles=tuple(self.roles.values()),
            sets=tuple(self.sets.values()),
            sinks=tuple(self.sinks.values()),
            trusts=tuple(self.trusts),
            rules=tuple(self.rules.values()),
        )

    def servers(self) -> dict[str, frozenset[str]]:
        """Return the declared sets by name."""
        return {name: each.servers for name, each in self.sets.items()}

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
        self._refuse_declared(name)
        literals.bound(len(servers), literals.limits.set_servers_max, "servers", name)
        members = frozenset(server_name(word, literals) for word in servers)
        self.sets[name.text] = ServerSet(literals.name(name), members, literals.place(name))

    def _declare_sink(self, node: Node) -> None:
        (name,) = node.words
        self._refuse_declared(name)
        targets = self._targets().targets(node.nodes[0])
        if any(target.sink for target in targets):
            self.literals.refuse("a sink is made of targets, not of sinks", name)
        self.sinks[name.text] = SinkSet(
            self.literals.name(name), targets, self.literals.place(name)
        )
        self.literals.bound(len(self.sinks), self.literals.limits.set_servers_max, "sinks", name)

    def _declare_trust(self, node: Node) -> None:
        literals = self.literals
        first = node.words[0]
        literals.bound(len(node.words), literals.limits.set_servers_max, "servers", first)
        servers = frozenset(server_name(word, literals) for word in node.words)
        self.trusts.append(Trust(servers, literals.place(first)))

    def _refuse_declared(self, name: Word) -> None:
        for what, declared in (("set", self.sets), ("sink", self.sinks)):
            if name.text in declared:
                self.literals.refuse(f"{what} `{name.text}` is declared already", name)

    def _targets(self) -> TargetReader:
        sinks = {name: each.targets for name, each in self.sinks.items()}
        return TargetReader(self.literals, self.servers(), sinks)

    def _add(self, rule: Rule) -> None:
        if rule.id in self.rules:
            self.literals.refuse(f'rule "{rule.id}" is in this policy already', rule.place)
        self.rules[rule.id] = rule
        self.literals.bound(len(self.rules), self.literals.limits.rules_max, "rules", rule.place)

    def _rule(self, node: Node) -> Rule:
        literals = self.literals
        word_node, operations, targets, *clauses = node.nodes
        (name,) = node.words
        (word,) = word_node.words
        refuse_repeated(clauses, literals)
        begins = RuleWord(word.text)
        self._check_clauses(begins, word, clauses)
        scope = read_scope(clauses, literals, self.servers())
        closed = any(clause.rule == "closed" for clause in clauses)
        if closed:
            scope = joined(
                (*((scope,) if scope is not None else ()), _closed(scope, word, literals))
            )
        rule = Rule(
            id=visible(name, "the id of a rule", literals),
            word=begins,
            operations=read_operations(operations, literals),
            targets=self._targets().targets(targets),
            place=literals.place(word),
            who=read_who(clauses, literals, self.roles),
            condition=scope,
            duties=read_duties(clauses, literals, rule=literals.plain(name)),
            closed=closed,
        )
        self._check_rule(rule, clauses, word)
        return rule

    def _check_clauses(self, begins: RuleWord, word: Word, clauses: Sequence[Node]) -> None:
        literals = self.literals
        written = {clause.rule for clause in clauses}
        for clause in clauses:
            belongs = _BELONGS.get(clause.rule)
            if belongs is not None and begins not in belongs:
                literals.refuse(
                    f"`{_WRITTEN.get(clause.rule, clause.rule)}` has no place in a `{word.text}`",
                    literals.start_of(clause, word),
                    expected=tuple(f"`{each.value}`" for each in belongs),
                )
        if begins is RuleWord.REQUIRE:
            if "that" not in written:
                literals.refuse("a `require` says what it requires: `that …`", word)
            if written & {"when", "unless", "after"}:
                literals.refuse("a `require` has one condition, after `that`", word)
        if begins is RuleWord.LIMIT and not written & {"rate", "budget", "deadline"}:
            literals.refuse("a `limit` says how much: `rate`, `budget` or `deadline`", word)
        if begins is RuleWord.OBLIGE and not written & {"redact", "mark", "keep"}:
            literals.refuse("an `oblige` says what to do: `redact`, `mark` or `keep`", word)

    def _check_rule(self, rule: Rule, clauses: Sequence[Node], word: Word) -> None:
        literals = self.literals
        bounded = any(clause.rule in ("max_depth", "max_children") for clause in clauses)
        if bounded and rule.operations != frozenset((Operation.DELEGATE,)):
            literals.refuse("`max depth` and `max children` are about `delegate` alone", word)
        if rule.condition is None:
            return
        for test in tests_in(rule.condition):
            if isinstance(test, Hint) and rule.word is RuleWord.PERMIT:
                self._check_hint(rule, test)
            if isinstance(test, Test) and isinstance(test.operand, UriPart):
                name = test.operand.name
                for target in rule.targets:
                    if name not in target.names.parts:
                        literals.refuse(
                            f"the target has no `{{{name}}}`",
                            test.place,
                            nearest=nearest_word(name, target.names.parts),
                        )

    def _check_hint(self, rule: Rule, hint: Hint) -> None:
        trusted = frozenset[str]().union(*(trust.servers for trust in self.trusts))
        for target in rule.targets:
            if target.servers is None or not target.servers <= trusted:
                self.literals.refuse(
                    "a hint is a server's own word: to permit on it, write "
                    f'`trust hints of server("{"…" if target.servers is None else target.written}")`',
                    hint.place,
                )


_BELONGS: Final[Mapping[str, tuple[RuleWord, ...]]] = {
    "that": (RuleWord.REQUIRE,),
    "closed": (RuleWord.PERMIT,),
    "rate": (RuleWord.LIMIT,),
    "budget": (RuleWord.LIMIT,),
    "deadline": (RuleWord.LIMIT,),
    "redact": (RuleWord.OBLIGE,),
    "mark": (RuleWord.OBLIGE,),
    "keep": (RuleWord.OBLIGE,),
    "expires": (RuleWord.ASK,),
    "max_depth": (RuleWord.PERMIT,),
    "max_children": (RuleWord.PERMIT,),
}
"""Which clauses only some rules have."""
_WRITTEN: Final = {
    "closed": "unknown args deny",
    "max_depth": "max depth",
    "max_children": "max children",
    "for_role": "for role",
    "for_agent": "for agent",
    "below_role": "below role",
    "below_agent": "below agent",
}
_REPEATABLE: Final = frozenset({"rate", "budget", "redact", "mark", "keep"})


def read_operations(node: Node, literals: Literals) -> frozenset[Operation]:
    """Return the operations of a list. Raises PolicyError for one that is there twice."""
    found: list[str] = []
    for inner in node.nodes:
        (word,) = inner.words
        if word.text in found:
            literals.refuse(f"`{word.text}` is written twice", word)
        found.append(word.text)
    return frozenset(Operation(each) for each in found)


def read_scope(
    clauses: Sequence[Node], literals: Literals, sets: Mapping[str, frozenset[str]]
) -> Condition | None:
    """Return `when A unless B after L` as one condition: `A and not B and after L`."""
    tests = 0
    found: list[Condition] = []
    for word in ("when", "that", "unless"):
        for clause in clauses:
            if clause.rule == word:
                condition, tests = read_condition(clause, literals, sets, tests)
                found.append(Not(condition) if word == "unless" else condition)
    found += [read_after(clause, literals, sets) for clause in clauses if clause.rule == "after"]
    return joined(found)


def refuse_repeated(clauses: Sequence[Node], literals: Literals) -> None:
    """Raise PolicyError for a clause that is there twice and may not be."""
    seen: set[str] = set()
    for clause in clauses:
        if clause.rule in seen and clause.rule not in _REPEATABLE:
            written = _WRITTEN.get(clause.rule, clause.rule)
            literals.refuse(f"`{written}` is written twice", clause.start())
        seen.add(clause.rule)


def tests_in(condition: Condition) -> list[Condition]:
    """Return the tests and facts of a condition, in the order in which they are written."""
    match condition:
        case Not():
            return tests_in(condition.part)
        case AllOf() | AnyOf():
            return [test for part in condition.parts for test in tests_in(part)]
        case _:
            return [condition]


def _closed(condition: Condition | None, word: Word, literals: Literals) -> OnlyArguments:
    """Return the test behind `unknown args deny`: what the rule itself looks at, and no more."""
    pointers: dict[str, Pointer] = {}
    for test in tests_in(condition) if condition is not None else ():
        if isinstance(test, Test) and isinstance(test.operand, Argument | Elements):
            pointers[test.operand.pointer.text] = test.operand.pointer
    return OnlyArguments(pointers=tuple(pointers.values()), place=literals.place(word))
