"""The fields of a form that a server wants filled in, and whether an answer fits; it asks nobody."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import assert_never, cast
from urllib.parse import urlsplit

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits

__all__ = [
    "BooleanField",
    "Choice",
    "ChoiceField",
    "Field",
    "FormValue",
    "Labelled",
    "NumberField",
    "TextField",
    "TextFormat",
    "check_answer",
    "defaults",
    "fault_of_value",
]

FormValue = str | int | float | bool | Sequence[str]
"""What can be filled into a field."""


class TextFormat(Enum):
    """What a text has to look like."""

    EMAIL = "email"
    URI = "uri"
    DATE = "date"
    DATE_TIME = "date-time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What every field has. All of it is untrusted, and bounded."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField(Labelled):
    """A text; the default is for filling in beforehand, and has been checked like an answer."""

    length_min: int = 0
    length_max: int | None = None
    format: TextFormat | None = None
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberField(Labelled):
    """A number, fractional or not."""

    is_integer: bool = False
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BooleanField(Labelled):
    """Yes or no."""

    default: bool | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the values to choose from, and what people are shown for it."""

    value: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceField(Labelled):
    """One of some values, or several of them; `default` is a tuple of those chosen beforehand."""

    choices: tuple[Choice, ...]
    is_multiple: bool = False
    count_min: int = 0
    count_max: int | None = None
    default: tuple[str, ...] | None = None


Field = TextField | NumberField | BooleanField | ChoiceField
"""One field of a form."""


def defaults(fields: Sequence[Field]) -> Mapping[str, FormValue]:
    """Return what the server would have filled in beforehand; a person still has to agree."""
    found: dict[str, FormValue] = {}
    for field in fields:
        if isinstance(field, ChoiceField) and not field.is_multiple and field.default:
            found[field.name] = field.default[0]
        elif field.default is not None:
            found[field.name] = field.default
    return found


def check_answer(
    fields: Sequence[Field], content: Mapping[str, object], limits: ClientLimits
) -> Mapping[str, FormValue]:
    """Return what was filled in. Raises LocalProtocolError for what does not fit the form."""
    known = {field.name: field for field in fields}
    checked: dict[str, FormValue] = {}
    for name, value in content.items():
        field = known.get(name)
        if field is None:
            raise LocalProtocolError("a value is for no field of the form", stage="send")
        fault = fault_of_value(field, value, limits)
        if fault:
            raise LocalProtocolError(f"a value does not fit its field: {fault}", stage="send")
        checked[name] = cast("FormValue", value)
    if any(field.required and field.name not in checked for field in fields):
        raise LocalProtocolError("a required field was not filled in", stage="send")
    return checked


def fault_of_value(field: Field, value: object, limits: ClientLimits) -> str:
    """Return why a value does not fit a field; empty if it does."""
    match field:
        case TextField():
            return _fault_of_text(field, value, limits)
        case NumberField():
            return _fault_of_number(field, value)
        case BooleanField():
            return "" if isinstance(value, bool) else "it is yes or no"
        case ChoiceField():
            return _fault_of_choice(field, value)
        case _:
            assert_never(field)


def _fault_of_text(field: TextField, value: object, limits: ClientLimits) -> str:
    if not isinstance(value, str):
        return "it is a text"
    if len(value) > limits.form_text_chars_max:
        return f"it has more than {limits.form_text_chars_max} characters"
    if len(value) < field.length_min:
        return "it is shorter than it may be"
    if field.length_max is not None and len(value) > field.length_max:
        return "it is longer than it may be"
    return "" if field.format is None or _looks_like(field.format, value) else "it has another form"


def _looks_like(format_: TextFormat, value: str) -> bool:
    match format_:
        case TextFormat.EMAIL:
            name, _, host = value.rpartition("@")
            return bool(name and host) and not any(char.isspace() for char in value)
        case TextFormat.URI:
            return _is_uri(value)
        case TextFormat.DATE:
            return value[4:8:3] == "--" and _parses(date.fromisoformat, value)
        case TextFormat.DATE_TIME:
            return "T" in value.upper() and _parses(datetime.fromisoformat, value)
        case _:
            assert_never(format_)


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def _is_uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme and (parts.netloc or parts.path)) and value.isprintable()


def _fault_of_number(field: NumberField, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "it is a number"
    if field.is_integer and not isinstance(value, int):
        return "it is a whole number"
    if field.minimum is not None and not value >= field.minimum:
        return "it is smaller than it may be"
    if field.maximum is not None and not value <= field.maximum:
        return "it is larger than it may be"
    return ""


def _fault_of_choice(field: ChoiceField, value: object) -> str:
    values = {choice.value for choice in field.choices}
    if not field.is_multiple:
        return "" if isinstance(value, str) and value in values else "it is none of the values"
    if not isinstance(value, list | tuple):
        return "it is an array"
    chosen = cast("Sequence[object]", value)
    if not all(isinstance(each, str) and each in values for each in chosen):
        return "it holds what is none of the values"
    if len(set(chosen)) != len(chosen):
        return "it holds a value twice"
    if len(chosen) < field.count_min:
        return "it holds fewer values than it may"
    if field.count_max is not None and len(chosen) > field.count_max:
        return "it holds more values than it may"
    return ""
