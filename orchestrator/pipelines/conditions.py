"""`when`: whether a step runs, by an input or an answer. Text in, truth out; it can permit nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, cast

from orchestrator.core.errors import ConfigError, RemitError
from orchestrator.pipelines.references import BadReferenceError, Reference, parse_reference
from orchestrator.pipelines.values import json_value

__all__ = ["CONDITION_CHARS_MAX", "Condition", "parse_condition"]

CONDITION_CHARS_MAX: Final = 500
"""One condition: what is longer belongs into an agent."""

_FORM: Final = re.compile(r"(not\s+)?([A-Za-z0-9_.-]+)(?:\s*(==|!=|<=|>=|<|>)\s*(.+))?", re.DOTALL)
_FIX: Final = 'write AGENT.key, not AGENT.key, or AGENT.key == "text" (also != < <= > >=)'


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One comparison, or one truth. What is not there is null."""

    text: str
    reference: Reference
    operator: str = ""
    literal: object = None
    negated: bool = False

    def holds(self, handed: Mapping[str, object]) -> bool:
        """Return whether the step runs. Raises RemitError where the two cannot be compared."""
        value = self.reference.value(handed)
        match self.operator:
            case "":
                # an empty list, an empty text, 0, false and null are no
                return bool(value) is not self.negated
            case "==":
                return _same(value, self.literal)
            case "!=":
                return not _same(value, self.literal)
            case _:
                return self._ordered(value)

    def _ordered(self, value: object) -> bool:
        literal = self.literal
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RemitError(
                f"`when` compares {self.reference} with a number, and it is none",
                code="E-PIPELINE-WHEN",
                why=f"when = {self.text}",
            )
        bound = cast("float", literal)
        match self.operator:
            case "<":
                return value < bound
            case "<=":
                return value <= bound
            case ">":
                return value > bound
            case _:
                return value >= bound


def parse_condition(text: str, *, inputs: Collection[str], needs: Collection[str]) -> Condition:
    """Read a condition. Raises BadReferenceError for what is none."""
    found = _FORM.fullmatch(text.strip())
    if found is None or len(text) > CONDITION_CHARS_MAX:
        raise BadReferenceError("this is no condition", fix=_FIX)
    negated, name, operator, literal = found.groups()
    if negated and operator:
        raise BadReferenceError("`not` stands before a value alone", fix="write != in place of ==")
    value = None if literal is None else _literal(literal)
    if operator in ("<", "<=", ">", ">=") and (
        isinstance(value, bool) or not isinstance(value, int | float)
    ):
        raise BadReferenceError(f"{operator} compares with a number", fix=_FIX)
    return Condition(
        text=text.strip(),
        reference=parse_reference(name, inputs=inputs, needs=needs),
        operator=operator or "",
        literal=value,
        negated=bool(negated),
    )


def _literal(text: str) -> object:
    try:
        return json_value(text, "when")
    except ConfigError:
        raise BadReferenceError(
            "what a condition compares with is a text in quotes, a number, true, false or null",
            fix=_FIX,
        ) from None


def _same(value: object, literal: object) -> bool:
    """Compare as JSON does: true is not 1."""
    return isinstance(value, bool) is isinstance(literal, bool) and value == literal
