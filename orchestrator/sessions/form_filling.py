"""Forms of servers, filled in by typing: what is shown of a field, and what a typed line stands for.

Asks nobody; everything that it returns for showing has been made safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.forms import (
    BooleanField,
    ChoiceField,
    Field,
    FormValue,
    NumberField,
    TextField,
    fault_of_value,
)
from orchestrator.core.display import safe_line

__all__ = [
    "LEFT_OUT",
    "Fault",
    "LeftOut",
    "field_lines",
    "field_prompt",
    "read_value",
    "value_line",
]

CHOICES_SHOWN_MAX: Final = 64
"""Choices of one field that are listed; the others are counted, and can still be typed."""
_LIMITS: Final = ClientLimits()
_YES: Final = frozenset({"y", "yes", "true", "1"})
_NO: Final = frozenset({"n", "no", "false", "0"})


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line is no value of a field, in words of ours."""

    reason: str


class LeftOut:
    """Stands for a field that is not filled in."""


LEFT_OUT: Final = LeftOut()
"""An optional field that was passed over."""


def field_lines(each: Field) -> list[str]:
    """Return what a person is told of a field before they fill it in, line by line."""
    lines = [f"{_name(each)} is {_kind(each)}, {'required' if each.required else 'optional'}"]
    if each.description:
        lines.append(f"  {safe_line(each.description, reveal=True)}")
    if isinstance(each, ChoiceField):
        for number, choice in enumerate(each.choices[:CHOICES_SHOWN_MAX], 1):
            value = safe_line(choice.value, reveal=True, chars_max=200)
            title = safe_line(choice.title, reveal=True, chars_max=200)
            lines.append(
                f"  {number}. {value}" + (f" - {title}" if title not in ("", value) else "")
            )
        hidden = len(each.choices) - CHOICES_SHOWN_MAX
        if hidden > 0:
            lines.append(f"  {hidden} MORE CHOICES ARE NOT SHOWN")
    return lines


def field_prompt(each: Field) -> str:
    """Return the prompt for a field, with its default."""
    default = _default(each)
    return _name(each) + ("" if default is None else f" [{value_line(default)}]")


def value_line(value: FormValue) -> str:
    """Return a value as it would be sent, on one line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value}"
    text = value if isinstance(value, str) else ", ".join(value)
    return safe_line(text, reveal=True, chars_max=200)


def read_value(each: Field, line: str) -> FormValue | LeftOut | Fault:
    """Return what a typed line stands for. An empty one takes the default, or leaves it out."""
    if not line.strip():
        default = _default(each)
        if default is not None:
            return default
        return Fault("it has to be filled in") if each.required else LEFT_OUT
    value = _parsed(each, line)
    if isinstance(value, Fault):
        return value
    fault = fault_of_value(each, value, _LIMITS)
    return Fault(fault) if fault else value


def _parsed(each: Field, line: str) -> FormValue | Fault:
    match each:
        case TextField():
            return line
        case NumberField():
            return _number(line.strip(), is_integer=each.is_integer)
        case BooleanField():
            word = line.strip().lower()
            if word in _YES or word in _NO:
                return word in _YES
            return Fault("it is yes or no")
        case ChoiceField():
            if not each.is_multiple:
                return _choice(each, line.strip())
            return [_choice(each, word.strip()) for word in line.split(",") if word.strip()]
        case _:
            assert_never(each)


def _number(text: str, *, is_integer: bool) -> FormValue | Fault:
    try:
        return (
            int(text)
            if is_integer or ("." not in text and "e" not in text.lower())
            else float(text)
        )
    except ValueError:
        return Fault("it is a whole number" if is_integer else "it is a number")


def _choice(each: ChoiceField, word: str) -> str:
    """Return the value that a word names: itself, or by its number in the list."""
    values = [choice.value for choice in each.choices]
    if word not in values and word.isascii() and word.isdigit() and 0 < int(word) <= len(values):
        return values[int(word) - 1]
    return word


def _default(each: Field) -> FormValue | None:
    if isinstance(each, ChoiceField):
        if not each.default:
            return None
        chosen: Sequence[str] = each.default
        return list(chosen) if each.is_multiple else chosen[0]
    return each.default


def _name(each: Field) -> str:
    name = safe_line(each.name, reveal=True, chars_max=100)
    title = safe_line(each.title, reveal=True, chars_max=100)
    return f"{title} ({name})" if title and title != name else name


def _kind(each: Field) -> str:
    match each:
        case TextField():
            form = "" if each.format is None else f" ({each.format.value})"
            return f"a text{form}{_range(each.length_min or None, each.length_max, ' characters')}"
        case NumberField():
            word = "a whole number" if each.is_integer else "a number"
            return f"{word}{_range(each.minimum, each.maximum, '')}"
        case BooleanField():
            return "yes or no"
        case ChoiceField():
            return "some of these, with commas" if each.is_multiple else "one of these"
        case _:
            assert_never(each)


def _range(low: float | None, high: float | None, unit: str) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f" of at least {low}{unit}"
    return f" of at most {high}{unit}" if low is None else f" from {low} to {high}{unit}"
