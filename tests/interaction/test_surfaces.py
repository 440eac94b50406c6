"""One body of tests for every surface, over every way to reach a server, at every version."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    CallTimeoutError,
    Client,
    ElicitationAction,
    ElicitationAnswer,
    FormElicitation,
    Handlers,
    ListKind,
    LogLevel,
    LogMessage,
    PeerError,
    PromptReference,
    ResourceNotFoundError,
    Root,
    SamplingRequest,
    SamplingResult,
    ServerSource,
    TemplateReference,
    UndeclaredInputError,
    UrlElicitation,
    connect,
)
from mcp_client.protocol.surfaces.content import QUARANTINED

MODERN = "2026-07-28"
FORM: dict[str, Any] = {
    "message": "who are you",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name"],
    },
}
URL: dict[str, Any] = {
    "mode": "url",
    "message": "log in",
    "url": "https://canary.invalid/login?state=1",
    "elicitationId": "e1",
}
TURN: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
    "maxTokens": 10,
    "includeContext": "allServers",
}


@asynccontextmanager
async def connected(source: ServerSource, **options: Any) -> AsyncGenerator[Client]:
    """A client of the server, for so long that only what hangs is ended."""
    with anyio.fail_after(30):
        async with connect(source, guard=UNGUARDED, **options) as client:
            yield client


async def said(client: Client, tool: str, **arguments: object) -> Any:
    """Call a tool that answers with JSON."""
    return json.loads((await client.call_tool(tool, arguments)).text)


async def ask(client: Client, method: str, params: Mapping[str, object] | None = None) -> Any:
    """Have the server ask the client; return what the client answered."""
    return await said(client, "ask", method=method, params=params or {})


# -------------------------------------------------------------------------------------- lifecycle


@pytest.mark.requirement("S-4")
async def test_the_handshake_settles_on_the_servers_version(
    source: ServerSource, version: str
) -> None:
    async with connected(source) as client:
        assert client.protocol_version == version
        assert client.instructions == "use everything"
        await client.ping()
        seen = await said(client, "seen")

    if version == MODERN:
        assert (seen[:2], seen.count("server/discover")) == (["initialize", "server/discover"], 2)
        assert not {"ping", "notifications/initialized"} & {*seen}
    else:
        assert seen == ["initialize", "notifications/initialized", "ping", "tools/call"]


# ------------------------------------------------------------------------------------------ tools


async def test_tools_are_listed_over_pages_and_broken_ones_are_set_apart(
    source: ServerSource,
) -> None:
    async with connected(source) as client:
        listing = await client.list_tools()

    names = [tool.name for tool in listing.tools]
    assert names == ["ask", "count", "echo", "fail", "log", "rich", "seen", "tell", "wait"]
    assert len(listing.quarantined) == 2
    assert listing.tools[0].meta == {"example.com/kept": [1]}
    assert [icon["src"] for icon in listing.tools[0].icons] == ["https://canary.invalid/icon.png"]


@pytest.mark.requirement("F-8", "J-8")
@pytest.mark.requirement("S-6", "S-7")
async def test_every_kind_of_content_comes_through_and_an_unknown_kind_is_set_apart(
    source: ServerSource,
) -> None:
    async with connected(source) as client:
        result = await client.call_tool("rich", {})
        failed = await client.call_tool("fail", {})

    kinds = [block["type"] for block in result.blocks]
    assert kinds == ["text", "image", "audio", "resource_link", "resource", QUARANTINED]
    assert result.blocks[1]["_meta"] == {"example.com/a": 1}
    assert (result.has_structured, result.structured, result.meta) == (True, None, {"a": 1})
    assert failed.is_error


async def test_progress_comes_before_the_answer(source: ServerSource) -> None:
    done: list[float] = []
    async with connected(source) as client:
        result = await client.call_tool("count", {}, on_progress=lambda p: done.append(p.done))

    assert (done, result.text) == ([1, 2, 3], "counted")


@pytest.mark.requirement("F-52")
async def test_a_call_that_is_given_up_is_told_to_the_server(source: ServerSource) -> None:
    async with connected(source) as client:
        with pytest.raises(CallTimeoutError):
            await client.call_tool("wait", {}, seconds=0.02)
        seen = await said(client, "seen")
        while "notifications/cancelled" not in seen:  # or the end of its stream, which says so
            seen = await said(client, "seen")

    assert seen.count("notifications/cancelled") == 1


# -------------------------------------------------------------------------------------- resources


@pytest.mark.requirement("S-6", "F-20", "F-21")
async def test_resources_are_listed_read_and_found_missing(source: ServerSource) -> None:
    async with connected(source) as client:
        listing = await client.list_resources()
        templates = await client.list_templates()
        read = await client.read_resource("note:///two")
        with pytest.raises(ResourceNotFoundError):
            await client.read_resource("note:///none")

    uris = [resource.uri for resource in listing.resources]
    assert uris == ["note:///one", "note:///two", "note:///three"]
    assert len(listing.quarantined) == 2
    assert [each.template for each in templates.templates] == ["note:///{name}"]
    assert [part.text for part in read.contents] == ["note:///two", None]
    assert read.contents[1].data == b"note:///two"
    assert len(read.quarantined) == 1


@pytest.mark.requirement("F-26")
@pytest.mark.requirement("S-6", "S-4")
async def test_updates_of_a_subscribed_resource_are_told_until_it_is_unsubscribed(
    source: ServerSource,
) -> None:
    updated = "notifications/resources/updated"
    async with connected(source) as client:
        updates = client.resource_updates()
        await client.subscribe("note:///one")
        assert await anext(updates) == "note:///one"
        part = {"uri": "note:///one/part"}
        await client.call_tool("tell", {"method": updated, "params": part})
        assert await anext(updates) == "note:///one"
        await client.unsubscribe("note:///one")
        await client.call_tool("tell", {"method": updated, "params": {"uri": "note:///one"}})

        while not client.session.violations:  # it may come in another stream than the answer
            await anyio.lowlevel.checkpoint()
        assert client.subscriptions == frozenset()
        assert sum(client.session.violations.values()) == 1


# ---------------------------------------------------------------------------------------- prompts


@pytest.mark.requirement("S-7", "F-23")
async def test_prompts_are_listed_and_got_and_the_server_judges_the_arguments(
    source: ServerSource,
) -> None:
    async with connected(source) as client:
        listing = await client.list_prompts()
        result = await client.get_prompt("greet", {"who": "you", "novel": "x"})
        with pytest.raises(PeerError):
            await client.get_prompt("greet")

    assert [prompt.name for prompt in listing.prompts] == ["greet", "plain"]
    assert [each.required for each in listing.prompts[0].arguments] == [True, False]
    kinds = [message.block["type"] for message in result.messages]
    assert kinds == ["text", "text", "image", "audio", "resource_link", "resource", QUARANTINED]
    assert "'novel': 'x'" in str(result.messages[0].block["text"])


@pytest.mark.requirement("S-8", "F-24")
@pytest.mark.requirement("S-6", "S-7")
async def test_arguments_are_completed_with_what_is_known_where_the_version_has_it(
    source: ServerSource, version: str
) -> None:
    async with connected(source) as client:
        prompt = await client.complete(PromptReference("greet"), "who", "t", known={"how": "x"})
        template = await client.complete(TemplateReference("note:///{name}"), "name", "o")

    known = ("x",) if version >= "2025-06-18" else ()
    assert prompt.values == ("two", "three", *known)
    assert (template.values, template.total) == (("one",), 3)


# ------------------------------------------------------------------------------------- what is told


@pytest.mark.requirement("F-50")
async def test_log_messages_come_from_the_level_that_was_asked_for(source: ServerSource) -> None:
    messages: list[LogMessage] = []
    async with connected(source, on_log=messages.append) as client:
        await client.set_log_level(LogLevel.NOTICE)
        await client.call_tool("log", {"a": 1})
        await client.ping()

    assert [(each.level, each.text) for each in messages] == [(LogLevel.NOTICE, '{"a":1}')]


@pytest.mark.requirement("S-9", "F-25")
@pytest.mark.requirement("S-4")
async def test_a_flood_of_changes_costs_at_most_two_refreshes(
    source: ServerSource, version: str
) -> None:
    told: set[ListKind] = set()
    seen: list[str] = []
    method = "notifications/prompts/list_changed"
    async with (
        connected(source, on_list_changed=told.add) as client,
        anyio.create_task_group() as group,
    ):
        all_told, refreshed = anyio.Event(), anyio.Event()

        async def follow() -> None:
            async for _ in client.prompt_changes():
                # not before all of the flood is there, however long that takes here
                await all_told.wait()
                await client.list_prompts()
                refreshed.set()

        group.start_soon(follow)
        while version == MODERN and not client.listener.granted.prompts_list_changed:
            await anyio.lowlevel.checkpoint()
        await client.call_tool("tell", {"method": method, "times": 500})
        await client.call_tool("tell", {"method": method, "times": 500})
        await client.call_tool("tell", {"method": "notifications/tools/list_changed"})
        while ListKind.TOOLS not in told:
            await anyio.lowlevel.checkpoint()
        all_told.set()
        await refreshed.wait()
        await client.ping()
        seen += await said(client, "seen")
        group.cancel_scope.cancel()

    assert told == {ListKind.PROMPTS, ListKind.TOOLS}
    assert seen.count("prompts/list") <= 2 * 4  # pages of one listing


# ------------------------------------------------------------------------------- what is asked of us


@pytest.mark.requirement("L-4", "C-20")
@pytest.mark.parametrize(
    ("method", "params"),
    [("roots/list", {}), ("sampling/createMessage", TURN), ("elicitation/create", FORM)],
)
async def test_what_has_no_handler_is_refused(
    source: ServerSource, version: str, method: str, params: dict[str, Any]
) -> None:
    async with connected(source) as client:
        if version == MODERN:
            with pytest.raises(UndeclaredInputError):
                await ask(client, method, params)
        else:
            assert (await ask(client, method, params))["error"]["code"] == -32601


@pytest.mark.requirement("C-1", "S-44")
async def test_roots_are_told_and_so_is_their_change(source: ServerSource, version: str) -> None:
    async with connected(source, handlers=Handlers(roots=(Root("file:///a", "A"),))) as client:
        before = await ask(client, "roots/list")
        client.set_roots([Root("file:///b")])
        after = await ask(client, "roots/list")
        seen = await said(client, "seen")

    assert before == {"result": {"roots": [{"uri": "file:///a", "name": "A"}]}}
    assert after == {"result": {"roots": [{"uri": "file:///b"}]}}
    assert seen.count("notifications/roots/list_changed") == (0 if version == MODERN else 1)


@pytest.mark.requirement("S-43", "S-40")
async def test_a_models_turn_is_the_hosts_to_make(source: ServerSource) -> None:
    asked: list[SamplingRequest] = []

    async def sample(request: SamplingRequest) -> SamplingResult:
        asked.append(request)
        return SamplingResult(blocks=({"type": "text", "text": "hi"},))

    async with connected(source, handlers=Handlers(sampling=sample)) as client:
        answer = await ask(client, "sampling/createMessage", TURN)

    assert answer["result"] == {
        "role": "assistant",
        "content": {"type": "text", "text": "hi"},
        "model": "unspecified",
        "stopReason": "endTurn",
    }
    assert (asked[0].server, asked[0].max_tokens) == ("everything", 10)


@pytest.mark.requirement("S-4", "C-20", "C-23")
async def test_a_form_is_filled_in_where_the_version_has_forms(
    source: ServerSource, version: str
) -> None:
    async def fill_in(request: FormElicitation) -> ElicitationAnswer:
        return ElicitationAnswer(ElicitationAction.ACCEPT, {"name": request.server, "age": 3})

    async with connected(source, handlers=Handlers(elicitation_form=fill_in)) as client:
        form = await ask(client, "elicitation/create", FORM)
        if version == MODERN:
            with pytest.raises(UndeclaredInputError):
                await ask(client, "elicitation/create", URL)
        else:
            url = await ask(client, "elicitation/create", URL)
            assert url["error"]["code"] == (-32601 if version < "2025-06-18" else -32602)

    if version < "2025-06-18":
        assert form["error"]["code"] == -32601
    else:
        content = {"name": "everything", "age": 3}
        assert form == {"result": {"action": "accept", "content": content}}


@pytest.mark.requirement("S-4", "C-25", "C-26")
async def test_a_visit_is_consented_to_and_its_end_is_told_once(
    source: ServerSource, version: str
) -> None:
    visited: list[str] = []
    shown: list[str] = []

    async def consent(request: UrlElicitation) -> ElicitationAnswer:
        shown.append(request.address.url)
        return ElicitationAnswer(ElicitationAction.ACCEPT)

    handlers = Handlers(elicitation_url=consent, on_visited=visited.append)
    complete = {"method": "notifications/elicitation/complete", "params": {"elicitationId": "e1"}}
    async with connected(source, handlers=handlers) as client:
        answer = await ask(client, "elicitation/create", URL)
        if version != MODERN:  # there the answer to the request says how it went
            await client.call_tool("tell", {**complete, "times": 2})
        await client.ping()

    if version < "2025-11-25":
        assert (answer["error"]["code"], visited, shown) == (-32601, [], [])
    else:
        assert answer == {"result": {"action": "accept"}}
        assert (visited, shown) == ([] if version == MODERN else ["e1"], [URL["url"]])


@pytest.mark.requirement("F-52")
async def test_a_question_that_is_taken_back_is_cancelled_and_not_answered(
    source: ServerSource, version: str
) -> None:
    begun = anyio.Event()

    async def never(_request: SamplingRequest) -> SamplingResult:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError("slept for ever")

    async with connected(source, handlers=Handlers(sampling=never)) as client:
        arguments = {"method": "sampling/createMessage", "params": TURN, "take_back": True}
        if version == MODERN:  # it is part of a call, and taken back with that
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "ask", arguments)
                await begun.wait()
                group.cancel_scope.cancel()
        else:
            await client.call_tool("ask", arguments)
        assert client.session.desk.running == 0
        await client.ping()
