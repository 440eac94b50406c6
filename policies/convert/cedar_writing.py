"""Our policies, written as Cedar: what is true there is true here, and what Cedar cannot say is listed.

A permit speaks where its condition is true, a forbid where it is not false. So each test is written twice
over: where it is true, and where it is false; both ask first whether the attribute is there. A test that
Cedar cannot say is neither, which restricts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from policies.convert.result import Converted, Loss, Widens
from policies.model import (
    AllOf,
    AnyOf,
    Argument,
    Between,
    Check,
    Compare,
    Comparison,
    Condition,
    Exists,
    Kind,
    Not,
    OneOf,
    Policy,
    Rule,
    RuleWord,
    Target,
    Test,
    Text,
    TextMatch,
    Who,
)

__all__ = ["write_cedar"]

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ORDERED: Final = frozenset(
    {Comparison.LESS, Comparison.AT_MOST, Comparison.MORE, Comparison.AT_LEAST}
)
_FALSE: Final = "false"


def write_cedar(policies: Sequence[Policy]) -> Converted:
    """Return Cedar text for bound policies, and what it does not say as they do.

    Principals are `Role::"…"`; resources have the attributes `server`, `kind` and `name`, and the
    arguments are the context. Ask is written as forbid: Cedar has nothing in between.
    """
    lines: list[str] = []
    losses: list[Loss] = []
    for policy in policies:
        for rule in policy.rules:
            writer = _Writer(rule, losses)
            lines += writer.policies()
    return Converted("\n".join(lines) + "\n" * bool(lines), tuple(losses))


class _Writer:
    def __init__(self, rule: Rule, losses: list[Loss]) -> None:
        self._rule = rule
        self._losses = losses
        self._typed = False

    def policies(self) -> Iterator[str]:
        rule = self._rule
        if rule.word in (RuleWord.LIMIT, RuleWord.OBLIGE):
            why = "Cedar has no duties: whoever enforces its answers has to see to it"
            self._lose(why, Widens.LEFT_OPEN)
            return
        permit = rule.word is RuleWord.PERMIT
        if rule.word is RuleWord.ASK:
            self._lose("Cedar cannot ask: it is denied")
        if rule.duties:
            why = "Cedar has no duties: whoever enforces its answers has to see to it"
            self._lose(why, Widens.LEFT_OPEN)
        who = self._who(rule.who, permit=permit)
        limits = self._conditions()
        never = limits == [_FALSE]
        if never and not permit:
            # it holds everywhere: what Cedar cannot say restricts
            limits = []
        for number, target in enumerate(rule.targets):
            about = self._target(target, permit=permit)
            if who is None or about is None or (permit and never):
                continue
            name = rule.id if len(rule.targets) == 1 else f"{rule.id} {number + 1}"
            yield self._policy(name, permit=permit, when=[*who, *about], limits=limits)
        if self._typed and not permit:
            why = "Cedar skips it where an attribute has another type: let a schema check requests"
            self._lose(why, Widens.LEFT_OPEN)

    def _policy(
        self, name: str, *, permit: bool, when: Sequence[str], limits: Sequence[str]
    ) -> str:
        actions = sorted(operation.value for operation in self._rule.operations)
        named = ", ".join(f"Action::{_string(action)}" for action in actions)
        condition = [*when, *limits] if permit else when
        text = f"@id({_string(name)})\n{'permit' if permit else 'forbid'} (\n"
        text += f"  principal,\n  action in [{named}],\n  resource\n)"
        text += f"\nwhen {{ {' && '.join(condition)} }}" if condition else ""
        if not permit and limits:
            text += f"\nunless {{ {' && '.join(limits)} }}"
        return text + ";\n"

    def _conditions(self) -> list[str]:
        """Return what a permit needs, or what a forbid does not hold for."""
        condition = self._rule.condition
        if condition is None:
            return []
        if self._rule.word in (RuleWord.PERMIT, RuleWord.REQUIRE):
            return [self._written(condition, wanted=True)]
        return [self._written(condition, wanted=False)]

    def _who(self, who: Who, *, permit: bool) -> list[str] | None:
        rest = (who.agents, who.below_roles, who.below_agents, who.depth, who.interactive)
        if any(each is not None for each in rest):
            self._lose("Cedar knows of an agent only its role here")
            if permit:
                return None
        if who.roles is None:
            return []
        roles = [f"principal == Role::{_string(role)}" for role in sorted(who.roles)]
        return [f"({' || '.join(roles)})"]

    def _target(self, target: Target, *, permit: bool) -> list[str] | None:
        terms: list[str] = []
        if target.servers is not None:
            options = [f"resource.server == {_string(name)}" for name in sorted(target.servers)]
            terms.append(f"({' || '.join(options)})")
        if target.kind is not None:
            kinds = ["resource", "resource_template"]
            kinds = kinds if target.kind is Kind.RESOURCE else [target.kind.value]
            terms.append(f"({' || '.join(f'resource.kind == {_string(kind)}' for kind in kinds)})")
        if target.names.by_segment:
            self._lose("Cedar has no patterns of a URI's segments")
            return None if permit else terms
        if "*" not in target.names.alternatives:
            names = [f"resource.name like {_pattern(name)}" for name in target.names.alternatives]
            terms.append(f"({' || '.join(names)})")
        return terms

    # ------------------------------------------------------------------------------ conditions

    def _written(self, condition: Condition, *, wanted: bool) -> str:
        """Write where a condition is true, or where it is false."""
        match condition:
            case Not():
                return self._written(condition.part, wanted=not wanted)
            case AllOf() | AnyOf():
                together = isinstance(condition, AllOf) is wanted
                parts = [self._written(part, wanted=wanted) for part in condition.parts]
                return _joined(parts, together=together)
            case Test(operand=Argument(pointer=pointer)):
                made = self._check(condition.check, _path(pointer.keys))
                if made is None:
                    return self._unsaid(condition)
                if isinstance(condition.check, Exists):
                    there = _there(pointer.keys)
                    return there if wanted else f"!({there})"
                guard = self._guard(condition.check, _path(pointer.keys))
                sign = "" if wanted else "!"
                return f"({_there(pointer.keys)} && {guard}{sign}({made}))"
            case _:
                return self._unsaid(condition)

    def _unsaid(self, condition: object) -> str:
        self._lose(f"Cedar cannot say this: {type(condition).__name__}")
        return _FALSE

    def _check(self, check: Check, path: str) -> str | None:
        match check:
            case Compare(comparison=comparison, literal=literal):
                written = _literal(literal)
                if written is None:
                    return None
                self._typed = True
                return f"{path} {comparison.value} {written}"
            case OneOf(options=options):
                each = [_literal(option) for option in options]
                if any(option is None for option in each):
                    return None
                self._typed = True
                return f"[{', '.join(option or '' for option in each)}].contains({path})"
            case Between(low=low, high=high) if isinstance(low, int) and isinstance(high, int):
                self._typed = True
                return f"{path} >= {low} && {path} <= {high}"
            case Text(match=match, text=str(text)):
                self._typed = True
                return f"{path} like {_LIKE[match](text)}"
            case Exists():
                return path
            case _:
                return None

    def _guard(self, check: Check, path: str) -> str:
        """Return what is an error in Cedar where an attribute has another type than the literals.

        Cedar says that values of two types differ; here such a test has no value. An error makes a
        permit silent, as it must be; a forbid it would take away, so that one goes without.
        """
        if self._rule.word is not RuleWord.PERMIT:
            return ""
        match check:
            case Compare(comparison=comparison, literal=literal) if comparison not in _ORDERED:
                return _only(path, [literal])
            case OneOf(options=options):
                return _only(path, options)
            case _:
                return ""

    def _lose(self, why: str, effect: Widens = Widens.NARROWER) -> None:
        rule = self._rule
        loss = Loss(
            where=str(rule.place), what=f'{rule.word.value} "{rule.id}"', why=why, effect=effect
        )
        if loss not in self._losses:
            self._losses.append(loss)


def _only(path: str, literals: Sequence[object]) -> str:
    """Return a test that is true for the one type that all literals have, and else an error."""
    kinds = {type(literal) for literal in literals}
    if kinds == {str}:
        return f'{path} like "*" && '
    if kinds == {bool}:
        return f"({path} || true) && "
    return f"{path} <= {path} && " if kinds == {int} else f"{_FALSE} && "


def _joined(parts: Sequence[str], *, together: bool) -> str:
    if together and _FALSE in parts:
        return _FALSE
    left = parts if together else [part for part in parts if part != _FALSE]
    if not left:
        return _FALSE
    return left[0] if len(left) == 1 else f"({(' && ' if together else ' || ').join(left)})"


def _path(keys: Sequence[str]) -> str:
    return "context" + "".join(
        f".{key}" if _NAME.fullmatch(key) else f"[{_string(key)}]" for key in keys
    )


def _there(keys: Sequence[str]) -> str:
    """Return a test that each member on the way is there."""
    steps = [
        f"{_path(keys[:at])} has {key if _NAME.fullmatch(key) else _string(key)}"
        for at, key in enumerate(keys)
    ]
    return " && ".join(steps)


def _literal(value: object) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return str(value)
    return _string(value) if isinstance(value, str) else None


def _string(text: str) -> str:
    pieces: list[str] = []
    for char in text:
        if char in '"\\':
            pieces.append(f"\\{char}")
        else:
            pieces.append(char if char.isprintable() else f"\\u{{{ord(char):x}}}")
    return f'"{"".join(pieces)}"'


def _pattern(text: str) -> str:
    """Write a pattern in which `*` is any characters."""
    return _string(text)


def _plain(text: str) -> str:
    """Write what stands in a pattern for itself, without its quotes."""
    return _string(text)[1:-1].replace("*", "\\*")


_LIKE: Final[dict[TextMatch, Callable[[str], str]]] = {
    TextMatch.STARTS: lambda text: f'"{_plain(text)}*"',
    TextMatch.ENDS: lambda text: f'"*{_plain(text)}"',
    TextMatch.CONTAINS: lambda text: f'"*{_plain(text)}*"',
    TextMatch.LIKE: _pattern,
}
