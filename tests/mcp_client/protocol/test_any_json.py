"""Whatever JSON a server sends, reading it either works or refuses: nothing escapes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st

from mcp_client.protocol.declaration import ClientCapabilities
from mcp_client.protocol.errors import RemoteProtocolError
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.logs import read_log
from mcp_client.protocol.peer.elicitation import required_elicitations
from mcp_client.protocol.peer.requests import read_request
from mcp_client.protocol.surfaces.completion import read_completion
from mcp_client.protocol.surfaces.content import checked_block
from mcp_client.protocol.surfaces.prompts import read_prompt, read_prompt_result
from mcp_client.protocol.surfaces.resources import (
    read_resource,
    read_resource_result,
    read_template,
)
from mcp_client.protocol.surfaces.results import read_tool_result
from mcp_client.protocol.surfaces.tools import read_tool

LIMITS = ClientLimits()
ALL = ClientCapabilities(
    roots=True,
    sampling=True,
    sampling_tools=True,
    elicitation_form=True,
    elicitation_url=True,
)
WORDS = [
    *(
        "name",
        "uri",
        "uriTemplate",
        "title",
        "description",
        "inputSchema",
        "type",
        "object",
        "icons",
    ),
    *("text", "blob", "content", "contents", "messages", "role", "user", "arguments", "required"),
    *(
        "annotations",
        "_meta",
        "mimeType",
        "size",
        "src",
        "completion",
        "values",
        "total",
        "hasMore",
    ),
    *("level", "info", "data", "logger", "mode", "form", "url", "message", "requestedSchema"),
    *("properties", "string", "array", "number", "enum", "enumNames", "oneOf", "anyOf", "const"),
    *("items", "format", "minLength", "default", "elicitationId", "elicitations", "maxTokens"),
    *("tool_use", "tool_result", "toolUseId", "id", "input", "tools", "toolChoice", "hints"),
    *("https://a.b/", "AAAA", "resource", "resource_link", "image", "structuredContent", "isError"),
]
SCALARS: st.SearchStrategy[Any] = st.sampled_from([None, True, 1, 0.5, "", -1, *WORDS])


def inside(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists: st.SearchStrategy[Any] = st.lists(values, max_size=3)
    return lists | st.dictionaries(st.sampled_from(WORDS), values, max_size=5)


VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=20,
)


def ask(method: str) -> Callable[[object], object]:
    def read(params: object) -> object:
        return read_request(method, as_object(params) or {}, ALL, LIMITS, server="s")

    return read


def log(params: object) -> object:
    return read_log(as_object(params) or {}, LIMITS)


def required(data: object) -> object:
    return required_elicitations(data, LIMITS, server="s")


def within(read: Callable[[object, ClientLimits], object]) -> Callable[[object], object]:
    return lambda value: read(value, LIMITS)


BOUNDED: list[Callable[[object, ClientLimits], object]] = [
    read_tool,
    read_resource,
    read_template,
    read_prompt,
    read_tool_result,
    read_resource_result,
    read_prompt_result,
    read_completion,
]
READERS: list[Callable[[object], object]] = [
    checked_block,
    log,
    required,
    ask("roots/list"),
    ask("sampling/createMessage"),
    ask("elicitation/create"),
    *map(within, BOUNDED),
]


@pytest.mark.parametrize("read", READERS)
@settings(max_examples=60, deadline=None)
@given(value=VALUES)
def test_nothing_escapes_whatever_is_sent(read: Callable[[object], object], value: Any) -> None:
    for sent in (value, {"contents": value}, {"messages": [value], "maxTokens": 1}):
        with suppress(RemoteProtocolError):
            read(sent)


WRONG: list[object] = [None, True, 1, 0.5, [], ["x"], {}, {"x": []}, "x"]
"""One of each kind of JSON value, those that cannot be keys among them."""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        (
            "sampling/createMessage",
            {
                "messages": [{"role": "user", "content": {"type": "text", "text": ""}}],
                "maxTokens": 1,
                "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
                "toolChoice": {"mode": "auto"},
                "modelPreferences": {"hints": [{"name": "m"}]},
            },
        ),
        (
            "elicitation/create",
            {
                "mode": "form",
                "message": "m",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "format": "date", "default": "x"},
                        "b": {"type": "array", "items": {"enum": ["x"]}, "default": ["x"]},
                        "c": {"type": "string", "oneOf": [{"const": "x", "title": "X"}]},
                        "d": {"type": "integer", "minimum": 1},
                    },
                    "required": ["a"],
                },
            },
        ),
        (
            "elicitation/create",
            {"mode": "url", "message": "m", "url": "https://a.b", "elicitationId": "1"},
        ),
    ],
)
def test_a_value_of_the_wrong_kind_anywhere_escapes_nowhere(
    method: str, params: dict[str, object], wrong: object
) -> None:
    for sent in replaced(params, wrong):
        assert ask(method)(sent) is not None


def replaced(value: Any, wrong: object) -> list[object]:
    """Return the value with each of its parts replaced in turn."""
    made: list[object] = [wrong]
    members = as_object(cast("object", value)) or {}
    for name, part in members.items():
        made += [{**members, name: other} for other in replaced(part, wrong)]
    if isinstance(value, list):
        for part in cast("list[object]", value):
            made += [[other] for other in replaced(part, wrong)]
    return made
