"""A search through requests that are too many to be tried, by the solver z3. Needs the extra `prove`.

The solver sees axes as whole numbers, and each test as a table over one axis; what a test sees of
more than one axis is left open to it, so that "there is none" stays true. Whoever asks has what it
finds decided by the evaluator.
"""

# z3's own types are unknown: its terms reach us without type arguments.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from policies.analysis.axes import Axis
from policies.analysis.spaces import Space, surely_means
from policies.evaluation.conditions import compile_condition
from policies.evaluation.ready import who_fits
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyArgument,
    AnyOf,
    Argument,
    Condition,
    Elements,
    Fact,
    Never,
    Not,
    OnlyArguments,
    Request,
    Rule,
    RuleWord,
    Test,
    UriPart,
    Who,
)

__all__ = ["Answer", "search"]


@dataclass(frozen=True, slots=True)
class Answer:
    """A request that the solver found, or that there is none; neither if it gave up."""

    request: Request | None
    none: bool


def search(space: Space, limits: PolicyLimits, never: Never | None = None) -> Answer | None:
    """Look for a request of `space` that its second side allows more than its first.

    With `never`, for one that it speaks of and its first side permits. None if the solver is not
    installed.
    """
    try:
        z3: Any = import_module("z3")
    except ImportError:
        return None
    solver = z3.Solver()
    solver.set("timeout", limits.analysis_milliseconds_max)
    query = _Query(z3, space, limits)
    for number, axis in zip(query.numbers, space.axes, strict=True):
        solver.add(number >= 0, number < len(axis.values))
    first, second = (query.effects(rules) for rules in space.rules[:2])
    if never is not None:
        solver.add(first.permits, query.meant(never))
    else:
        # ranks: permitted, or asked about and not denied
        permitted = z3.And(second.permits, z3.Not(first.permits))
        solver.add(z3.Or(permitted, z3.And(second.allows, z3.Not(first.allows))))
    solver.add(*query.open_terms)
    outcome = solver.check()
    if outcome == z3.unsat:
        return Answer(None, none=True)
    if outcome != z3.sat:
        return Answer(None, none=False)
    model = solver.model()
    picked = [
        axis.values[model.eval(number, model_completion=True).as_long()]
        for number, axis in zip(query.numbers, space.axes, strict=True)
    ]
    return Answer(space.request(picked), none=False)


@dataclass(frozen=True, slots=True)
class _Effects:
    permits: Any
    allows: Any


@dataclass(frozen=True, slots=True)
class _Truth:
    """Two terms: it is true, it is false. Neither: it has no value."""

    true: Any
    false: Any


@dataclass(slots=True)
class _Query:
    z3: Any
    space: Space
    limits: PolicyLimits
    numbers: list[Any] = field(init=False)
    open_terms: list[Any] = field(default_factory=list[Any])
    _known: dict[object, _Truth] = field(default_factory=dict[object, _Truth])

    def __post_init__(self) -> None:
        self.numbers = [self.z3.Int(f"axis{at}") for at in range(len(self.space.axes))]

    def effects(self, rules: Sequence[Rule | Never]) -> _Effects:
        z3 = self.z3
        true: dict[RuleWord, list[Any]] = {word: [] for word in RuleWord}
        spoken: dict[RuleWord, list[Any]] = {word: [] for word in RuleWord}
        for rule in rules:
            if isinstance(rule, Rule):
                spoken[rule.word].append(self._speaks(rule))
                true[rule.word].append(self._holds(rule))
        denied = z3.Or(*spoken[RuleWord.FORBID], *spoken[RuleWord.REQUIRE])
        asked = z3.Or(*spoken[RuleWord.ASK])
        permitted = z3.Or(*true[RuleWord.PERMIT])
        # an ask without a value asks about what is permitted, and lets nothing else through
        return _Effects(
            z3.And(permitted, z3.Not(asked), z3.Not(denied)),
            z3.And(z3.Or(permitted, *true[RuleWord.ASK]), z3.Not(denied)),
        )

    def meant(self, never: Never) -> Any:  # noqa: ANN401  # a term of z3
        who = self._who(never.who)
        return (
            who if never.condition is None else self.z3.And(who, self._truth(never.condition).true)
        )

    def _holds(self, rule: Rule) -> Any:  # noqa: ANN401  # a term of z3
        """Return where a rule is about the request, and its condition true."""
        if not surely_means(rule, self.space.resource):
            return self.z3.Or()
        true = True if rule.condition is None else self._truth(rule.condition).true
        return self.z3.And(self._who(rule.who), true)

    def _speaks(self, rule: Rule) -> Any:  # noqa: ANN401  # a term of z3
        """Return where a rule restricts: no value does."""
        z3 = self.z3
        if rule.condition is None:
            return self._who(rule.who)
        holds = self._truth(rule.condition)
        required = rule.word is RuleWord.REQUIRE
        return z3.And(self._who(rule.who), z3.Not(holds.true if required else holds.false))

    def _who(self, who: Who) -> Any:  # noqa: ANN401  # a term of z3
        roles, fits = who.roles, who_fits(who)
        terms = [True]
        if roles is not None:
            terms.append(self._table("role", lambda r: r.principal.role in roles).true)
        if fits is not None:
            fields = ("agent", "depth", "interactive", "above")
            terms.append(self._over(fields, lambda request: fits(request.principal)).true)
        return self.z3.And(*terms)

    def _truth(self, condition: Condition) -> _Truth:
        z3 = self.z3
        match condition:
            case Not():
                inner = self._truth(condition.part)
                return _Truth(inner.false, inner.true)
            case AllOf():
                parts = [self._truth(part) for part in condition.parts]
                return _Truth(z3.And(*(p.true for p in parts)), z3.Or(*(p.false for p in parts)))
            case AnyOf():
                parts = [self._truth(part) for part in condition.parts]
                return _Truth(z3.Or(*(p.true for p in parts)), z3.And(*(p.false for p in parts)))
            case _:
                return self._leaf(condition)

    def _leaf(self, leaf: Test | Fact) -> _Truth:
        compiled = compile_condition(leaf, self.limits)

        def holds(request: Request) -> bool | None:
            return compiled(request.context, request.resource, {})

        keys = _key_of(leaf)
        below = [a for a in self.space.axes if a.field == "argument" and a.key[: len(keys)] == keys]
        whole = isinstance(leaf, OnlyArguments) or (
            isinstance(leaf, Test) and isinstance(leaf.operand, AnyArgument | UriPart)
        )
        if whole or len(below) > 1:
            return self._free(leaf)
        return self._table_of(leaf, holds)

    def _table_of(self, leaf: Test | Fact, holds: Callable[[Request], bool | None]) -> _Truth:
        """Return a test's table over the one axis that it can see."""
        known = self._known.get(leaf)
        if known is not None:
            return known
        seen = [at for at in range(len(self.space.axes)) if len(self._answers(at, holds)) > 1]
        if len(seen) > 1:
            return self._free(leaf)
        truth = self._made(seen[0] if seen else 0, holds)
        self._known[leaf] = truth
        return truth

    def _table(self, name: str, holds: Callable[[Request], bool | None]) -> _Truth:
        at = [at for at, axis in enumerate(self.space.axes) if axis.field == name]
        return self._made(at[0] if at else 0, holds)

    def _over(self, fields: Sequence[str], holds: Callable[[Request], bool | None]) -> _Truth:
        """Return a table over several small axes together."""
        at = [at for at, axis in enumerate(self.space.axes) if axis.field in fields]
        z3 = self.z3
        true: list[Any] = []

        def fill(left: Sequence[int], picked: dict[int, object], terms: list[Any]) -> None:
            if not left:
                if holds(self._request(picked)) is True:
                    true.append(z3.And(*terms))
                return
            head, *rest = left
            for number, value in enumerate(self.space.axes[head].values):
                fill(rest, {**picked, head: value}, [*terms, self.numbers[head] == number])

        fill(at, {}, [])
        return _Truth(z3.Or(*true), z3.Not(z3.Or(*true)))

    def _made(self, at: int, holds: Callable[[Request], bool | None]) -> _Truth:
        z3 = self.z3
        if not self.space.axes:
            answer = holds(self._request({}))
            return _Truth(true=answer is True, false=answer is False)
        answers = [holds(self._request({at: value})) for value in self.space.axes[at].values]
        number = self.numbers[at]
        return _Truth(
            z3.Or(*(number == n for n, answer in enumerate(answers) if answer is True)),
            z3.Or(*(number == n for n, answer in enumerate(answers) if answer is False)),
        )

    def _answers(self, at: int, holds: Callable[[Request], bool | None]) -> set[bool | None]:
        return {holds(self._request({at: value})) for value in self.space.axes[at].values}

    def _request(self, picked: dict[int, object]) -> Request:
        values = [picked.get(at, _quiet(axis)) for at, axis in enumerate(self.space.axes)]
        request = self.space.request(values)
        if request is None:
            raise ValueError("one value alone has always room")
        return request

    def _free(self, leaf: Test | Fact) -> _Truth:
        """Return a truth that the solver may choose: what it finds so may be none."""
        known = self._known.get(leaf)
        if known is None:
            at = len(self._known)
            known = _Truth(self.z3.Bool(f"true{at}"), self.z3.Bool(f"false{at}"))
            self.open_terms.append(self.z3.Not(self.z3.And(known.true, known.false)))
            self._known[leaf] = known
        return known


def _quiet(axis: Axis) -> object:
    return axis.values[0]


def _key_of(leaf: Test | Fact) -> tuple[str, ...]:
    """Return the keys of the argument that a test looks at; what no argument has otherwise."""
    if isinstance(leaf, Test) and isinstance(leaf.operand, Argument | Elements):
        return leaf.operand.pointer.keys
    return ("\0",)
