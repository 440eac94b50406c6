"""What follows `when`, `unless` and `that`, from tree to value. Evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from policies.errors import nearest_word
from policies.model import (
    After,
    AllOf,
    AnyArgument,
    AnyOf,
    Argument,
    Before,
    Between,
    Check,
    Compare,
    Comparison,
    Condition,
    DigestIs,
    Elements,
    Exists,
    Fact,
    Hint,
    HintName,
    Host,
    JsonType,
    Left,
    Length,
    Metered,
    Network,
    Not,
    OneOf,
    OnlyArguments,
    Operand,
    PathLike,
    Template,
    Test,
    Text,
    TextMatch,
    TimeOfDay,
    TypeIs,
    Under,
    UriPart,
    Weekday,
)
from policies.parsing.literals import Literals
from policies.parsing.syntax import Node, Word
from policies.parsing.targets import read_servers
from policies.patterns import PatternError, parse_host, parse_network

__all__ = ["joined", "read_after", "read_condition"]

_ORDER: Final = frozenset(
    (Comparison.LESS, Comparison.AT_MOST, Comparison.MORE, Comparison.AT_LEAST)
)
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def read_condition(
    node: Node, literals: Literals, sets: Mapping[str, frozenset[str]], tests_before: int = 0
) -> tuple[Condition, int]:
    """Return the condition below a `when`, `unless` or `that`, and how many tests there are by now.

    Raises:
        PolicyError: nested too deep, too many tests, a literal that does not fit its operator.
    """
    reader = _ConditionReader(literals, sets, tests_before)
    return reader.condition(node.nodes[0], 1), reader.tests


def joined(parts: Iterable[Condition]) -> Condition | None:
    """Return the condition that all parts are together; None without any."""
    found = tuple(parts)
    if not found:
        return None
    return found[0] if len(found) == 1 else AllOf(found)


def read_after(node: Node, literals: Literals, sets: Mapping[str, frozenset[str]]) -> After:
    """Return `after LABEL from SERVERS`."""
    (label,) = node.words
    servers, written = read_servers(node.nodes, literals, sets)
    return After(
        label=literals.name(label), servers=servers, written=written, place=literals.place(label)
    )


class _ConditionReader:
    def __init__(
        self, literals: Literals, sets: Mapping[str, frozenset[str]], tests_before: int
    ) -> None:
        self._literals = literals
        self._sets = sets
        self.tests = tests_before

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
                self.tests += 1
                most = limits.condition_tests_max
                self._literals.bound(self.tests, most, "tests", node.start())
                return self._fact(node) or self._test(node)

    # --------------------------------------------------------------------------------------- facts

    def _fact(self, node: Node) -> Fact | None:
        literals = self._literals
        match node.rule:
            case "after":
                return read_after(node, literals, self._sets)
            case "hint":
                (word,) = node.words
                return Hint(name=HintName(word.text), place=literals.place(word))
            case "pinned":
                return DigestIs(digests=(), place=literals.place(node.words[0]))
            case "digest":
                digests = tuple(literals.plain(word) for word in node.words)
                literals.bound(len(digests), literals.limits.options_max, "values", node.words[0])
                return DigestIs(digests=digests, place=literals.place(node.words[0]))
            case "only":
                return OnlyArguments(
                    pointers=tuple(map(literals.pointer, node.words)),
                    place=literals.place(node.words[0]),
                )
            case "time":
                low, high = map(literals.minutes, node.words)
                if low == high:
                    literals.refuse("the two times are the same", node.words[0])
                return TimeOfDay(low=low, high=high, place=literals.place(node.words[0]))
            case "day":
                days = frozenset(map(self._day, node.words))
                return Weekday(days=days, place=literals.place(node.words[0]))
            case "before":
                (word,) = node.words
                wall = literals.moment(word)
                return Before(wall=wall, written=word.text[1:-1], place=literals.place(word))
            case _:
                return None

    def _day(self, word: Word) -> int:
        text = self._literals.plain(word)
        if text not in _DAYS:
            self._literals.refuse(
                f"`{text}` is no day of the week",
                word,
                expected=tuple(f"`{day}`" for day in _DAYS),
                nearest=nearest_word(text[:3], _DAYS),
            )
        return _DAYS.index(text)

    # --------------------------------------------------------------------------------------- tests

    def _test(self, node: Node) -> Test:
        first = node.nodes[0]
        operand = self._operand(first)
        return Test(
            operand=operand,
            check=self._check(node),
            place=self._literals.place(first.start()),
        )

    def _operand(self, node: Node) -> Operand:
        literals = self._literals
        match node.rule:
            case "argument":
                return Argument(literals.pointer(node.words[0]))
            case "any_argument":
                return AnyArgument()
            case "any_element" | "all_elements":
                pointer = literals.pointer(node.words[1])
                return Elements(pointer, every=node.rule == "all_elements")
            case "left":
                return Left(Metered(node.nodes[0].words[0].text))
            case _:
                return UriPart(literals.name(node.words[0]))

    def _check(self, node: Node) -> Check:
        literals = self._literals
        match node.rule:
            case "exists":
                return Exists()
            case "under":
                return Under(literals.string(node.words[0]))
            case "path_like":
                return PathLike(literals.string(node.words[0]))
            case "text":
                match, text = node.words
                return Text(TextMatch(match.text), literals.string(text))
            case "between":
                low, high = map(literals.number, node.words)
                self._in_order(low, high, node)
                return Between(low, high)
            case "length_between":
                least, most = (literals.count(word, "a length", least=0) for word in node.words)
                self._in_order(least, most, node)
                return Length(least, most)
            case "length":
                return self._length(node)
            case "host":
                return Host(tuple(self._host(word) for word in self._many(node)))
            case "cidr":
                return Network(tuple(self._network(word) for word in self._many(node)))
            case "type_is":
                return TypeIs(JsonType(node.nodes[1].words[0].text))
            case "one_of":
                return self._one_of(node)
            case _:
                return self._compare(node)

    def _in_order(self, low: float, high: float, node: Node) -> None:
        if low > high:
            self._literals.refuse("the range is empty: its ends are swapped", node.words[0])

    def _many(self, node: Node) -> tuple[Word, ...]:
        words = node.words
        self._literals.bound(len(words), self._literals.limits.options_max, "values", words[0])
        return words

    def _host(self, word: Word) -> str | Template:
        text = self._literals.string(word)
        if isinstance(text, str):
            try:
                parse_host(text)
            except PatternError as error:
                self._literals.refuse(str(error), word)
        return text

    def _network(self, word: Word) -> str | Template:
        text = self._literals.string(word)
        if isinstance(text, str):
            try:
                parse_network(text)
            except PatternError as error:
                self._literals.refuse(str(error), word)
        return text

    def _length(self, node: Node) -> Length:
        literals = self._literals
        sign, number = node.words
        comparison = Comparison(sign.text)
        length = literals.count(number, "a length", least=0)
        bounds = {
            Comparison.EQUAL: Length(length, length),
            Comparison.AT_MOST: Length(0, length),
            Comparison.AT_LEAST: Length(length, None),
            Comparison.MORE: Length(length + 1, None),
            Comparison.LESS: Length(0, length - 1),
        }
        if comparison not in bounds:
            literals.refuse("write `not arg(...) length == N`", sign)
        if comparison is Comparison.LESS and length == 0:
            literals.refuse("no length is less than 0", number)
        return bounds[comparison]

    def _compare(self, node: Node) -> Compare:
        literals = self._literals
        comparison = Comparison(node.words[0].text)
        (word,) = node.nodes[1].words
        if comparison in _ORDER and word.terminal != "NUMBER":
            literals.refuse(
                f"`{comparison.value}` compares numbers only", word, expected=("a number",)
            )
        return Compare(comparison, literals.scalar(word))

    def _one_of(self, node: Node) -> OneOf:
        literals = self._literals
        words = [inner.words[0] for inner in node.nodes[1:]]
        literals.bound(len(words), literals.limits.options_max, "values", words[0])
        for word in words:
            if word.terminal == "NULL":
                literals.refuse("null does not go into a list: write `or arg(...) == null`", word)
        return OneOf(literals.scalars(words))
