from __future__ import annotations

import pytest

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.peer.form_reading import FormFault, read_form
from mcp_client.protocol.peer.forms import (
    BooleanField,
    Choice,
    ChoiceField,
    Field,
    NumberField,
    TextField,
    TextFormat,
    check_answer,
    defaults,
)

LIMITS = ClientLimits()
LETTERS = (Choice("a", "A"), Choice("b", "B"))


def form(**fields: object) -> dict[str, object]:
    return {"type": "object", "properties": fields}


def read(schema: object, limits: ClientLimits = LIMITS) -> tuple[Field, ...]:
    fields = read_form(schema, limits)
    assert not isinstance(fields, FormFault)
    return fields


def field(definition: object) -> Field:
    (only,) = read(form(f=definition))
    return only


@pytest.mark.requirement("C-21")
@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (
            {"type": "string", "title": "T", "description": "D", "default": "x"},
            TextField(name="f", title="T", description="D", default="x"),
        ),
        (
            {"type": "string", "minLength": 1, "maxLength": 2, "format": "email"},
            TextField(name="f", length_min=1, length_max=2, format=TextFormat.EMAIL),
        ),
        ({"type": "string", "pattern": "(a+)+$", "format": "novel"}, TextField(name="f")),
        (
            {"type": "integer", "minimum": 1, "maximum": 3, "default": 2},
            NumberField(name="f", is_integer=True, minimum=1, maximum=3, default=2),
        ),
        ({"type": "number", "default": 0.5}, NumberField(name="f", default=0.5)),
        ({"type": "boolean", "default": False}, BooleanField(name="f", default=False)),
        (
            {"type": "string", "enum": ["a", "b"], "default": "b"},
            ChoiceField(name="f", choices=(Choice("a", "a"), Choice("b", "b")), default=("b",)),
        ),
        (
            {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
            ChoiceField(name="f", choices=LETTERS),
        ),
        (
            {
                "type": "string",
                "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}],
            },
            ChoiceField(name="f", choices=LETTERS),
        ),
        (
            {
                "type": "array",
                "items": {"type": "string", "enum": ["a"]},
                "minItems": 1,
                "maxItems": 2,
                "default": ["a"],
            },
            ChoiceField(
                name="f",
                choices=(Choice("a", "a"),),
                is_multiple=True,
                count_min=1,
                count_max=2,
                default=("a",),
            ),
        ),
        (
            {
                "type": "array",
                "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]},
            },
            ChoiceField(name="f", choices=LETTERS, is_multiple=True),
        ),
    ],
)
def test_every_kind_of_field_is_understood(definition: object, expected: Field) -> None:
    assert field(definition) == expected


@pytest.mark.requirement("C-21")
@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "object"},
        {"properties": {}},
        {"type": "string", "properties": {}},
        {"type": "object", "properties": [], "required": []},
        {"type": "object", "properties": {}, "required": "f"},
        form(f=None),
        form(f={}),
        form(f={"type": "object", "properties": {}}),
        form(f={"type": ["string", "null"]}),
        form(f={"type": "null"}),
        form(f={"$ref": "#/x"}),
        form(f={"anyOf": [{"type": "string"}]}),
        form(f={"type": "array"}),
        form(f={"type": "array", "items": {"type": "string"}}),
        form(f={"type": "array", "items": {"type": "object"}}),
        form(f={"type": "array", "items": {"enum": ["a"]}, "minItems": -1}),
        form(f={"type": "string", "enum": []}),
        form(f={"type": "string", "enum": [1]}),
        form(f={"type": "string", "enum": "ab"}),
        form(f={"type": "string", "oneOf": [{"const": "a"}]}),
        form(f={"type": "string", "oneOf": [{"type": "string"}]}),
        form(f={"type": "string", "enum": ["x" * 257]}),
        form(f={"type": "string", "minLength": -1}),
        form(f={"type": "string", "maxLength": "3"}),
        form(f={"type": "number", "minimum": True}),
        {"type": "object", "properties": {"a\nb": {"type": "string"}}},
        {"type": "object", "properties": {"": {"type": "string"}}},
    ],
)
def test_a_form_of_another_shape_is_refused_with_a_reason(schema: object) -> None:
    fault = read_form(schema, LIMITS)

    assert isinstance(fault, FormFault)
    assert fault.reason


@pytest.mark.requirement("C-21")
def test_one_field_or_one_value_over_the_bound_refuses_the_form() -> None:
    limits = ClientLimits(form_fields_max=2, form_options_max=2)
    text = {"type": "string"}

    assert len(read(form(a=text, b={"type": "string", "enum": ["a", "b"]}), limits)) == 2
    assert isinstance(read_form(form(a=text, b=text, c=text), limits), FormFault)
    choice = {"type": "string", "enum": ["a", "b", "c"]}
    assert isinstance(read_form(form(a=choice), limits), FormFault)


@pytest.mark.requirement("C-23")
def test_defaults_are_for_filling_in_beforehand_where_they_fit() -> None:
    fields = read(
        form(
            a={"type": "string", "default": "x"},
            b={"type": "integer", "default": "no number"},
            c={"type": "boolean", "default": False},
            d={"type": "string", "enum": ["a"], "default": "a"},
            e={"type": "array", "items": {"enum": ["a"]}, "default": ["a"]},
            f={"type": "string", "enum": ["a"], "default": "z"},
        )
    )

    assert defaults(fields) == {"a": "x", "c": False, "d": "a", "e": ("a",)}


FILLED = read(
    {
        **form(
            text={"type": "string", "minLength": 2, "maxLength": 3},
            email={"type": "string", "format": "email"},
            uri={"type": "string", "format": "uri"},
            day={"type": "string", "format": "date"},
            time={"type": "string", "format": "date-time"},
            whole={"type": "integer", "minimum": 0, "maximum": 9},
            number={"type": "number", "minimum": 0},
            yes={"type": "boolean"},
            one={"type": "string", "enum": ["a", "b"]},
            some={
                "type": "array",
                "items": {"enum": ["a", "b", "c"]},
                "minItems": 1,
                "maxItems": 2,
            },
        ),
        "required": ["text"],
    }
)


@pytest.mark.requirement("C-22", "C-24")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "abc"),
        ("email", "a@b.c"),
        ("uri", "urn:a:b"),
        ("uri", "https://example.com/"),
        ("day", "2026-02-28"),
        ("time", "2026-02-28T10:00:00Z"),
        ("time", "2026-02-28T10:00:00.5+01:00"),
        ("whole", 9),
        ("number", 0.5),
        ("number", 1),
        ("yes", False),
        ("one", "a"),
        ("some", ["a", "c"]),
        ("some", ("b",)),
    ],
)
def test_an_answer_that_fits_its_field_is_taken(name: str, value: object) -> None:
    answer = {"text": "ab", name: value}

    assert check_answer(FILLED, answer, LIMITS) == answer


@pytest.mark.requirement("C-22")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "a"),
        ("text", "abcd"),
        ("text", 1),
        ("text", None),
        ("email", "a.b"),
        ("email", "a b@c"),
        ("uri", "no uri"),
        ("uri", "http://["),
        ("day", "2026-02-30"),
        ("day", "20260228"),
        ("day", "2026-W01-1"),
        ("time", "2026-02-28"),
        ("time", "now"),
        ("whole", 10),
        ("whole", -1),
        ("whole", 1.5),
        ("whole", True),
        ("number", "1"),
        ("number", False),
        ("number", float("nan")),
        ("yes", 1),
        ("one", "c"),
        ("one", ["a"]),
        ("some", "a"),
        ("some", []),
        ("some", ["a", "b", "c"]),
        ("some", ["a", "a"]),
        ("some", ["a", 1]),
        ("novel", "x"),
    ],
)
def test_an_answer_that_does_not_fit_is_not_sent(name: str, value: object) -> None:
    with pytest.raises(LocalProtocolError):
        check_answer(FILLED, {"text": "ab", name: value}, LIMITS)


@pytest.mark.requirement("C-22")
def test_a_required_field_that_was_left_out_is_not_sent() -> None:
    with pytest.raises(LocalProtocolError, match="required"):
        check_answer(FILLED, {}, LIMITS)


def test_a_text_one_character_over_the_bound_is_not_sent() -> None:
    limits = ClientLimits(form_text_chars_max=3)
    fields = read(form(f={"type": "string"}), limits)

    assert check_answer(fields, {"f": "abc"}, limits)
    with pytest.raises(LocalProtocolError):
        check_answer(fields, {"f": "abcd"}, limits)
