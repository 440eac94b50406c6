"""What follows `when` and `unless`, from tree to value. Evaluates nothing."""

from __future__ import annotations

from typing import Final

from policies.model import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Comparison,
    Condition,
    Exists,
    Not,
    OneOf,
    Pointer,
    Test,
    Under,
)
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node, Word

__all__ = ["read_condition"]

_ORDER: Final = frozenset(
    (Comparison.LESS, Comparison.AT_MOST, Comparison.MORE, Comparison.AT_LEAST)
)


def read_condition(rule: Node, literals: Literals) -> Condition | None:
    """Return the condition of a rule: `when A unless B` is `A and not B`; None without either.

    Raises:
        PolicyError: nested too deep, too many tests, a literal that does not fit its operator.
    """
    reader = _ConditionReader(literals)
    when, unless = rule.only("when"), rule.only("unless")
    found: list[Condition] = []
    if when is not None:
        found.append(reader.condition(when.nodes[0], 1))
    if unless is not None:
        found.append(Not(reader.condition(unless.nodes[0], 1)))
    if not found:
        return None
    return found[0] if len(found) == 1 else AllOf(tuple(found))


class _ConditionReader:
    def __init__(self, literals: Literals) -> None:
        self._literals = literals
        self._tests = 0

    def condition(self, node: Node, depth: int) -> Condition:
        limits = self._literals.limits
        if depth > limits.condition_depth_max:
            # the tree may be far deeper than Python can recurse: nothing below is looked at
            self._literals.refuse(
                f"conditions nest at most {limits.condition_depth_max} deep", node.start()
            )
        match node.rule:
            case "any_of" | "all_of":
                if len(node.nodes) == 1:
                    return self.condition(node.nodes[0], depth)
                parts = tuple(self.condition(inner, depth) for inner in node.nodes)
                return AnyOf(parts) if node.rule == "any_of" else AllOf(parts)
            case "group":
                return self.condition(node.nodes[0], depth + 1)
            case "not_of":
                return Not(self.condition(node.nodes[0], depth + 1))
            case _:
                self._tests += 1
                most = limits.condition_tests_max
                self._literals.bound(self._tests, most, "tests", node.start())
                return self._test(node)

    def _test(self, node: Node) -> Test:
        literals = self._literals
        (argument,) = node.nodes[0].words
        pointer = literals.pointer(argument)
        place = literals.place(argument)
        match node.rule:
            case "exists":
                return Exists(pointer=pointer, place=place)
            case "under":
                return Under(pointer=pointer, prefix=literals.string(node.words[0]), place=place)
            case "between":
                low, high = (literals.number(word) for word in node.words)
                if low > high:
                    literals.refuse("the range is empty: its ends are swapped", node.words[0])
                return Between(pointer=pointer, low=low, high=high, place=place)
            case "one_of":
                return self._one_of(node, pointer, argument)
            case _:
                return self._compare(node, pointer, argument)

    def _compare(self, node: Node, pointer: Pointer, argument: Word) -> Compare:
        literals = self._literals
        comparison = Comparison(node.words[0].text)
        (word,) = node.nodes[1].words
        if comparison in _ORDER and word.terminal != "NUMBER":
            literals.refuse(
                f"`{comparison.value}` compares numbers only", word, expected=("a number",)
            )
        return Compare(
            pointer=pointer,
            comparison=comparison,
            literal=literals.scalar(word),
            place=literals.place(argument),
        )

    def _one_of(self, node: Node, pointer: Pointer, argument: Word) -> OneOf:
        literals = self._literals
        words = [inner.words[0] for inner in node.nodes[1:]]
        literals.bound(len(words), literals.limits.options_max, "values", words[0])
        for word in words:
            if word.terminal == "NULL":
                literals.refuse("null does not go into a list: write `or arg(...) == null`", word)
        return OneOf(
            pointer=pointer, options=literals.scalars(words), place=literals.place(argument)
        )
