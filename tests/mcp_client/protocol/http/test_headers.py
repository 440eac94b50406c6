from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from mcp_client.protocol.errors import LocalProtocolError
from mcp_client.protocol.http.headers import (
    INTEGER_MAX,
    HeaderMark,
    HeaderMarkError,
    decode_value,
    encode_value,
    mirrored_headers,
    read_header_marks,
)

REGION = {"type": "string", "x-mcp-header": "Region"}


def an_object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize("value", ["plain", "two words", "", "=?base64?open", "q?=", "a:b;c=~!"])
def test_a_plain_value_stays_as_it_is(value: str) -> None:
    assert encode_value(value) == value


@pytest.mark.requirement("N-4")
@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (" blank", "=?base64?IGJsYW5r?="),
        ("blank ", "=?base64?Ymxhbmsg?="),
        ("a\tb", "=?base64?YQli?="),
        ("a\r\nX: y", "=?base64?YQ0KWDogeQ==?="),
        ("\u00e9", "=?base64?w6k=?="),
        ("a\x7f", "=?base64?YX8=?="),
        ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
    ],
)
def test_a_value_that_is_not_plain_is_encoded(value: str, encoded: str) -> None:
    assert encode_value(value) == encoded


@pytest.mark.requirement("N-4")
@given(st.text())
def test_nothing_in_a_value_can_end_its_header_and_it_can_be_read_back(value: str) -> None:
    encoded = encode_value(value)

    assert (encoded.isascii(), encoded.isprintable(), encoded.strip()) == (True, True, encoded)
    assert decode_value(encoded) == value


@pytest.mark.parametrize(
    "value", ["=?base64?a?=", "=?base64?YR==?=", "=?base64?/w==?=", "=?base64?%?="]
)
def test_markers_around_what_is_never_encoded_mean_nothing(value: str) -> None:
    assert decode_value(value) is None


def test_a_lone_surrogate_is_the_callers_fault() -> None:
    with pytest.raises(LocalProtocolError):
        encode_value("\ud800")


@pytest.mark.requirement("N-3")
def test_marked_arguments_are_mirrored_and_no_others() -> None:
    schema = an_object(
        region=REGION,
        place=an_object(floor={"type": "integer", "x-mcp-header": "Floor"}),
        urgent={"type": "boolean", "x-mcp-header": "Urgent"},
        query={"type": "string"},
    )
    arguments = {"region": "eu west", "place": {"floor": -3}, "urgent": True, "query": "secret"}

    headers = mirrored_headers(read_header_marks(schema), arguments)

    assert dict(headers) == {
        "Mcp-Param-Region": "eu west",
        "Mcp-Param-Floor": "-3",
        "Mcp-Param-Urgent": "true",
    }


@pytest.mark.requirement("N-3")
@pytest.mark.parametrize(
    "arguments",
    [{}, {"region": None}, {"region": 1}, {"region": True}, {"region": ["a"]}, {"region": 1.5}],
    ids=["absent", "null", "integer", "boolean", "array", "float"],
)
def test_an_argument_without_a_text_of_its_type_has_no_header(arguments: dict[str, object]) -> None:
    assert mirrored_headers(read_header_marks(an_object(region=REGION)), arguments) == ()


@pytest.mark.requirement("N-3")
def test_a_member_below_something_else_than_an_object_is_absent() -> None:
    marks = (HeaderMark(header="Mcp-Param-A", path=("a", "b"), type="string"),)

    assert mirrored_headers(marks, {"a": "text"}) == ()


@pytest.mark.requirement("N-6")
@pytest.mark.parametrize("value", [INTEGER_MAX, -INTEGER_MAX])
def test_the_largest_safe_integer_is_mirrored(value: int) -> None:
    marks = (HeaderMark(header="Mcp-Param-N", path=("n",), type="integer"),)

    assert mirrored_headers(marks, {"n": value}) == (("Mcp-Param-N", str(value)),)


@pytest.mark.requirement("N-6")
@pytest.mark.parametrize("value", [INTEGER_MAX + 1, -INTEGER_MAX - 1])
def test_an_integer_past_it_is_refused(value: int) -> None:
    marks = (HeaderMark(header="Mcp-Param-N", path=("n",), type="integer"),)

    with pytest.raises(LocalProtocolError):
        mirrored_headers(marks, {"n": value})


@pytest.mark.requirement("N-5")
@pytest.mark.parametrize(
    "schema",
    [
        an_object(a={"type": "string", "x-mcp-header": ""}),
        an_object(a={"type": "string", "x-mcp-header": "two words"}),
        an_object(a={"type": "string", "x-mcp-header": "a\r\nb"}),
        an_object(a={"type": "string", "x-mcp-header": "\u00e9"}),
        an_object(a={"type": "string", "x-mcp-header": 7}),
        an_object(a=REGION, b={"type": "string", "x-mcp-header": "REGION"}),
        an_object(a={"type": "number", "x-mcp-header": "A"}),
        an_object(a={"type": "object", "x-mcp-header": "A"}),
        an_object(a={"type": ["string", "null"], "x-mcp-header": "A"}),
        an_object(a={"x-mcp-header": "A"}),
        {"type": "object", "x-mcp-header": "A"},
        an_object(a={"type": "array", "items": REGION}),
        an_object(a={"type": "array", "prefixItems": [REGION]}),
        an_object(a={"anyOf": [REGION]}),
        an_object(a={"if": {}, "then": REGION}),
        an_object(a={"$ref": "#/$defs/a"}) | {"$defs": {"a": REGION}},
        an_object() | {"patternProperties": {"^a": REGION}},
        an_object() | {"allOf": [an_object(a=REGION)]},
        an_object() | {"additionalProperties": REGION},
    ],
)
def test_a_mark_that_cannot_be_kept_is_refused(schema: Mapping[str, object]) -> None:
    with pytest.raises(HeaderMarkError):
        read_header_marks(schema)


def test_data_within_a_schema_is_no_mark() -> None:
    schema = an_object(a={"type": "object", "default": REGION, "enum": [REGION], "const": REGION})

    assert read_header_marks(schema) == ()
