"""The schema of a form read into fields, within bounds; it checks no answer and asks nobody.

It is a flat object of simple fields (MCP 2025-06-18 and 2025-11-25). Whatever is no such field
refuses the form as a whole: half a form is another question. Keywords that a field does not have
(`pattern` among them) are left to the server, which checks the answer once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, TypedDict, assert_never, cast

from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.forms import (
    BooleanField,
    Choice,
    ChoiceField,
    Field,
    NumberField,
    TextField,
    TextFormat,
    fault_of_value,
)
from mcp_client.protocol.surfaces.items import fault_of_id
from mcp_client.protocol.texts import short_text, text_of

__all__ = ["FormFault", "read_form"]


@dataclass(frozen=True, slots=True)
class FormFault:
    """Why a form cannot be shown: our own text."""

    reason: str


class _Labels(TypedDict):
    name: str
    title: str
    description: str
    required: bool


def read_form(schema: object, limits: ClientLimits) -> tuple[Field, ...] | FormFault:
    """Read the schema of a form, as decoded. Never raises for what a server sent."""
    members = as_object(schema)
    properties = None if members is None else as_object(members.get("properties"))
    if members is None or properties is None or members.get("type") != "object":
        return FormFault("a form describes an object with properties")
    if len(properties) > limits.form_fields_max:
        return FormFault(f"a form has more than {limits.form_fields_max} fields")
    required = members.get("required")
    if not isinstance(required, list | None):
        return FormFault("the required fields of a form are an array")
    needed = cast("list[object]", required or [])
    fields: list[Field] = []
    for name, definition in properties.items():
        read = _read_field(name, definition, is_required=name in needed, limits=limits)
        if isinstance(read, FormFault):
            return read
        fields.append(read)
    return tuple(fields)


def _read_field(
    name: str, definition: object, *, is_required: bool, limits: ClientLimits
) -> Field | FormFault:
    members = as_object(definition)
    if members is None or fault_of_id("name", name, limits.name_chars_max):
        return FormFault("a field is an object under a name that can be shown")
    labels = _Labels(
        name=name,
        title=short_text(members, "title", limits.name_chars_max),
        description=short_text(members, "description", limits.peer_message_chars_max),
        required=is_required,
    )
    match members.get("type"):
        case "string" if "enum" in members or "oneOf" in members:
            field = _read_choice(members, labels, limits)
        case "string":
            field = _read_text(members, labels)
        case "number" | "integer" as kind:
            field = _read_number(members, labels, is_integer=kind == "integer")
        case "boolean":
            field = BooleanField(**labels)
        case "array":
            field = _read_several(members, labels, limits)
        case _:
            return FormFault("a field is of a type that forms do not have")
    if isinstance(field, FormFault):
        return field
    return _with_default(field, members.get("default"), limits)


def _read_text(members: Mapping[str, object], labels: _Labels) -> TextField | FormFault:
    low, high = members.get("minLength", 0), members.get("maxLength")
    if not _is_count(low) or not (high is None or _is_count(high)):
        return FormFault("the length of a text is a natural number")
    return TextField(
        **labels,
        length_min=cast("int", low),
        length_max=cast("int | None", high),
        # one that is not known is the server's to check
        format=_FORMATS.get(text_of(members, "format")),
    )


def _read_number(
    members: Mapping[str, object], labels: _Labels, *, is_integer: bool
) -> NumberField | FormFault:
    low, high = members.get("minimum"), members.get("maximum")
    if not all(bound is None or _is_number(bound) for bound in (low, high)):
        return FormFault("the bounds of a number are numbers")
    return NumberField(
        **labels,
        is_integer=is_integer,
        minimum=cast("float | None", low),
        maximum=cast("float | None", high),
    )


def _read_choice(
    members: Mapping[str, object], labels: _Labels, limits: ClientLimits
) -> ChoiceField | FormFault:
    choices = _read_choices(members, "oneOf", limits)
    if isinstance(choices, FormFault):
        return choices
    return ChoiceField(**labels, choices=choices)


def _read_several(
    members: Mapping[str, object], labels: _Labels, limits: ClientLimits
) -> ChoiceField | FormFault:
    items = as_object(members.get("items"))
    if items is None:
        return FormFault("a field for several values says which there are")
    choices = _read_choices(items, "anyOf", limits)
    if isinstance(choices, FormFault):
        return choices
    low, high = members.get("minItems", 0), members.get("maxItems")
    if not _is_count(low) or not (high is None or _is_count(high)):
        return FormFault("the number of values is a natural number")
    return ChoiceField(
        **labels,
        choices=choices,
        is_multiple=True,
        count_min=cast("int", low),
        count_max=cast("int | None", high),
    )


def _read_choices(
    members: Mapping[str, object], titled: str, limits: ClientLimits
) -> tuple[Choice, ...] | FormFault:
    """Read `enum`, with `enumNames` or without, or an array of constants with titles."""
    options = members.get("enum", members.get(titled))
    if not isinstance(options, list) or not options:
        return FormFault("a field to choose from says what there is")
    found = cast("list[object]", options)
    if len(found) > limits.form_options_max:
        return FormFault(f"a field has more than {limits.form_options_max} values to choose from")
    if "enum" in members:
        names = members.get("enumNames")
        titles = cast("list[object]", names) if isinstance(names, list) else []
        pairs = list(zip(found, titles if len(titles) == len(found) else found, strict=True))
    else:
        constants = [as_object(option) or {} for option in found]
        pairs = [(constant.get("const"), constant.get("title")) for constant in constants]
    choices: dict[str, Choice] = {}
    for value, title in pairs:
        if not isinstance(value, str) or not isinstance(title, str):
            return FormFault("a value to choose is a text, and so is what is shown for it")
        if len(value) > limits.name_chars_max or len(title) > limits.peer_message_chars_max:
            return FormFault("a value to choose, or what is shown for it, is too long")
        choices[value] = Choice(value, title)
    return tuple(choices.values())


def _with_default(field: Field, default: object, limits: ClientLimits) -> Field:
    """Return the field with what is to be filled in beforehand, where that fits it."""
    if default is None or fault_of_value(field, default, limits):
        return field
    match field:
        case TextField():
            return replace(field, default=cast("str", default))
        case NumberField():
            return replace(field, default=cast("float", default))
        case BooleanField():
            return replace(field, default=cast("bool", default))
        case ChoiceField(is_multiple=True):
            return replace(field, default=tuple(cast("list[str]", default)))
        case ChoiceField():
            return replace(field, default=(cast("str", default),))
        case _:
            assert_never(field)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is float


_FORMATS: Final[Mapping[str, TextFormat]] = {each.value: each for each in TextFormat}
