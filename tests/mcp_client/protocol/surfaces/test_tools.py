from __future__ import annotations

import hashlib

import pytest

from mcp_client.protocol.jsonrpc import decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.tools import QuarantinedTool, Tool, read_tool
from mcp_client.protocol.texts import CUT_MARK

LIMITS = ClientLimits()
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "x-vendor": [1, {"b": None}]}}}


def definition(**members: object) -> dict[str, object]:
    return {"name": "t", "description": "does", "inputSchema": SCHEMA, **members}


def read(members: object, limits: ClientLimits = LIMITS) -> Tool:
    tool = read_tool(members, limits)
    assert isinstance(tool, Tool)
    return tool


def reason(members: object, limits: ClientLimits = LIMITS) -> str:
    tool = read_tool(members, limits)
    assert isinstance(tool, QuarantinedTool)
    return tool.reason


def test_a_tool_has_what_the_server_says_of_it() -> None:
    tool = read(definition(title="T", annotations={"readOnlyHint": True}))

    assert (tool.name, tool.title, tool.description) == ("t", "T", "does")
    assert tool.annotations == {"readOnlyHint": True}


@pytest.mark.requirement("J-9")
def test_the_whole_definition_is_kept_with_every_keyword() -> None:
    sent = definition(outputSchema={"type": "object"}, _meta={"a": 1}, novel=[1.5])

    tool = read(sent)

    assert decode(tool.definition, LIMITS) == sent
    assert decode(tool.input_schema, LIMITS) == SCHEMA


@pytest.mark.requirement("S-45")
def test_the_digest_is_that_of_the_canonical_definition() -> None:
    sent = definition()

    assert read(sent).digest == hashlib.sha256(encode(sent)).hexdigest()


@pytest.mark.parametrize(
    "more",
    [
        {"_meta": {"inputSchema": None}},
        {"_meta": {"inputSchema": None}, "title": "t", "annotations": {"inputSchema": None}},
        {"zzz": [{"inputSchema": None}]},
        {"description": '"inputSchema":null'},
    ],
)
def test_the_schema_is_its_own_though_other_members_have_one_of_that_name(
    more: dict[str, object],
) -> None:
    sent = {**definition(), **more}
    tool = read(sent)

    assert (tool.definition, decode(tool.input_schema, LIMITS)) == (encode(sent), SCHEMA)


def test_a_schema_that_is_the_first_or_the_last_member_is_found() -> None:
    for more in ({"_meta": {"inputSchema": None}}, {"a": {"inputSchema": None}}):
        sent: dict[str, object] = {"name": "t", "inputSchema": SCHEMA, **more}
        tool = read(sent)

        assert (tool.definition, decode(tool.input_schema, LIMITS)) == (encode(sent), SCHEMA)


def test_the_digest_does_not_depend_on_the_order_of_members() -> None:
    sent = definition()

    assert read(dict(reversed(sent.items()))).digest == read(sent).digest


@pytest.mark.parametrize(
    "change",
    [
        {"description": "does "},
        {"inputSchema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"outputSchema": {}},
        {"title": ""},
        {"novel": 1},
    ],
)
def test_any_change_of_a_definition_changes_its_digest(change: dict[str, object]) -> None:
    assert read(definition(**change)).digest != read(definition()).digest


@pytest.mark.requirement("S-19")
def test_a_long_description_is_cut_and_marked_and_its_digest_is_of_the_whole() -> None:
    limits = ClientLimits(description_chars_max=20)

    tool = read(definition(description="d" * 21), limits)

    assert len(tool.description) == 20
    assert tool.description.endswith(CUT_MARK)
    assert tool.digest == read(definition(description="d" * 21)).digest
    assert read(definition(description="d" * 20), limits).description == "d" * 20


@pytest.mark.requirement("S-14")
@pytest.mark.requirement("F-6")
@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema#",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-07/schema#",
    ],
)
def test_2020_12_and_draft_7_are_taken(dialect: str) -> None:
    assert read(definition(inputSchema={"$schema": dialect, "type": "object"})).name == "t"


@pytest.mark.requirement("S-14")
@pytest.mark.requirement("F-6")
@pytest.mark.parametrize(
    "dialect",
    ["http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2019-09/schema", 7],
)
def test_a_tool_of_another_dialect_is_quarantined(dialect: object) -> None:
    assert "dialect" in reason(definition(inputSchema={"$schema": dialect, "type": "object"}))


@pytest.mark.requirement("S-14")
@pytest.mark.parametrize(
    "schema",
    [None, [], "object", True, {}, {"type": "string"}, {"type": ["object"]}, {"anyOf": []}],
)
def test_a_schema_that_does_not_describe_an_object_is_quarantined(schema: object) -> None:
    assert "schema" in reason(definition(inputSchema=schema))


@pytest.mark.parametrize(
    "members",
    [
        None,
        [],
        "tool",
        {},
        definition(name=None),
        definition(name=""),
        definition(name=3),
        definition(name="a\nb"),
        definition(name="a\u202eb"),
        definition(name="a\u200bb"),
        definition(description=1),
        definition(title=[]),
        definition(annotations=[]),
    ],
)
def test_a_malformed_definition_is_quarantined_with_a_reason(members: object) -> None:
    assert reason(members)


def test_null_stands_for_nothing_where_a_member_is_optional() -> None:
    tool = read(definition(title=None, description=None, annotations=None))

    assert (tool.title, tool.description, tool.annotations) == ("", "", {})


@pytest.mark.requirement("F-7")
@pytest.mark.parametrize("name", ["Weather.get", "with space", "größe", "a/b", "T", "x" * 256])
def test_names_beyond_the_recommendation_are_survived(name: str) -> None:
    assert read(definition(name=name)).name == name


def test_a_name_one_over_the_bound_is_quarantined() -> None:
    assert "name" in reason(definition(name="x" * (LIMITS.name_chars_max + 1)))


@pytest.mark.requirement("S-14")
def test_a_schema_one_byte_over_the_bound_is_quarantined() -> None:
    size = len(encode(SCHEMA))

    assert read(definition(), ClientLimits(schema_bytes_max=size)).name == "t"
    assert "bytes" in reason(definition(), ClientLimits(schema_bytes_max=size - 1))


@pytest.mark.parametrize("more", [{}, {"zeta": "inputSchema"}, {"aaa": {"inputSchema": 1}, "é": 2}])
def test_the_schema_is_found_within_the_definition(more: dict[str, object]) -> None:
    tool = read(definition(**more))

    assert tool.definition == encode(definition(**more))
    assert tool.input_schema == encode(SCHEMA)
