from __future__ import annotations

import pytest

from mcp_client.protocol.errors import Delivery, RemoteProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.surfaces.content import QUARANTINED
from mcp_client.protocol.surfaces.results import ToolResult, read_tool_result

LIMITS = ClientLimits()
TEXT = {"type": "text", "text": "hello"}
GOOD_BLOCKS: list[object] = [
    TEXT,
    {"type": "text", "text": "", "annotations": {"audience": ["user"]}, "novel": 1},
    {"type": "text", "text": "t", "annotations": None},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "audio", "data": "", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a", "name": "a"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "t"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}},
]
BAD_BLOCKS: list[object] = [
    None,
    "text",
    [],
    {},
    {"type": "text"},
    {"type": "text", "text": 1},
    {"type": "text", "text": "t", "annotations": []},
    {"type": ["text"], "text": "t"},
    {"type": "video", "data": "AAAA"},
    {"type": QUARANTINED, "reason": "the server says so"},
    {"type": "image", "data": "AAAA"},
    {"type": "image", "data": "not base64!", "mimeType": "image/png"},
    {"type": "image", "data": "AAA", "mimeType": "image/png"},
    {"type": "audio", "data": "é", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///a"},
    {"type": "resource", "resource": {"text": "t"}},
    {"type": "resource", "resource": {"uri": "file:///a"}},
    {"type": "resource", "resource": {"uri": "file:///a", "blob": "?"}},
    {"type": "resource"},
]


def read(result: object) -> ToolResult:
    return read_tool_result(result, LIMITS)


@pytest.mark.requirement("F-8")
@pytest.mark.parametrize("block", GOOD_BLOCKS)
def test_every_kind_of_block_is_carried_as_it_came(block: object) -> None:
    assert read({"content": [block]}).blocks == (block,)


@pytest.mark.requirement("S-15")
@pytest.mark.parametrize("block", BAD_BLOCKS)
def test_a_malformed_block_is_replaced_where_it_stood_and_harms_no_other(block: object) -> None:
    blocks = read({"content": [TEXT, block, TEXT]}).blocks

    assert blocks[0] == blocks[2] == TEXT
    assert blocks[1]["type"] == QUARANTINED
    assert blocks[1]["reason"] not in ("", "the server says so")


@pytest.mark.requirement("F-4")
@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, {"a": 1}, "text"])
def test_structured_content_is_any_json_value_and_present_if_it_was_sent(value: object) -> None:
    result = read({"content": [], "structuredContent": value})

    assert result.has_structured
    assert result.structured == value


def test_absent_structured_content_is_absent() -> None:
    assert not read({"content": []}).has_structured


def test_content_may_be_left_out_beside_structured_content() -> None:
    assert read({"structuredContent": {"a": 1}}).blocks == ()


@pytest.mark.requirement("S-16")
@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({}, False),
        ({"isError": None}, False),
        ({"isError": False}, False),
        ({"isError": True}, True),
    ],
)
def test_a_tools_own_failure_is_kept(members: dict[str, object], expected: bool) -> None:
    assert read({"content": [TEXT], **members}).is_error is expected


@pytest.mark.parametrize(
    "result",
    [
        None,
        [],
        "text",
        {},
        {"content": None},
        {"content": {}},
        {"content": None, "structuredContent": 1},
        {"content": [], "isError": "true"},
        {"content": [], "isError": 1},
    ],
)
def test_what_is_no_result_fails_the_call(result: object) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read(result)

    assert caught.value.delivery is Delivery.ANSWERED


def test_one_block_over_the_bound_fails_the_call() -> None:
    limits = ClientLimits(content_blocks_max=3)
    assert len(read_tool_result({"content": [TEXT] * 3}, limits).blocks) == 3

    with pytest.raises(RemoteProtocolError):
        read_tool_result({"content": [TEXT] * 4}, limits)


def test_the_text_of_a_result_is_its_text_blocks() -> None:
    assert (
        read(
            {
                "content": [
                    TEXT,
                    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
                    {},
                    TEXT,
                ]
            }
        ).text
        == "hello\nhello"
    )
