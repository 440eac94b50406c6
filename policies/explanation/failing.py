"""Which tests of one permit's condition kept it from speaking. Shows types, never values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from policies.evaluation import MISSING, Predicate, compile_condition, look_up, type_name
from policies.explanation.words import check_words, fact_words, operand_words
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Argument,
    Condition,
    Elements,
    Left,
    Not,
    Operand,
    Request,
    Rule,
    Test,
    UriPart,
)
from policies.patterns import uri_parts

__all__ = ["FailedTest", "Failing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test of a condition that kept a permit from speaking.

    `operand` is what it looks at (`arg(/path)`, or a whole fact like `after untrusted`). `actual` is
    the type of the value, or `missing`; empty where there is no single one. `errored` if the test
    had no value. `negated` if it stands under `not` or `unless`, so that it would have had to be
    false.
    """

    operand: str
    operator: str
    expected: str
    actual: str
    errored: bool
    negated: bool

    def __str__(self) -> str:
        wanted = " ".join(filter(None, (self.operand, self.operator, self.expected)))
        verb = "must not hold" if self.negated else "must hold"
        why = (
            "it has no value" if self.errored else "it does not" if not self.negated else "it does"
        )
        actual = f" (the {_NOUNS.get(self.operand[:3], 'argument')} is {self.actual})"
        return f"{wanted} {verb}, and {why}{actual if self.actual else ''}"


_NOUNS = {"bud": "budget", "uri": "part"}


class Failing:
    """The condition of one rule, compiled with the words of its tests."""

    def __init__(self, rule: Rule, condition: Condition, limits: PolicyLimits) -> None:
        self._named = tuple(target.names for target in rule.targets if target.names.parts)
        self._root = _node(condition, limits)

    def tests(self, request: Request) -> tuple[FailedTest, ...]:
        """Return the tests because of which the condition is not true."""
        parts: Mapping[str, str] = {}
        for names in self._named:
            parts = parts or uri_parts(names, request.resource.name)
        return tuple(_failed(self._root, request, parts, negated=False))


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A part of a condition. `words` and `operand` are those of a test; inner parts have none."""

    holds: Predicate
    inverts: bool
    parts: tuple[_Node, ...]
    words: tuple[str, str, str]
    operand: Operand | None


def _node(condition: Condition, limits: PolicyLimits) -> _Node:
    holds = compile_condition(condition, limits)
    inner: tuple[Condition, ...] = ()
    words, operand = ("", "", ""), None
    match condition:
        case Not():
            inner = (condition.part,)
        case AllOf() | AnyOf():
            inner = condition.parts
        case Test():
            words = (operand_words(condition.operand), *check_words(condition.check))
            operand = condition.operand
        case _:
            words = (fact_words(condition), "", "")
    parts = tuple(_node(part, limits) for part in inner)
    return _Node(holds, isinstance(condition, Not), parts, words, operand)


def _failed(
    node: _Node, request: Request, parts: Mapping[str, str], *, negated: bool
) -> Iterator[FailedTest]:
    answer = node.holds(request.context, request.resource, parts)
    if answer is (not negated):
        return
    for part in node.parts:
        yield from _failed(part, request, parts, negated=negated is not node.inverts)
    if not node.parts:
        operand, operator, expected = node.words
        yield FailedTest(
            operand=operand,
            operator=operator,
            expected=expected,
            actual="" if node.operand is None else _actual(node.operand, request, parts),
            errored=answer is None,
            negated=negated,
        )


def _actual(operand: Operand, request: Request, parts: Mapping[str, str]) -> str:
    match operand:
        case Argument(pointer=pointer) | Elements(pointer=pointer):
            return type_name(look_up(request.context.arguments, pointer.keys))
        case Left(metered=metered):
            return type_name(request.context.left.get(metered.value, MISSING))
        case UriPart(name=name):
            return type_name(parts.get(name, MISSING))
        case _:
            return ""
