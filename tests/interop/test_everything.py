"""server-everything over its three transports: every tool, resource, prompt and question of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_client import (
    DECLINE,
    CallTimeoutError,
    Delivery,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    HttpKind,
    HttpSpec,
    ListKind,
    LogLevel,
    PeerError,
    Progress,
    PromptReference,
    ResourceNotFoundError,
    Root,
    SamplingRequest,
    ServerSpec,
    SessionLostError,
    TemplateReference,
    UrlElicitation,
    UrlElicitationRequiredError,
    expand_template,
)
from mcp_client.protocol.eras import Opening
from mcp_client.protocol.surfaces.tasks import TaskStatus
from tests.interop.driving import Expected, Record, Server, drive, judge
from tests.interop.installing import NODE, PackageSet, version_of
from tests.interop.running import free_port, serving

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

VERSION = version_of(NODE, "server-everything")
DOCUMENT = "demo://resource/static/document/architecture.md"

# Oddities of 2026.8.31.
LISTS = "tells five times right after the handshake that its tools have changed"
LOST = "tells right after the handshake that its tools have changed, before it can be listened to"
STAYS = "does not end when its input does: it has to be told by a signal"
ERRORS = "answers an unknown resource with -32602, not with -32002"
DEAD = "answers a dead session with 400 and -32000, not with 404"

READY = {
    "streamableHttp": "Streamable HTTP Server listening",
    "sse": "Server is running on port",
}
PATHS = {"streamableHttp": "/mcp", "sse": "/sse"}

CALLS = [
    Expected("echo", {"message": "hé"}, lambda r: r.text == "Echo: hé"),
    Expected("echo", {}, lambda r: r.is_error and "Invalid arguments" in r.text),
    Expected(
        "get-annotated-message",
        {"messageType": "error", "includeImage": True},
        lambda r: (
            [block["type"] for block in r.blocks] == ["text", "image"]
            and r.blocks[0]["annotations"] == {"priority": 1, "audience": ["user", "assistant"]}
        ),
    ),
    Expected("get-env", {}, lambda r: "PATH" in json.loads(r.text)),
    Expected(
        "get-resource-links",
        {"count": 4},
        lambda r: (
            [block["type"] for block in r.blocks] == ["text", *["resource_link"] * 4]
            and r.blocks[2]["uri"] == "demo://resource/dynamic/text/2"
        ),
    ),
    Expected(
        "get-resource-reference",
        {"resourceType": "Blob", "resourceId": 3},
        lambda r: (
            "blob" in (embedded := resource_of(r.blocks[1])) and embedded["uri"].endswith("3")
        ),
    ),
    Expected(
        "get-structured-content",
        {"location": "Chicago"},
        lambda r: r.structured == json.loads(r.text) and "temperature" in json.loads(r.text),
    ),
    Expected("get-sum", {"a": 2, "b": 40}, lambda r: r.text == "The sum of 2 and 40 is 42."),
    Expected("get-tiny-image", {}, lambda r: r.blocks[1]["mimeType"] == "image/png"),
    Expected(
        "gzip-file-as-resource",
        {"name": "a.gz", "data": "data:text/plain,remit", "outputType": "resource"},
        lambda r: resource_of(r.blocks[0])["mimeType"] == "application/gzip",
    ),
    Expected("no-such-tool", {}, lambda r: r.is_error and "not found" in r.text),
]
DRIVEN_ELSEWHERE = {
    "get-roots-list",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-elicitation-request",
    "trigger-long-running-operation",
    "trigger-sampling-request",
    "trigger-url-elicitation",
}
NOT_OVER_SSE = {
    "simulate-research-query",
    "trigger-elicitation-request",
    "trigger-url-elicitation",
}
"""What needs a newer version than 2024-11-05, the one of HTTP+SSE."""


OVER_NEWER = pytest.mark.parametrize("server", ["stdio", "streamableHttp"], indirect=True)


def resource_of(block: Any) -> dict[str, Any]:
    """The resource that is embedded in a block."""
    return block["resource"]


@pytest.fixture(scope="module", params=["stdio", "streamableHttp", "sse"])
def server(
    request: pytest.FixtureRequest, installed: Callable[[PackageSet], Path]
) -> Generator[Server]:
    """The server over one of its transports."""
    transport: str = request.param
    program = str(installed(NODE) / "mcp-server-everything")
    if transport == "stdio":
        spec = ServerSpec(name="everything", command=program, args=("stdio",))
        yield Server(
            label="everything",
            version=VERSION,
            transport="stdio",
            source=spec,
            oddities=(LISTS, STAYS, ERRORS),
        )
        return
    port = free_port()
    with _serving(installed, transport, port):
        # the kind is found out: the old transport by the answer to the first POST
        url = f"http://127.0.0.1:{port}{PATHS[transport]}"
        yield Server(
            label="everything",
            version=VERSION,
            transport=transport,
            source=HttpSpec(name="everything", url=url, kind=HttpKind.AUTO),
            oddities=(LOST, ERRORS, DEAD) if transport == "streamableHttp" else (LISTS, ERRORS),
        )


async def test_its_lists_are_whole_and_each_tool_does_what_it_says(
    server: Server, record: Record
) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        assert client.instructions.startswith("# Everything Server")
        if server.transport != "streamableHttp":
            await driven.until(lambda: ListKind.TOOLS in driven.changed)
        listing = await client.list_tools()
        await client.ping()
        wrong = await judge(client, CALLS)

    # every tool has its line in the table, or a test of its own
    expected = {call.tool for call in CALLS} - {"no-such-tool"} | DRIVEN_ELSEWHERE
    if server.transport == "sse":
        # it is called as a task only, and there are none
        assert [each.name for each in listing.quarantined] == ["simulate-research-query"]
        expected -= NOT_OVER_SSE
    else:
        assert listing.quarantined == ()
    assert {tool.name for tool in listing.tools} == expected
    assert wrong == []


async def test_what_is_not_declared_is_not_asked_for(server: Server, record: Record) -> None:
    async with drive(server, record, bare=True) as driven:
        listing = await driven.client.list_tools()

    names = {tool.name for tool in listing.tools}
    assert not names & {"get-roots-list", "trigger-sampling-request", "trigger-url-elicitation"}


async def test_resources_and_templates_are_listed_and_read(server: Server, record: Record) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        listing = await client.list_resources()
        templates = [each.template for each in (await client.list_templates()).templates]
        document = await client.read_resource(DOCUMENT)
        limits = client.session.limits
        uris = [expand_template(each, {"resourceId": "7"}, limits) for each in templates]
        dynamic = [(await client.read_resource(uri)).contents[0] for uri in uris]
        with pytest.raises(ResourceNotFoundError) as missing:
            await client.read_resource("demo://resource/static/document/none.md")
        linked = await client.call_tool(
            "gzip-file-as-resource", {"name": "b.gz", "data": "data:text/plain,remit"}
        )
        packed = await client.read_resource(str(linked.blocks[0]["uri"]))
        await driven.until(lambda: ListKind.RESOURCES in driven.changed)
        more = await client.list_resources()

    assert (len(listing.resources), len(more.resources)) == (7, 8)
    assert (document.contents[0].text or "").startswith("# Everything Server")
    assert (document.contents[0].mime_type, dynamic[0].mime_type) == ("text/markdown", "text/plain")
    assert dynamic[0].text is not None
    assert dynamic[0].text.startswith("Resource 7")
    assert dynamic[1].data.startswith(b"Resource 7: This is a base64 blob")
    assert missing.value.code == -32602
    assert gzip.decompress(packed.contents[0].data) == b"remit"


async def test_prompts_are_got_and_their_arguments_completed(
    server: Server, record: Record
) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        simple = await client.get_prompt("simple-prompt")
        filled = await client.get_prompt("args-prompt", {"city": "Bern", "state": "BE"})
        promoted = await client.get_prompt(
            "completable-prompt", {"department": "Sales", "name": "Eve"}
        )
        embedded = await client.get_prompt(
            "resource-prompt", {"resourceType": "Text", "resourceId": "2"}
        )
        with pytest.raises(PeerError) as refused:
            await client.get_prompt("args-prompt")
        team = PromptReference("completable-prompt")
        departments = await client.complete(team, "department", "S")
        people = await client.complete(team, "name", "E", known={"department": "Sales"})
        template = TemplateReference("demo://resource/dynamic/text/{resourceId}")
        ids = await client.complete(template, "resourceId", "12")

    assert names == ["simple-prompt", "args-prompt", "completable-prompt", "resource-prompt"]
    assert simple.messages[0].block["text"] == "This is a simple prompt without arguments."
    assert filled.messages[0].block["text"] == "What's weather in Bern, BE?"
    assert promoted.messages[0].block["text"] == (
        "Please promote Eve to the head of the Sales team."
    )
    assert [message.block["type"] for message in embedded.messages] == ["text", "resource"]
    assert refused.value.code == -32602
    assert departments.values == ("Sales", "Support")
    # what is known already has no place in the version of HTTP+SSE
    assert people.values == (() if server.transport == "sse" else ("Eve",))
    assert ids.values == ("12",)


async def test_a_subscription_brings_updates_until_it_ends(server: Server, record: Record) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        updates = client.resource_updates()
        await client.subscribe(DOCUMENT)
        started = await client.call_tool("toggle-subscriber-updates", {})
        uri = await anext(updates)
        driven.used.add("resource updates")
        await client.unsubscribe(DOCUMENT)
        stopped = await client.call_tool("toggle-subscriber-updates", {})

    assert (uri, "Started" in started.text, "Stopped" in stopped.text) == (DOCUMENT, True, True)


async def test_logs_come_from_the_level_that_was_asked_for(server: Server, record: Record) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        await client.set_log_level(LogLevel.DEBUG)
        await client.call_tool("toggle-simulated-logging", {})
        await driven.until(lambda: any("message" in log.text for log in driven.logs))
        await client.call_tool("toggle-simulated-logging", {})
        driven.logs.clear()
        await client.set_log_level(LogLevel.EMERGENCY)
        # it logs each subscription, at the level info
        await client.subscribe(DOCUMENT)
        await client.ping()
        quiet = list(driven.logs)

    assert quiet == []


async def test_progress_is_reported_and_a_call_is_given_up(server: Server, record: Record) -> None:
    told: list[Progress] = []
    async with drive(server, record) as driven:
        client = driven.client
        done = await client.call_tool(
            "trigger-long-running-operation", {"duration": 0.3, "steps": 3}, on_progress=told.append
        )
        driven.used.add("progress")
        with pytest.raises(CallTimeoutError):
            await client.call_tool("trigger-long-running-operation", {"duration": 2}, seconds=0.2)
        driven.used.add("cancellation")
        with anyio.move_on_after(0.2):
            await client.call_tool("trigger-long-running-operation", {"duration": 2})
        after = await client.call_tool("echo", {"message": "still here"})

    assert [(each.done, each.total) for each in told] == [(1, 3), (2, 3), (3, 3)]
    assert "completed" in done.text
    assert after.text == "Echo: still here"


async def test_a_models_turn_is_made_for_it(server: Server, record: Record) -> None:
    async with drive(server, record) as driven:
        result = await driven.client.call_tool(
            "trigger-sampling-request", {"prompt": "2+2", "maxTokens": 20}
        )

    asked = driven.asked[0]
    assert isinstance(asked, SamplingRequest)
    assert (asked.max_tokens, asked.temperature) == (20, 0.7)
    assert asked.system_prompt == "You are a helpful test server."
    assert '"text": "four"' in result.text


@OVER_NEWER
async def test_a_form_with_every_kind_of_field_is_filled_in_or_declined(
    server: Server, record: Record
) -> None:
    async with drive(server, record) as driven:
        client = driven.client
        driven.answer = ElicitationAnswer(
            ElicitationAction.ACCEPT,
            {
                "name": "Ada",
                "check": True,
                "email": "ada@example.com",
                "birthdate": "1815-12-10",
                "integer": 42,
                "untitledMultipleSelectEnum": ["Piano", "Drums"],
                "titledSingleSelectEnum": "hero-2",
                "legacyTitledEnum": "pet-3",
            },
        )
        filled = await client.call_tool("trigger-elicitation-request", {})
        driven.answer = DECLINE
        declined = await client.call_tool("trigger-elicitation-request", {})

    asked = driven.asked[0]
    assert isinstance(asked, FormElicitation)
    assert len(asked.fields) == 13
    assert asked.defaults()["titledMultipleSelectEnum"] == ("fish-1",)
    assert "- Name: Ada" in filled.text
    assert "hero-2" in filled.text
    assert "User declined" in declined.text


@OVER_NEWER
async def test_an_address_is_visited_where_it_asks_and_where_it_refuses(
    server: Server, record: Record
) -> None:
    arguments = {"url": "https://canary.invalid/x?y=1", "elicitationId": f"e-{server.transport}"}
    async with drive(server, record) as driven:
        client = driven.client
        visited = await client.call_tool("trigger-url-elicitation", arguments)
        with pytest.raises(UrlElicitationRequiredError) as required:
            await client.call_tool("trigger-url-elicitation", {**arguments, "errorPath": True})
        again = await client.call_tool("trigger-url-elicitation", {**arguments, "errorPath": True})
        driven.used.add("elicitation url required")

    asked = driven.asked[0]
    assert isinstance(asked, UrlElicitation)
    assert asked.address.url == arguments["url"]
    assert "completed the URL elicitation flow" in visited.text
    assert [each.address.url for each in required.value.elicitations] == [
        "https://modelcontextprotocol.io"
    ]
    assert "completed the URL elicitation flow" in again.text


async def test_roots_are_asked_for_and_followed(server: Server, record: Record) -> None:
    async with drive(server, record, roots=(Root("file:///a", "A"),)) as driven:
        client = driven.client
        before = await client.call_tool("get-roots-list", {})
        client.set_roots([Root("file:///b", "B")])
        # it may still be asking because of its own start: what it knows follows
        after = before
        while "file:///b" not in after.text:
            after = await client.call_tool("get-roots-list", {})
        driven.used.add("roots")

    assert "URI: file:///a" in before.text
    assert "URI: file:///b" in after.text
    assert "file:///a" not in after.text


@OVER_NEWER
async def test_a_call_becomes_a_task_that_is_followed_asked_and_stopped(
    server: Server, record: Record
) -> None:
    tool = "simulate-research-query"
    async with drive(server, record) as driven:
        client = driven.client
        await client.list_tools()
        results: list[str] = []
        async with anyio.create_task_group() as group:

            async def follow(topic: str, *, ambiguous: bool) -> None:
                arguments = {"topic": topic, "ambiguous": ambiguous}
                results.append((await client.call_tool(tool, arguments)).text)

            group.start_soon(partial(follow, "moss", ambiguous=False))
            driven.answer = ElicitationAnswer(ElicitationAction.ACCEPT, {"interpretation": "snake"})
            group.start_soon(partial(follow, "python", ambiguous=True))
            task = await client.begin_task(tool, {"topic": "lichen"}, keep_seconds=60)
            await client.cancel_task(task)
            assert (await client.get_task(task)).status is TaskStatus.CANCELLED
        assert driven.violations == {}

    assert any("Research Report: moss\n" in text for text in results)
    assert any("Research Report: python (snake)" in text for text in results)


async def test_a_modern_client_is_told_that_this_server_is_an_old_one(
    server: Server, record: Record
) -> None:
    async with drive(server, record, opening=Opening.MODERN_FIRST) as driven:
        version = "2024-11-05" if server.transport == "sse" else "2025-11-25"
        assert driven.client.protocol_version == version
        await driven.client.ping()


async def test_a_session_that_died_with_its_server_is_a_typed_error(
    installed: Callable[[PackageSet], Path], record: Record
) -> None:
    port = free_port()
    server = Server(
        label="everything",
        version=VERSION,
        transport="streamableHttp",
        source=HttpSpec(name="everything", url=f"http://127.0.0.1:{port}/mcp"),
        oddities=(DEAD,),
    )
    with ExitStack() as running:
        running.enter_context(_serving(installed, "streamableHttp", port))
        async with drive(server, record) as driven:
            await driven.client.ping()
            running.close()
            running.enter_context(_serving(installed, "streamableHttp", port))
            # not the status that stands for it: nobody can be sure that nothing was run
            with pytest.raises(SessionLostError) as dead:
                await driven.client.call_tool("echo", {"message": "anybody"})

    assert dead.value.delivery is Delivery.MAYBE_SENT


def _serving(
    installed: Callable[[PackageSet], Path], transport: str, port: int
) -> AbstractContextManager[None]:
    command = [str(installed(NODE) / "mcp-server-everything"), transport]
    environment = {"PORT": str(port)}
    return serving(command, port=port, ready=READY[transport], environment=environment)
