"""Resources, templates and prompts as a server lists them, one malformed one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.jsonrpc import decode, encode
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.content import QUARANTINED
from mcp_client.protocol.surfaces.items import Quarantined
from mcp_client.protocol.surfaces.prompts import (
    Prompt,
    PromptArgument,
    Role,
    read_prompt,
    read_prompt_result,
)
from mcp_client.protocol.surfaces.resources import (
    Resource,
    ResourceTemplate,
    read_resource,
    read_resource_result,
    read_template,
)
from mcp_client.protocol.surfaces.tools import read_tool
from mcp_client.protocol.texts import CUT_MARK

LIMITS = ClientLimits()
ICON = {"src": "https://canary.invalid/a.png", "sizes": ["any"]}
Read = Callable[[object, ClientLimits], object]


def resource(**members: object) -> dict[str, object]:
    return {"uri": "file:///a", "name": "a", **members}


def template(**members: object) -> dict[str, object]:
    return {"uriTemplate": "file:///{a}", "name": "a", **members}


def prompt(**members: object) -> dict[str, object]:
    return {"name": "a", **members}


def listed_tool(**members: object) -> dict[str, object]:
    return {"name": "a", "inputSchema": {"type": "object"}, **members}


@pytest.mark.requirement("S-6")
def test_a_resource_has_what_the_server_says_of_it() -> None:
    found = read_resource(
        resource(title="A", description="d", mimeType="text/plain", size=3, annotations={"x": 1}),
        LIMITS,
    )

    assert isinstance(found, Resource)
    assert (found.uri, found.name, found.title, found.description) == ("file:///a", "a", "A", "d")
    assert (found.mime_type, found.size, found.annotations) == ("text/plain", 3, {"x": 1})


@pytest.mark.parametrize("size", [None, -1, 1.5, True, "3"])
def test_a_size_that_is_none_is_not_known_and_does_no_harm(size: object) -> None:
    found = read_resource(resource(size=size), LIMITS)

    assert isinstance(found, Resource)
    assert found.size is None


@pytest.mark.requirement("J-8", "J-9", "F-27")
@pytest.mark.parametrize(
    ("read", "definition"),
    [(read_resource, resource()), (read_template, template()), (read_prompt, prompt())],
)
def test_whatever_else_a_definition_has_is_carried_along(
    read: Callable[[object, ClientLimits], Resource | ResourceTemplate | Prompt | Quarantined],
    definition: dict[str, object],
) -> None:
    sent = {**definition, "_meta": {"a/b": 1}, "icons": [ICON, 7, {}], "novel": [None]}

    found = read(sent, LIMITS)

    assert not isinstance(found, Quarantined)
    assert (found.meta, found.icons) == ({"a/b": 1}, (ICON,))
    assert decode(found.definition, LIMITS) == sent
    assert found.digest == hashlib.sha256(encode(sent)).hexdigest()


@pytest.mark.parametrize(
    ("read", "definition", "name"),
    [
        (read_resource, None, ""),
        (read_resource, {"name": "a"}, ""),
        (read_resource, resource(uri=""), ""),
        (read_resource, resource(uri=7), ""),
        (read_resource, resource(uri="file:///\n"), ""),
        (read_resource, {"uri": "file:///a"}, "file:///a"),
        (read_resource, resource(description=7), "file:///a"),
        (read_resource, resource(mimeType=[]), "file:///a"),
        (read_resource, resource(annotations=[]), "file:///a"),
        (read_template, [], ""),
        (read_template, {"name": "a"}, ""),
        (read_template, template(title=1), "file:///{a}"),
        (read_prompt, "a", ""),
        (read_prompt, {}, ""),
        (read_prompt, prompt(name=""), ""),
        (read_prompt, prompt(name="a\x1b[2J"), ""),
        (read_prompt, prompt(description={}), "a"),
        (read_prompt, prompt(arguments={}), "a"),
        (read_prompt, prompt(arguments=[7]), "a"),
        (read_prompt, prompt(arguments=[{"title": "x"}]), "a"),
        (read_prompt, prompt(arguments=[{"name": "x", "required": 1}]), "a"),
        (read_prompt, prompt(arguments=[{"name": "x", "description": 1}]), "a"),
        (read_prompt, prompt(arguments=[{"name": "x"}, {"name": "x"}]), "a"),
    ],
)
def test_what_is_malformed_is_quarantined_with_a_reason(
    read: Read, definition: object, name: str
) -> None:
    found = read(definition, LIMITS)

    assert isinstance(found, Quarantined)
    assert found.name == name
    assert found.reason


@pytest.mark.parametrize(
    ("read", "definition"),
    [
        (read_resource, resource),
        (read_template, template),
        (read_prompt, prompt),
        (read_tool, listed_tool),
    ],
)
def test_a_definition_one_byte_over_the_bound_is_quarantined(
    read: Read, definition: Callable[..., dict[str, object]]
) -> None:
    sent = definition(novel="x" * 100)
    size = len(encode(sent))

    assert not isinstance(read(sent, ClientLimits(definition_bytes_max=size)), Quarantined)
    assert isinstance(read(sent, ClientLimits(definition_bytes_max=size - 1)), Quarantined)


def test_a_uri_one_character_over_the_bound_is_quarantined() -> None:
    limits = ClientLimits(uri_chars_max=9)

    assert isinstance(read_resource(resource(uri="file:///a"), limits), Resource)
    assert isinstance(read_resource(resource(uri="file:///ab"), limits), Quarantined)


def test_texts_over_their_bounds_are_cut_and_icons_left_out() -> None:
    limits = ClientLimits(name_chars_max=10, description_chars_max=12, icons_max=1)

    found = read_resource(
        resource(name="n" * 11, title="t" * 10, description="d" * 13, icons=[ICON, ICON]), limits
    )

    assert isinstance(found, Resource)
    assert (len(found.name), found.name.endswith(CUT_MARK)) == (10, True)
    assert found.title == "t" * 10
    assert (len(found.description), found.description.endswith(CUT_MARK)) == (12, True)
    assert found.icons == (ICON,)


@pytest.mark.requirement("S-7")
def test_a_prompt_has_its_arguments_in_their_order() -> None:
    found = read_prompt(
        prompt(arguments=[{"name": "b", "title": "B", "required": True}, {"name": "a"}]), LIMITS
    )

    assert isinstance(found, Prompt)
    assert found.arguments == (
        PromptArgument(name="b", title="B", required=True),
        PromptArgument(name="a"),
    )


def test_a_prompt_with_one_argument_over_the_bound_is_quarantined() -> None:
    limits = ClientLimits(prompt_arguments_max=2)
    arguments = [{"name": name} for name in "abc"]

    assert isinstance(read_prompt(prompt(arguments=arguments[:2]), limits), Prompt)
    assert isinstance(read_prompt(prompt(arguments=arguments), limits), Quarantined)


# ----------------------------------------------------------------------------------------- results


@pytest.mark.requirement("F-20")
def test_a_read_may_give_several_texts_and_blobs() -> None:
    read = read_resource_result(
        {
            "contents": [
                {"uri": "file:///a", "text": "é", "mimeType": "text/plain", "_meta": {"a": 1}},
                {"uri": "file:///b", "blob": "AAE="},
                {"uri": "file:///c", "text": ""},
            ],
            "_meta": {"b": 2},
        },
        LIMITS,
    )

    assert [part.data for part in read.contents] == ["é".encode(), b"\x00\x01", b""]
    assert (read.contents[0].mime_type, read.contents[0].meta) == ("text/plain", {"a": 1})
    assert (read.quarantined, read.meta) == ((), {"b": 2})


@pytest.mark.requirement("F-20")
@pytest.mark.parametrize(
    "part",
    [
        None,
        {},
        {"uri": "file:///a"},
        {"text": "t"},
        {"uri": 7, "text": "t"},
        {"uri": "file:///\n", "text": "t"},
        {"uri": "file:///a", "text": 7},
        {"uri": "file:///a", "blob": "?"},
        {"uri": "file:///a", "blob": "AAE"},
        {"uri": "file:///a", "blob": "AA\nE="},
        {"uri": "file:///a", "text": "t", "blob": "AAE="},
        {"uri": "file:///a", "text": "t", "mimeType": 7},
    ],
)
def test_a_bad_part_of_a_resource_is_set_apart_and_the_others_are_read(part: object) -> None:
    good = {"uri": "file:///b", "text": "t"}

    read = read_resource_result({"contents": [part, good]}, LIMITS)

    assert [each.uri for each in read.contents] == ["file:///b"]
    assert len(read.quarantined) == 1


@pytest.mark.requirement("F-23")
def test_the_messages_of_a_prompt_keep_their_roles_and_bad_ones_are_marked() -> None:
    text = {"type": "text", "text": "hi", "annotations": {"audience": ["user"]}}

    result = read_prompt_result(
        {
            "description": "d",
            "messages": [
                {"role": "user", "content": text},
                {"role": "assistant", "content": {"type": "video"}},
                {"role": "system", "content": text},
                7,
            ],
        },
        LIMITS,
    )

    assert [message.role for message in result.messages[:2]] == [Role.USER, Role.ASSISTANT]
    assert result.messages[0].block == text
    assert [message.block["type"] for message in result.messages[1:]] == [QUARANTINED] * 3


@pytest.mark.parametrize("read", [read_resource_result, read_prompt_result])
@pytest.mark.parametrize(
    "result", [None, [], "text", {}, {"contents": {}, "messages": {}}, {"contents": None}]
)
def test_what_is_no_result_fails_its_request(read: Read, result: object) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(result, LIMITS)

    assert caught.value.delivery is Delivery.ANSWERED


@pytest.mark.parametrize(
    ("read", "member"), [(read_resource_result, "contents"), (read_prompt_result, "messages")]
)
def test_one_part_over_the_bound_fails_its_request(read: Read, member: str) -> None:
    limits = ClientLimits(content_blocks_max=2)

    read({member: [None] * 2}, limits)
    with pytest.raises(RemoteProtocolError):
        read({member: [None] * 3}, limits)


# ----------------------------------------------------------------------------------- input schemas


def tool(schema: dict[str, object]) -> dict[str, object]:
    return {"name": "t", "inputSchema": {"type": "object", **schema}}


def nested(depth: int) -> dict[str, object]:
    schema: dict[str, object] = {}
    for _ in range(depth):
        schema = {"not": schema}
    return schema


@pytest.mark.requirement("F-6", "S-14")
def test_a_schema_one_level_or_one_object_over_the_bound_quarantines_its_tool() -> None:
    limits = ClientLimits(schema_depth_max=5, schema_objects_max=5)

    assert not isinstance(read_tool(tool(nested(4)), limits), Quarantined)
    assert isinstance(read_tool(tool(nested(5)), ClientLimits(schema_depth_max=5)), Quarantined)
    wide: dict[str, object] = {"allOf": [{}] * 4}
    assert not isinstance(read_tool(tool(wide), limits), Quarantined)
    wider: dict[str, object] = {"allOf": [{}] * 5}
    assert isinstance(read_tool(tool(wider), limits), Quarantined)


@pytest.mark.requirement("F-6")
def test_brackets_inside_of_texts_are_no_structure() -> None:
    limits = ClientLimits(schema_depth_max=5, schema_objects_max=5)

    assert not isinstance(read_tool(tool({"description": "{[" * 100}), limits), Quarantined)


@pytest.mark.requirement("F-6", "J-9")
def test_references_and_regular_expressions_of_a_schema_stay_words() -> None:
    schema = {
        "type": "object",
        "$defs": {"a": {"$ref": "https://canary.invalid/schema.json"}},
        "properties": {"x": {"$ref": "#/$defs/a"}, "y": {"pattern": "(a+)+$"}},
    }

    found = read_tool({"name": "t", "inputSchema": schema}, LIMITS)

    assert not isinstance(found, Quarantined)
    assert decode(found.input_schema, LIMITS) == schema
