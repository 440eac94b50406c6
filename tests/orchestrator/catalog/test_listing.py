from __future__ import annotations

import json

import pytest

from orchestrator.catalog.listing import (
    Catalog,
    CatalogTool,
    ServerListing,
    definition_digest,
    list_server,
)
from orchestrator.core.display import CUT
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits

GIT = ServerName("git")
SMALL = OrchestratorLimits(
    server_tools_max=2,
    tool_name_chars_max=8,
    schema_bytes_max=100,
    schema_depth_max=4,
    schema_nodes_max=12,
    description_chars_max=20,
)


def tool(name: object = "log", **fields: object) -> dict[str, object]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def only(listing: ServerListing) -> CatalogTool:
    assert len(listing.tools) == 1
    return listing.tools[0]


def reason(definition: object, limits: OrchestratorLimits = SMALL) -> str:
    listing = list_server(GIT, [definition], limits=limits)
    assert not listing.tools
    return listing.quarantined[0].reason


def nested(depth: int) -> object:
    value: object = {}
    for _ in range(depth - 1):
        value = {"x": value}
    return value


def test_a_tool_keeps_what_its_server_said_of_it() -> None:
    definition = tool(description="shows the log", annotations={"readOnlyHint": True})

    listed = only(list_server(GIT, [definition]))

    assert listed.description == "shows the log"
    assert listed.annotations == {"readOnlyHint": True}
    assert listed.ref.digest == definition_digest(definition)
    assert str(listed.ref) == "git/log"


@pytest.mark.parametrize(
    "change",
    [
        {"description": "b"},
        {"annotations": {"readOnlyHint": True}},
        {"inputSchema": {"type": "object", "required": ["x"]}},
        {"outputSchema": {"type": "object"}},
        {"title": "Log"},
    ],
)
def test_every_change_of_a_definition_changes_its_digest(change: dict[str, object]) -> None:
    assert definition_digest(tool(description="a") | change) != definition_digest(
        tool(description="a")
    )


def test_the_order_of_keys_is_no_change() -> None:
    assert definition_digest({"a": 1, "b": 2}) == definition_digest({"b": 2, "a": 1})


def test_a_number_that_canonical_json_does_not_know_still_has_a_digest() -> None:
    large = definition_digest(tool(inputSchema={"maximum": 2**64 - 1}))

    assert large != definition_digest(tool(inputSchema={"maximum": 2**64 - 2}))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ("text", "not an object"),
        ({}, "no name"),
        (tool(7), "no name"),
        (tool(""), "no name"),
        (tool(description=1), "description is not text"),
        (tool(annotations=[]), "annotations are not an object"),
        ({"name": "a"}, "no input schema"),
        (tool(inputSchema={"type": "array"}), "does not describe an object"),
        (tool(inputSchema={}), "does not describe an object"),
        (tool(inputSchema={"type": "object", "$schema": "urn:mine"}), "dialect"),
        (tool(inputSchema={"type": "object", "$schema": 7}), "dialect"),
        (tool("n" * 9), "name is over 8"),
        (tool(inputSchema={"type": "object", "x": "y" * 100}), "over 100 bytes"),
        (tool(inputSchema={"type": "object", "x": nested(4)}), "nested over 4 deep"),
        (tool(outputSchema=nested(5)), "nested over 4 deep"),
        (tool(inputSchema={"type": "object", "x": [1] * 12}), "over 12 values"),
    ],
)
def test_a_bad_tool_is_quarantined_with_its_reason(definition: object, expected: str) -> None:
    assert expected in reason(definition)


@pytest.mark.parametrize(
    "definition",
    [
        tool("n" * 8),
        tool(inputSchema={"type": "object", "x": nested(3)}),
        tool(outputSchema=nested(4)),
        tool(inputSchema={"type": "object", "x": [1] * 7}),
    ],
)
def test_what_is_just_within_a_bound_is_listed(definition: object) -> None:
    assert not list_server(GIT, [definition], limits=SMALL).quarantined


@pytest.mark.requirement("S-14")
@pytest.mark.parametrize(
    "dialect",
    [
        "https://json-schema.org/draft/2020-12/schema",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
    ],
)
def test_the_dialects_that_mcp_names_are_accepted(dialect: str) -> None:
    schema = {"type": "object", "$schema": dialect}

    assert only(list_server(GIT, [tool(inputSchema=schema)])).input_schema == schema


def test_a_bad_tool_does_not_take_the_others_with_it() -> None:
    listing = list_server(GIT, [tool("a"), {"name": "b"}, tool("c")])

    assert [item.name for item in listing.tools] == ["a", "c"]
    assert [item.name for item in listing.quarantined] == ["b"]


def test_of_two_tools_with_one_name_neither_wins() -> None:
    listing = list_server(GIT, [tool("a", title="1"), tool("b"), tool("a", title="2")])

    assert [item.name for item in listing.tools] == ["b"]
    assert [item.name for item in listing.quarantined] == ["a"]


def test_tools_past_the_bound_are_left_out_and_it_is_said() -> None:
    listing = list_server(GIT, (tool(f"t{n}") for n in range(1_000)), limits=SMALL)

    assert [item.name for item in listing.tools] == ["t0", "t1"]
    assert "more than 2" in listing.quarantined[0].reason


@pytest.mark.requirement("S-19")
def test_a_long_description_is_cut_but_its_digest_is_of_all_of_it() -> None:
    first, second = (
        only(list_server(GIT, [tool(description="d" * 20 + end)], limits=SMALL)) for end in "xy"
    )

    assert first.description == second.description
    assert first.description.endswith(CUT)
    assert len(first.description) == 20
    assert first.digest != second.digest


def test_a_very_deep_definition_is_no_crash() -> None:
    assert "nested" in reason(tool(outputSchema=nested(20_000)), OrchestratorLimits())


def test_a_catalog_never_changes() -> None:
    before = Catalog([list_server(GIT, [tool("a")])])

    after = before.with_listing(list_server(GIT, [tool("b")]))

    assert [item.name for item in before.tools()] == ["a"]
    assert [item.name for item in after.tools()] == ["b"]


def test_a_catalog_finds_by_the_exact_server_and_name() -> None:
    catalog = Catalog([list_server(GIT, [tool("log")])])

    assert catalog.find(GIT, "log") is not None
    assert catalog.find(GIT, "Log") is None
    assert catalog.find(ServerName("gi"), "log") is None


def test_a_removed_server_is_gone_from_the_catalog() -> None:
    other = ServerName("time")
    catalog = Catalog([list_server(GIT, [tool()]), list_server(other, [tool()])]).without(GIT)

    assert catalog.servers == (other,)
    assert catalog.listing(GIT) is None


def test_a_definition_of_one_byte_too_many_is_left_out() -> None:
    definition = tool(title="x" * 500)
    size = len(json.dumps(definition))

    fits = list_server(GIT, [definition], limits=OrchestratorLimits(definition_bytes_max=size))

    assert only(fits).name == "log"
    assert reason(definition, OrchestratorLimits(definition_bytes_max=size - 1)) == (
        f"its definition is over {size - 1} bytes"
    )


def test_of_more_definitions_than_anybody_reads_the_last_are_left_out() -> None:
    size = len(json.dumps(tool("a")))
    limits = OrchestratorLimits(listing_bytes_max=2 * size)

    listed = list_server(GIT, [tool("a"), tool("b"), tool("c")], limits=limits)

    assert [found.name for found in listed.tools] == ["a", "b"]
    assert [found.reason for found in listed.quarantined] == [
        f"the server's definitions are over {2 * size} bytes"
    ]
