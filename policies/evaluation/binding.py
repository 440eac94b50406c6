"""Fills parameters into parsed policies. Afterwards no `Template` is left and each path is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from policies.errors import Place, PolicyError, excerpt_of, nearest_word
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Condition,
    Exists,
    Not,
    OneOf,
    Policy,
    Rule,
    Scalar,
    Template,
    Under,
)
from policies.patterns import PatternError, under

__all__ = ["bind"]


def bind(
    policy: Policy, *, parameters: Mapping[str, str], text: str, limits: PolicyLimits
) -> Policy:
    """Return `policy` with each `${name}` replaced. `text` is its source, for excerpts.

    A parameter is a plain piece of a string: it is not read as policy text.

    Raises:
        PolicyError: a parameter that is not there, too long a string, or an `under` without a path.
    """
    binder = _Binder(parameters, text, limits)
    return replace(policy, rules=tuple(binder.rule(rule) for rule in policy.rules))


@dataclass(frozen=True, slots=True)
class _Binder:
    parameters: Mapping[str, str]
    text: str
    limits: PolicyLimits

    def rule(self, rule: Rule) -> Rule:
        if rule.condition is None:
            return rule
        return replace(rule, condition=self.condition(rule.condition))

    def condition(self, condition: Condition) -> Condition:
        match condition:
            case Not():
                return Not(self.condition(condition.part))
            case AllOf():
                return AllOf(tuple(self.condition(part) for part in condition.parts))
            case AnyOf():
                return AnyOf(tuple(self.condition(part) for part in condition.parts))
            case Compare():
                return replace(condition, literal=self.scalar(condition.literal, condition.place))
            case OneOf():
                options = tuple(self.scalar(each, condition.place) for each in condition.options)
                return replace(condition, options=options)
            case Under():
                return self.path(condition)
            case Between() | Exists():
                return condition
            case _:
                assert_never(condition)

    def path(self, condition: Under) -> Under:
        prefix = self.string(condition.prefix, condition.place)
        try:
            under(prefix, chars_max=self.limits.path_chars_max)
        except PatternError as error:
            raise self.error(str(error), condition.place) from None
        return replace(condition, prefix=prefix)

    def scalar(self, literal: Scalar, place: Place) -> Scalar:
        return self.string(literal, place) if isinstance(literal, Template) else literal

    def string(self, literal: str | Template, place: Place) -> str:
        if isinstance(literal, str):
            return literal
        pieces: list[str] = []
        for part in literal.parts:
            if isinstance(part, str):
                pieces.append(part)
            elif part.name in self.parameters:
                pieces.append(self.parameters[part.name])
            else:
                raise self.error(
                    f"unknown parameter `{part.name}`",
                    part.place,
                    nearest_word(part.name, self.parameters),
                )
        filled = "".join(pieces)
        if len(filled) > self.limits.string_chars_max:
            raise self.error(
                f"a string has at most {self.limits.string_chars_max} characters, its parameters "
                "filled in",
                place,
            )
        return filled

    def error(self, message: str, place: Place, nearest: str = "") -> PolicyError:
        return PolicyError(
            message, place=place, nearest=nearest, excerpt=excerpt_of(self.text, place)
        )
