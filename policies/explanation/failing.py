"""Which tests of one permit's condition kept it from speaking. Shows types, never values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from policies.evaluation import MISSING, Predicate, compile_condition, look_up, type_name
from policies.explanation.words import check_words, fact_words, operand_words
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Argument,
    Check,
    Condition,
    Elements,
    Left,
    Not,
    Operand,
    PathLike,
    Request,
    Rule,
    Test,
    Under,
    UriPart,
)
from policies.patterns import path_flaw, uri_parts

__all__ = ["FailedTest", "Failing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """One test of a condition that kept a permit from speaking.

    `operand` is what it looks at (`arg(/path)`, or a whole fact like `after untrusted`). `actual` is
    the type of the value, or `missing`; empty where there is no single one. `errored` if the test
    had no value; `flaw` says then what of a path leaves it without one (`it has `..``), and is empty
    of all else. `negated` if it stands under `not` or `unless`, so that it would have had to be false.
    """

    operand: str
    operator: str
    expected: str
    actual: str
    errored: bool
    negated: bool
    flaw: str = ""

    def __str__(self) -> str:
        wanted = " ".join(filter(None, (self.operand, self.operator, self.expected)))
        verb = "must not hold" if self.negated else "must hold"
        why = (
            "it has no value" if self.errored else "it does not" if not self.negated else "it does"
        )
        flaw = f": {self.flaw}" if self.flaw else ""
        actual = f" (the {_NOUNS.get(self.operand[:3], 'argument')} is {self.actual}{flaw})"
        return f"{wanted} {verb}, and {why}{actual if self.actual else ''}"


_NOUNS = {"bud": "budget", "uri": "part"}
_SEVERAL: Final = object()
"""Stands for what is no single value."""


class Failing:
    """The condition of one rule, compiled with the words of its tests."""

    def __init__(self, rule: Rule, condition: Condition, limits: PolicyLimits) -> None:
        self._named = tuple(target.names for target in rule.targets if target.names.parts)
        self._root = _node(condition, limits)
        self._chars_max = limits.path_chars_max

    def tests(self, request: Request) -> tuple[FailedTest, ...]:
        """Return the tests because of which the condition is not true."""
        parts = self._parts(request)
        return tuple(_failed(self._root, request, parts, self._chars_max, negated=False))

    def errs(self, request: Request) -> bool:
        """Return True if the condition as a whole has no value."""
        holds = self._root.holds
        return holds(request.context, request.resource, self._parts(request)) is None

    def _parts(self, request: Request) -> Mapping[str, str]:
        parts: Mapping[str, str] = {}
        for names in self._named:
            parts = parts or uri_parts(names, request.resource.name)
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class _Node:
    """A part of a condition. `words` and `test` are those of a test; inner parts have none."""

    holds: Predicate
    inverts: bool
    parts: tuple[_Node, ...]
    words: tuple[str, str, str]
    test: Test | None


def _node(condition: Condition, limits: PolicyLimits) -> _Node:
    holds = compile_condition(condition, limits)
    inner: tuple[Condition, ...] = ()
    words, test = ("", "", ""), None
    match condition:
        case Not():
            inner = (condition.part,)
        case AllOf() | AnyOf():
            inner = condition.parts
        case Test():
            words = (operand_words(condition.operand), *check_words(condition.check))
            test = condition
        case _:
            words = (fact_words(condition), "", "")
    parts = tuple(_node(part, limits) for part in inner)
    return _Node(holds, isinstance(condition, Not), parts, words, test)


def _failed(
    node: _Node, request: Request, parts: Mapping[str, str], chars_max: int, *, negated: bool
) -> Iterator[FailedTest]:
    answer = node.holds(request.context, request.resource, parts)
    if answer is (not negated):
        return
    for part in node.parts:
        yield from _failed(part, request, parts, chars_max, negated=negated is not node.inverts)
    if not node.parts:
        operand, operator, expected = node.words
        test, value, flaw = node.test, _SEVERAL, ""
        if test is not None:
            value = _value(test.operand, request, parts)
            if answer is None:
                flaw = _flaw(test.check, value, chars_max)
        yield FailedTest(
            operand=operand,
            operator=operator,
            expected=expected,
            actual="" if value is _SEVERAL else type_name(value),
            errored=answer is None,
            negated=negated,
            flaw=flaw,
        )


def _value(operand: Operand, request: Request, parts: Mapping[str, str]) -> object:
    """Return the value that a test looks at, `MISSING` if it is not there; `_SEVERAL` if it is no one."""
    match operand:
        case Argument(pointer=pointer) | Elements(pointer=pointer):
            return look_up(request.context.arguments, pointer.keys)
        case Left(metered=metered):
            return request.context.left.get(metered.value, MISSING)
        case UriPart(name=name):
            return parts.get(name, MISSING)
        case _:
            return _SEVERAL


def _flaw(check: Check, value: object, chars_max: int) -> str:
    if not isinstance(value, str):
        return ""
    match check:
        case Under(prefix=str(path)) | PathLike(pattern=str(path)):
            return path_flaw(value, beside=path, chars_max=chars_max)
        case _:
            return ""
