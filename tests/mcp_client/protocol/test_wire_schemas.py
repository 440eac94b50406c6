"""What we send is what each version's schema allows, and what it allows we can read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    Client,
    ClientLimits,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    Handlers,
    LogLevel,
    PromptReference,
    Quarantined,
    Root,
    SamplingRequest,
    SamplingResult,
    TemplateReference,
    UrlElicitation,
    connect,
)
from mcp_client.protocol.logs import read_log
from mcp_client.protocol.peer.elicitation import read_form_elicitation, read_url_elicitation
from mcp_client.protocol.peer.form_reading import FormFault, read_form
from mcp_client.protocol.peer.sampling import read_sampling
from mcp_client.protocol.progress import read_progress
from mcp_client.protocol.surfaces.completion import read_completion
from mcp_client.protocol.surfaces.content import fault_of_block
from mcp_client.protocol.surfaces.prompts import read_prompt, read_prompt_result
from mcp_client.protocol.surfaces.resources import (
    read_resource,
    read_resource_result,
    read_template,
)
from mcp_client.protocol.surfaces.results import read_tool_result
from mcp_client.protocol.surfaces.tools import read_tool
from mcp_client.testing import ScriptedRequest, ScriptedServer
from tests.mcp_client.protocol.wire_schemas import VERSIONS, faults, instances, name_of

LIMITS = ClientLimits()
TEXT = {"type": "text", "text": "hi"}
ANSWERS: dict[str, object] = {
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": []},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
    "prompts/list": {"prompts": []},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": []}},
    "logging/setLevel": {},
}
EVERYTHING = {
    name: {"subscribe": True}
    for name in ("tools", "resources", "prompts", "logging", "completions")
}


async def sample(_request: SamplingRequest) -> SamplingResult:
    return SamplingResult(blocks=(TEXT,))


async def fill_in(request: FormElicitation) -> ElicitationAnswer:
    return ElicitationAnswer(ElicitationAction.ACCEPT, request.defaults())


async def consent(_request: UrlElicitation) -> ElicitationAnswer:
    return ElicitationAnswer(ElicitationAction.ACCEPT)


HANDLERS = Handlers(
    roots=(Root("file:///a", "A"), Root("file:///b")),
    sampling=sample,
    sampling_tools=True,
    elicitation_form=fill_in,
    elicitation_url=consent,
)


def answering(request: ScriptedRequest) -> None:
    request.answer(ANSWERS[request.method])


def everything(version: str) -> ScriptedServer:
    server = ScriptedServer(version=version, capabilities=EVERYTHING)
    server.add_tool("t", lambda _: "done")
    server.add_tool("wait")
    for method in ANSWERS:
        server.on(method, answering)
    return server


async def use(client: Client) -> None:
    """Make every request that there is, and give one up."""
    await client.ping()
    await client.list_tools()
    await client.call_tool("t", {"a": [1, {"b": None}]}, on_progress=lambda _: None)
    with anyio.move_on_after(0.01):
        await client.call_tool("wait", {})
    await client.list_resources()
    await client.list_templates()
    await client.read_resource("file:///a")
    await client.subscribe("file:///a")
    await client.unsubscribe("file:///a")
    await client.list_prompts()
    await client.get_prompt("p", {"a": "b"})
    await client.complete(PromptReference("p"), "a", "b", known={"c": "d"})
    await client.complete(TemplateReference("file:///{a}"), "a", "b")
    await client.set_log_level(LogLevel.DEBUG)
    client.set_roots([])
    await client.ping()


@pytest.mark.parametrize("version", VERSIONS)
async def test_every_message_that_we_send_is_as_the_schema_has_it(version: str) -> None:
    server = everything(version)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, handlers=HANDLERS) as client:
            await use(client)

    found = [
        (message["method"], fault)
        for message in server.received
        for fault in faults(version, name_of(version, str(message["method"])), message)
    ]
    assert found == []
    assert len({message["method"] for message in server.received}) == 16


@pytest.mark.parametrize(
    ("method", "params", "definition", "since"),
    [
        ("ping", {}, "EmptyResult", ""),
        ("roots/list", {}, "ListRootsResult", ""),
        ("sampling/createMessage", {"messages": [], "maxTokens": 1}, "CreateMessageResult", ""),
        (
            "elicitation/create",
            {
                "message": "?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "text": {"type": "string", "default": "x"},
                        "number": {"type": "integer", "default": 1},
                        "yes": {"type": "boolean", "default": False},
                    },
                },
            },
            "ElicitResult",
            "2025-06-18",
        ),
        (
            "elicitation/create",
            {"mode": "url", "message": "?", "url": "https://example.com", "elicitationId": "1"},
            "ElicitResult",
            "2025-11-25",
        ),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
async def test_every_answer_that_we_send_is_as_the_schema_has_it(
    version: str, method: str, params: dict[str, object], definition: str, since: str
) -> None:
    server = everything(version)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, handlers=HANDLERS):
            server.ask("q", method, params)
            await server.until(lambda: [each for each in server.received if "method" not in each])

    (answer,) = [each for each in server.received if "method" not in each]
    if version >= since:
        assert faults(version, definition, answer.get("result")) == []
    else:
        error = "JSONRPCErrorResponse" if version == "2025-11-25" else "JSONRPCError"
        assert faults(version, error, answer) == []


def read_content(block: object, _limits: ClientLimits) -> object:
    reason = fault_of_block(block)
    return Quarantined("", reason) if reason else block


READERS: dict[str, Callable[[Any, ClientLimits], object]] = {
    "Tool": read_tool,
    "Resource": read_resource,
    "ResourceTemplate": read_template,
    "Prompt": read_prompt,
    "TextContent": read_content,
    "ImageContent": read_content,
    "AudioContent": read_content,
    "EmbeddedResource": read_content,
    "ResourceLink": read_content,
    "CallToolResult": read_tool_result,
    "ReadResourceResult": read_resource_result,
    "GetPromptResult": read_prompt_result,
    "CompleteResult": read_completion,
}


@pytest.mark.requirement("J-9", "F-8")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", READERS)
def test_whatever_the_schema_allows_a_server_can_be_read(version: str, name: str) -> None:
    if name in {"AudioContent", "ResourceLink"} and version < "2025-06-18":
        return  # that kind came later
    made = instances(version, name)

    read = [READERS[name](instance, LIMITS) for instance in made]

    assert len(made) > 1
    assert [each for each in read if isinstance(each, Quarantined)] == []
    assert "quarantined" not in repr(read).replace("quarantined=()", "")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("method", "read"),
    [("notifications/message", read_log), ("notifications/progress", read_progress)],
)
def test_whatever_the_schema_allows_a_server_to_tell_can_be_read(
    version: str, method: str, read: Callable[[Any, ClientLimits], object]
) -> None:
    made = [each["params"] for each in instances(version, name_of(version, method))]

    assert [params for params in made if read(params, LIMITS) is None] == []


@pytest.mark.requirement("C-21")
@pytest.mark.parametrize("version", VERSIONS[2:])
def test_every_field_that_the_schema_allows_can_be_read(version: str) -> None:
    fields = instances(version, "PrimitiveSchemaDefinition")

    read = [read_form({"type": "object", "properties": {"f": f}}, LIMITS) for f in fields]

    assert len(fields) > 10
    assert [each for each in read if isinstance(each, FormFault)] == []


@pytest.mark.requirement("C-21")
def test_both_modes_of_elicitation_can_be_read_as_the_schema_has_them() -> None:
    forms = instances("2025-11-25", "ElicitRequestFormParams")
    urls = instances("2025-11-25", "ElicitRequestURLParams")

    read = [read_form_elicitation(each, LIMITS, server="s") for each in forms]
    read_urls = [read_url_elicitation(each, LIMITS, server="s") for each in urls]

    assert [each for each in (*read, *read_urls) if isinstance(each, str)] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_every_sampling_request_without_tools_that_the_schema_allows_can_be_read(
    version: str,
) -> None:
    name = name_of(version, "sampling/createMessage")
    made = [each["params"] for each in instances(version, name)]
    plain = [each for each in made if "tool" not in repr(each)]

    read = [read_sampling(each, LIMITS, server="s", with_tools=False) for each in plain]

    assert len(plain) > 5
    assert [each for each in read if isinstance(each, str)] == []
