"""Fills parameters into parsed policies. Afterwards no `Template` is left and each pattern is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from policies.errors import Place, PolicyError, excerpt_of, nearest_word
from policies.limits import PolicyLimits
from policies.model import (
    AllOf,
    AnyOf,
    Assertion,
    Case,
    Check,
    Compare,
    Condition,
    Host,
    Network,
    Never,
    Not,
    OneOf,
    PathLike,
    Policy,
    Rule,
    Scalar,
    Template,
    Test,
    TestValue,
    Text,
    Under,
)
from policies.patterns import PatternError, parse_host, parse_network, path_like, under

__all__ = ["Binder"]


@dataclass(frozen=True, slots=True)
class Binder:
    """Replaces each `${name}`. `text` is the source, for excerpts.

    A parameter is a plain piece of a string: it is not read as policy text. Each method raises
    PolicyError for a parameter that is not there, too long a string, or a pattern that is none.
    """

    parameters: Mapping[str, str]
    text: str
    limits: PolicyLimits

    def policy(self, policy: Policy) -> Policy:
        """Return the policy with its parameters filled in."""
        return replace(policy, rules=tuple(map(self._rule, policy.rules)))

    def case(self, case: Case) -> Case:
        """Return a test with its parameters filled in."""
        return replace(
            case,
            arguments={
                key: self._value(value, case.place) for key, value in case.arguments.items()
            },
        )

    def assertion(self, assertion: Assertion) -> Assertion:
        """Return an assertion with its parameters filled in."""
        if not isinstance(assertion, Never) or assertion.condition is None:
            return assertion
        return replace(assertion, condition=self._condition(assertion.condition))

    def _rule(self, rule: Rule) -> Rule:
        if rule.condition is None:
            return rule
        return replace(rule, condition=self._condition(rule.condition))

    def _condition(self, condition: Condition) -> Condition:
        match condition:
            case Not():
                return Not(self._condition(condition.part))
            case AllOf():
                return AllOf(tuple(self._condition(part) for part in condition.parts))
            case AnyOf():
                return AnyOf(tuple(self._condition(part) for part in condition.parts))
            case Test():
                return replace(condition, check=self._check(condition.check, condition.place))
            case _:
                return condition

    def _check(self, check: Check, place: Place) -> Check:
        most = self.limits.path_chars_max
        match check:
            case Compare():
                return Compare(check.comparison, self._scalar(check.literal, place))
            case OneOf():
                return OneOf(tuple(self._scalar(each, place) for each in check.options))
            case Under():
                prefix = self._string(check.prefix, place)
                self._try(lambda: under(prefix, chars_max=most), place)
                return Under(prefix)
            case PathLike():
                pattern = self._string(check.pattern, place)
                self._try(lambda: path_like(pattern, chars_max=most), place)
                return PathLike(pattern)
            case Text():
                return Text(check.match, self._string(check.text, place))
            case Host():
                hosts = tuple(self._string(each, place) for each in check.hosts)
                self._try(lambda: [parse_host(host) for host in hosts], place)
                return Host(hosts)
            case Network():
                networks = tuple(self._string(each, place) for each in check.networks)
                self._try(lambda: [parse_network(network) for network in networks], place)
                return Network(networks)
            case _:
                return check

    def _try(self, read: Callable[[], object], place: Place) -> None:
        try:
            read()
        except PatternError as error:
            raise self._error(str(error), place) from None

    def _value(self, value: TestValue, place: Place) -> TestValue:
        if isinstance(value, dict):
            return {key: self._value(inner, place) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._value(inner, place) for inner in value]
        return self._scalar(value, place)

    def _scalar(self, literal: Scalar, place: Place) -> Scalar:
        return self._string(literal, place) if isinstance(literal, Template) else literal

    def _string(self, literal: str | Template, place: Place) -> str:
        if isinstance(literal, str):
            return literal
        pieces: list[str] = []
        for part in literal.parts:
            if isinstance(part, str):
                pieces.append(part)
            elif part.name in self.parameters:
                pieces.append(self.parameters[part.name])
            else:
                raise self._error(
                    f"unknown parameter `{part.name}`",
                    part.place,
                    nearest_word(part.name, self.parameters),
                )
        filled = "".join(pieces)
        if len(filled) > self.limits.string_chars_max:
            raise self._error(
                f"a string has at most {self.limits.string_chars_max} characters, its parameters "
                "filled in",
                place,
            )
        return filled

    def _error(self, message: str, place: Place, nearest: str = "") -> PolicyError:
        return PolicyError(
            message, place=place, nearest=nearest, excerpt=excerpt_of(self.text, place)
        )
