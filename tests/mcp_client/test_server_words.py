"""What a server says stays words: nothing is fetched, enforced or believed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import pytest

from mcp_client import (
    UNGUARDED,
    Client,
    ClientLimits,
    ElicitationAction,
    ElicitationAnswer,
    Handlers,
    LocalProtocolError,
    UrlElicitation,
    UrlElicitationRequiredError,
    connect,
)
from mcp_client.testing import ScriptedServer

ALL: dict[str, object] = {"tools": {}, "resources": {}, "prompts": {}}


@asynccontextmanager
async def connected(server: ScriptedServer, **options: Any) -> AsyncGenerator[Client]:
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, **options) as client:
            yield client


class Canary:
    """An address on this machine that nobody may visit."""

    def __init__(self) -> None:
        self.visits = 0
        self.url = ""

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        self.url = f"http://127.0.0.1:{port}/canary"
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, self._visited)
            yield
            group.cancel_scope.cancel()

    async def _visited(self, stream: anyio.abc.SocketStream) -> None:
        self.visits += 1
        await stream.aclose()


def full_of(url: str) -> ScriptedServer:
    """A server that puts an address wherever one can stand."""
    icons = [{"src": url}]
    links = [
        {"type": "resource_link", "uri": url, "name": "x", "icons": icons},
        {"type": "resource", "resource": {"uri": url, "text": url}},
        {"type": "text", "text": url, "_meta": {"url": url}},
    ]
    schema = {"$id": url, "type": "object", "properties": {"a": {"$ref": url}}}
    server = ScriptedServer(capabilities=ALL, instructions=url)
    server.add_definition(
        {"name": "t", "inputSchema": schema, "outputSchema": schema, "icons": icons}
    )
    server.on("tools/call", lambda request: request.answer({"content": links}))
    resource = {"uri": url, "name": "x", "icons": icons}
    server.on("resources/list", lambda request: request.answer({"resources": [resource]}))
    server.on(
        "resources/read", lambda request: request.answer({"contents": [{"uri": url, "text": ""}]})
    )
    prompt = {"name": "p", "icons": icons}
    server.on("prompts/list", lambda request: request.answer({"prompts": [prompt]}))
    messages = [{"role": "user", "content": link} for link in links]
    server.on("prompts/get", lambda request: request.answer({"messages": messages}))
    return server


@pytest.mark.requirement("F-27", "F-6", "F-20", "S-11", "C-25")
async def test_no_address_that_a_server_names_is_ever_visited() -> None:
    async def consent(request: UrlElicitation) -> ElicitationAnswer:
        assert request.address.url == canary.url
        return ElicitationAnswer(ElicitationAction.ACCEPT)

    canary = Canary()
    async with canary.listening():
        server = full_of(canary.url)
        async with connected(server, handlers=Handlers(elicitation_url=consent)) as client:
            tools = await client.list_tools()
            resources = await client.list_resources()
            prompts = await client.list_prompts()
            await client.call_tool("t", {})
            await client.read_resource(canary.url)
            await client.get_prompt("p")
            visit = {"mode": "url", "message": "?", "url": canary.url, "elicitationId": "1"}
            server.ask("q", "elicitation/create", visit)
            await server.until(lambda: any(each.get("id") == "q" for each in server.received))

    assert (len(tools.tools), len(resources.resources), len(prompts.prompts)) == (1, 1, 1)
    assert canary.visits == 0


async def test_the_canary_would_tell_a_visit() -> None:
    canary = Canary()
    with anyio.fail_after(30):
        async with canary.listening():
            port = int(canary.url.rpartition(":")[2].partition("/")[0])
            stream = await anyio.connect_tcp("127.0.0.1", port)
            with pytest.raises(anyio.EndOfStream):
                await stream.receive()
            await stream.aclose()

    assert canary.visits == 1


@pytest.mark.requirement("S-15")
async def test_arguments_and_results_that_break_the_schemas_go_through() -> None:
    server = ScriptedServer()
    server.add_definition(
        {
            "name": "t",
            "inputSchema": {"type": "object", "required": ["a"], "additionalProperties": False},
            "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
    )
    answer: dict[str, object] = {"content": [], "structuredContent": {"n": "no integer"}}
    server.on("tools/call", lambda request: request.answer(answer))
    async with connected(server) as client:
        await client.list_tools()
        result = await client.call_tool("t", {"b": [1]})

    assert server.requests("tools/call")[0]["params"] == {"arguments": {"b": [1]}, "name": "t"}
    assert result.structured == {"n": "no integer"}


@pytest.mark.requirement("S-15")
async def test_arguments_one_level_or_one_byte_over_the_bounds_are_not_sent() -> None:
    server = ScriptedServer()
    server.add_tool("t", lambda _: "done")
    limits = ClientLimits(nesting_depth_max=8, frame_bytes_max=1_000)
    deep: Any = {}
    for _ in range(5):
        deep = {"a": deep}
    async with connected(server, limits=limits) as client:
        await client.call_tool("t", deep)
        with pytest.raises(LocalProtocolError):
            await client.call_tool("t", {"a": {"a": {"a": deep}}})
        frame = len(server.frames[-1].frame) - len('"a":' * 5 + "{}" * 5)
        await client.call_tool("t", {"a": "x" * (1_000 - frame - len('"a":""'))})
        sent = len(server.requests("tools/call"))
        with pytest.raises(Exception, match="bytes"):
            await client.call_tool("t", {"a": "x" * (1_000 - frame)})
        await client.ping()

    assert len(server.requests("tools/call")) == sent == 2


@pytest.mark.requirement("J-8")
@pytest.mark.parametrize("meta", [None, 7, "x", [], {"progressToken": {}, "mcp.dev/x": None}])
async def test_nothing_is_expected_of_meta_wherever_it_stands(meta: object) -> None:
    server = ScriptedServer(capabilities=ALL)
    server.add_definition({"name": "t", "inputSchema": {"type": "object"}, "_meta": meta})
    result = {"content": [{"type": "text", "text": "", "_meta": meta}], "_meta": meta}
    server.on("tools/call", lambda request: request.answer(result))
    async with connected(server) as client:
        listing = await client.list_tools()
        called = await client.call_tool("t", {}, on_progress=lambda _: None)

    assert [tool.name for tool in listing.tools] == ["t"]
    assert called.blocks[0]["type"] == "text"
    assert server.requests("tools/call")[0]["params"] == {
        "_meta": {"progressToken": 3},
        "arguments": {},
        "name": "t",
    }


@pytest.mark.requirement("X-1")
async def test_an_apps_resource_is_text_like_any_other_and_apps_are_not_declared() -> None:
    page = {"uri": "ui://app", "mimeType": "text/html;profile=mcp-app", "text": "<script>"}
    server = ScriptedServer(capabilities=ALL)
    server.on("resources/read", lambda request: request.answer({"contents": [page]}))
    async with connected(server) as client:
        read = await client.read_resource("ui://app")

    assert (read.contents[0].text, read.contents[0].uri) == ("<script>", "ui://app")
    params: Any = server.requests("initialize")[0]["params"]
    assert params["capabilities"] == {}


@pytest.mark.requirement("C-26")
async def test_a_call_that_needs_a_visit_is_sent_again_only_by_hand() -> None:
    visit = {"mode": "url", "message": "?", "url": "https://a.invalid/", "elicitationId": "1"}
    server = ScriptedServer()
    server.on("tools/call", lambda request: request.refuse(-32042, "", {"elicitations": [visit]}))

    async def never(_request: UrlElicitation) -> ElicitationAnswer:
        raise AssertionError("the error is for who called")

    async with connected(server, handlers=Handlers(elicitation_url=never)) as client:
        with pytest.raises(UrlElicitationRequiredError):
            await client.call_tool("t", {})
        await client.ping()
        assert len(server.requests("tools/call")) == 1
        server.on("tools/call", lambda request: request.answer("done"))
        assert (await client.call_tool("t", {})).text == "done"
