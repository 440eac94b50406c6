"""What a file claims of its policies, from tree to value: `tests { }` and `assert`. Checks nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from policies.model import (
    Annotations,
    Assertion,
    Case,
    ChildSubset,
    Effect,
    Kind,
    Label,
    Metered,
    Never,
    Operation,
    Target,
    TestValue,
)
from policies.parsing.literals import Literals
from policies.parsing.rules import read_operations, read_scope, refuse_repeated
from policies.parsing.syntax import Node, Word
from policies.parsing.targets import TargetReader, read_who, server_name, visible

__all__ = ["ClaimReader"]

_REPEATABLE = frozenset({"carrying", "hinted", "remaining", "below_role"})


class ClaimReader:
    """Reads tests and assertions, with the sets and sinks of all policies of the file."""

    def __init__(
        self,
        literals: Literals,
        sets: Mapping[str, frozenset[str]],
        sinks: Mapping[str, tuple[Target, ...]],
    ) -> None:
        self._literals = literals
        self._sets = sets
        self._targets = TargetReader(literals, sets, sinks)

    def assertion(self, node: Node) -> Assertion:
        """Return the claim of a `never` or `child_subset` node."""
        literals = self._literals
        if node.rule == "child_subset":
            child, parent = node.words
            return ChildSubset(
                child=visible(child, "the name of a policy", literals),
                parent=visible(parent, "the name of a policy", literals),
                place=literals.place(child),
            )
        operations, targets, *clauses = node.nodes
        refuse_repeated(clauses, literals)
        return Never(
            operations=read_operations(operations, literals),
            targets=self._targets.targets(targets),
            place=literals.place(operations.start()),
            who=read_who(clauses, literals, None),
            condition=read_scope(clauses, literals, self._sets),
        )

    def case(self, node: Node) -> Case:
        """Return one line of a `tests` node."""
        literals = self._literals
        operation_node, server_node, *rest = node.nodes
        words = node.words
        effect = words[0]
        (server,) = server_node.words
        if server.terminal in ("STARRED", "ANY_SERVER"):
            literals.refuse("a test names one server", server)
        kinds = [inner for inner in rest if inner.rule == "kind"]
        case = Case(
            effect=Effect(effect.text),
            operation=Operation(operation_node.words[0].text),
            server=server_name(server, literals),
            kind=Kind(kinds[0].words[0].text) if kinds else Kind.TOOL,
            name="",
            place=literals.place(effect),
        )
        if len(words) > 1:
            word = words[1]
            text = word.text[1:] if word.terminal == "NAMES" else literals.plain(word)
            if word.terminal == "NAMES" and ("*" in text or "{" in text):
                literals.refuse("a test names one thing, without `*` and braces", word)
            case = replace(case, name=text)
        seen: set[str] = set()
        for inner in rest:
            if inner.rule in seen and inner.rule not in _REPEATABLE:
                literals.refuse("this is written twice", literals.start_of(inner, effect))
            seen.add(inner.rule)
            case = self._given(case, inner)
        return case

    def _given(self, case: Case, node: Node) -> Case:
        literals = self._literals
        match node.rule:
            case "object":
                return replace(case, arguments=self._object(node, 1, None))
            case "for_role" | "for_agent":
                word, *others = node.words
                if others:
                    literals.refuse("a test is about one agent", others[0])
                if node.rule == "for_role":
                    return replace(case, role=literals.name(word))
                return replace(case, agent=visible(word, "an agent", literals))
            case "below_role":
                return replace(case, below=(*case.below, *(word.text for word in node.words)))
            case "at_depth":
                return replace(case, depth=literals.count(node.words[0], "a depth", least=0))
            case "surface":
                return replace(case, interactive=node.words[0].terminal == "INTERACTIVE")
            case "unpinned":
                return replace(case, pinned=False)
            case "by":
                return replace(case, by=tuple(sorted(literals.plain(word) for word in node.words)))
            case "by_default":
                return replace(case, by=())
            case _:
                return self._known(case, node)

    def _known(self, case: Case, node: Node) -> Case:
        literals = self._literals
        match node.rule:
            case "carrying":
                label = Label(
                    literals.name(node.words[0]), server_name(node.nodes[0].words[0], literals)
                )
                return replace(case, labels=case.labels | {label})
            case "at":
                return replace(case, at=literals.moment(node.words[0]))
            case "hinted":
                (hint,) = node.nodes[0].words
                value = node.words[0].terminal == "TRUE"
                return replace(case, annotations=_hinted(case.annotations, hint.text, said=value))
            case "remaining":
                metered = Metered(node.nodes[0].words[0].text)
                left = {**case.left, metered.value: float(literals.number(node.words[0]))}
                return replace(case, left=left)
            case _:
                return case

    def _object(self, node: Node, depth: int, above: Word | None) -> dict[str, TestValue]:
        literals = self._literals
        if depth > literals.limits.value_depth_max:
            # what is below has not been looked at: it may be far deeper than Python can recurse
            literals.refuse(
                f"values nest at most {literals.limits.value_depth_max} deep",
                literals.start_of(node, above),
            )
        found: dict[str, TestValue] = {}
        for member in node.nodes:
            key = literals.plain(member.words[0])
            if key in found:
                literals.refuse("this member is there twice", member.words[0])
            found[key] = self._value(member.nodes[0], depth, member.words[0])
        return found

    def _value(self, node: Node, depth: int, above: Word) -> TestValue:
        literals = self._literals
        match node.rule:
            case "object":
                return self._object(node, depth + 1, above)
            case "array":
                if depth >= literals.limits.value_depth_max:
                    literals.refuse(
                        f"values nest at most {literals.limits.value_depth_max} deep",
                        literals.start_of(node, above),
                    )
                return [self._value(inner, depth + 1, above) for inner in node.nodes]
            case _:
                return literals.scalar(node.words[0])


def _hinted(annotations: Annotations, name: str, *, said: bool) -> Annotations:
    match name:
        case "read_only":
            return replace(annotations, read_only=said)
        case "destructive":
            return replace(annotations, destructive=said)
        case "idempotent":
            return replace(annotations, idempotent=said)
        case _:
            return replace(annotations, open_world=said)
