"""The official Python SDK's server, over each of its transports, in both eras: all that it offers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from mcp_client import (
    DECLINE,
    CallTimeoutError,
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
    TemplateReference,
    UrlElicitation,
    UrlElicitationRequiredError,
)
from mcp_client.protocol.eras import Opening
from tests.interop.driving import MODERN, Driven, Expected, Record, Server, drive, judge
from tests.interop.installing import PYTHON, PackageSet, version_of
from tests.interop.running import free_port, serving

pytestmark = [pytest.mark.interop, pytest.mark.subprocess]

PROGRAM = Path(__file__).parent / "servers" / "sdk_server.py"
TOOLS = {
    *("add", "fail", "refuse", "blocks", "count", "wait", "touch"),
    *("who", "think", "look", "visit", "require_visit"),
}

# Oddities of mcp 2.3.0.
QUIET = "tells changes of lists to clients of 2026-07-28 only"
UNKNOWN = "answers an unknown tool with a result that is an error"
ALONE = "answers a call that would have to ask, where there is no stream for it, with -32600"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A transport in an era, and what does not go over it."""

    mode: str
    opening: Opening
    version: str
    asks: bool = True
    """Whether the server can ask the client for something in the middle of a call."""
    tells: bool = True
    """Whether there is a stream for what comes before the answer of a call."""

    @property
    def is_modern(self) -> bool:
        return self.version == MODERN


LEGACY = Opening.LEGACY_FIRST
WAYS = [
    Way(mode="stdio", opening=LEGACY, version="2025-11-25"),
    Way(mode="stateful", opening=LEGACY, version="2025-11-25"),
    Way(mode="json", opening=LEGACY, version="2025-11-25", asks=False, tells=False),
    Way(mode="stateless", opening=LEGACY, version="2025-11-25", asks=False),
    Way(mode="sse", opening=LEGACY, version="2024-11-05"),
    Way(mode="stdio", opening=Opening.MODERN, version=MODERN),
    Way(mode="stateful", opening=Opening.MODERN, version=MODERN),
    Way(mode="json", opening=Opening.MODERN_FIRST, version=MODERN, tells=False),
    Way(mode="stateless", opening=Opening.MODERN_FIRST, version=MODERN),
]


@pytest.fixture(scope="module", params=WAYS, ids=lambda way: f"{way.mode}-{way.version}")
def way(request: pytest.FixtureRequest) -> Way:
    """One transport in one era."""
    return request.param


@pytest.fixture(scope="module")
def server(way: Way, installed: Callable[[PackageSet], Path]) -> Generator[Server]:
    """The server, started anew for each way."""
    if way.mode == "stdio":
        python = str(installed(PYTHON) / "python")
        yield served(way.mode, ServerSpec(name="sdk", command=python, args=(str(PROGRAM), "stdio")))
        return
    port = free_port()
    with listening(way.mode, port, installed):
        yield served(way.mode, reached(way.mode, port), *(() if way.asks else (ALONE,)))


def served(mode: str, source: ServerSpec | HttpSpec, *more: str) -> Server:
    return Server(
        label="Python SDK",
        version=version_of(PYTHON, "mcp"),
        transport=mode,
        source=source,
        oddities=(QUIET, UNKNOWN, *more),
    )


def reached(mode: str, port: int) -> HttpSpec:
    path, kind = ("sse", HttpKind.SSE) if mode == "sse" else ("mcp", HttpKind.AUTO)
    return HttpSpec(name="sdk", url=f"http://127.0.0.1:{port}/{path}", kind=kind)


def listening(
    mode: str, port: int, installed: Callable[[PackageSet], Path]
) -> AbstractContextManager[None]:
    command = [str(installed(PYTHON) / "python"), str(PROGRAM), mode, str(port)]
    return serving(command, port=port, ready="listening", environment={})


async def test_the_lists_of_all_pages_and_the_results_of_tools(
    server: Server, way: Way, record: Record
) -> None:
    calls = [
        Expected(
            "add", {"a": 2, "b": 40}, lambda r: r.structured == {"total": 42, "parts": [2, 40]}
        ),
        Expected("add", {"a": "two"}, lambda r: r.is_error),
        Expected("fail", {}, lambda r: r.is_error),
        Expected(
            "blocks",
            {},
            lambda r: (
                [block["type"] for block in r.blocks]
                == ["text", "image", "audio", "resource_link", "resource"]
                and r.structured == {"a": [1, None, "é"]}
                and r.meta["example.com/kept"] is True
            ),
        ),
    ]
    async with drive(server, record, opening=way.opening) as driven:
        client = driven.client
        assert client.protocol_version == way.version
        assert (client.server_info.title, client.instructions) == ("The SDK", "add numbers")
        await client.ping()
        listing = await client.list_tools()
        wrong = await judge(client, calls)
        with pytest.raises(PeerError) as refused:
            await client.call_tool("refuse", {})
        unknown = await client.call_tool("none", {})

    assert {tool.name for tool in listing.tools} == TOOLS
    assert listing.quarantined == ()
    assert listing.tools[0].annotations == {"readOnlyHint": True}
    assert wrong == []
    assert (refused.value.code, refused.value.data) == (-32099, {"why": "closed"})
    assert unknown.is_error


async def test_resources_prompts_and_completions(server: Server, way: Way, record: Record) -> None:
    async with drive(server, record, opening=way.opening) as driven:
        client = driven.client
        uris = [each.uri for each in (await client.list_resources()).resources]
        templates = [each.template for each in (await client.list_templates()).templates]
        one = await client.read_resource("note:///one")
        raw = await client.read_resource("note:///raw")
        named = await client.read_resource("note:///é/text")
        with pytest.raises(ResourceNotFoundError):
            await client.read_resource("note:///none")
        prompts = (await client.list_prompts()).prompts
        greeting = await client.get_prompt("greet", {"who": "Ada"})
        with pytest.raises(PeerError):
            await client.get_prompt("greet")
        prompt = await client.complete(PromptReference("greet"), "who", "A", known={"how": "x"})
        template = await client.complete(TemplateReference(templates[0]), "name", "B")

    assert (uris, templates) == (["note:///one", "note:///raw"], ["note:///{name}/text"])
    assert (one.contents[0].text, raw.contents[0].data) == ("1", b"\x00\xff")
    assert named.contents[0].text == "é"
    assert [each.required for each in prompts[0].arguments] == [True, False]
    assert greeting.messages[0].block["text"] == "Greet Ada kindly."
    known = () if way.version < "2025-06-18" else ("x",)
    assert prompt.values == ("Ada", "Alan", *known)
    assert (template.values, template.total) == (("Bob",), 3)


async def test_progress_logs_and_calls_that_are_given_up(
    server: Server, way: Way, record: Record
) -> None:
    told: list[Progress] = []
    async with drive(server, record, opening=way.opening) as driven:
        client = driven.client
        await client.set_log_level(LogLevel.INFO)
        counted = await client.call_tool("count", {}, on_progress=told.append)
        with pytest.raises(CallTimeoutError):
            await client.call_tool("wait", {}, seconds=0.2)
        with anyio.move_on_after(0.2):
            await client.call_tool("wait", {})
        driven.used.add("cancellation")
        added = await client.call_tool("add", {"a": 1, "b": 1})
        if told:
            driven.used.add("progress")

    assert counted.text == "counted"
    assert added.structured == {"total": 2, "parts": [1, 1]}
    expected = [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")] if way.tells else []
    assert [(each.done, each.total, each.message) for each in told] == expected
    assert [log.text for log in driven.logs] == (['{"counted":3}'] if way.tells else [])


async def test_what_is_subscribed_to_is_told(server: Server, way: Way, record: Record) -> None:
    async with drive(server, record, opening=way.opening) as driven:
        client = driven.client
        updates = client.resource_updates()
        await client.subscribe("note:///one")
        await client.call_tool("touch", {})
        if way.mode != "stateless" or way.is_modern:  # without a session it is told to nobody
            assert await anext(updates) == "note:///one"
            driven.used.add("resource updates")
        if way.is_modern:
            await driven.until(lambda: set(driven.changed) == set(ListKind))
        await client.unsubscribe("note:///one")
        assert client.subscriptions == frozenset()
        assert driven.violations == {}


async def test_people_models_and_roots_are_asked_in_the_way_of_each_era(
    server: Server, way: Way, record: Record
) -> None:
    async with drive(
        server, record, opening=way.opening, roots=(Root("file:///a", "A"),)
    ) as driven:
        client = driven.client
        if not (way.asks or way.is_modern):
            await check_nothing_is_asked(driven)
            return
        if way.version >= "2025-06-18":
            await check_forms(driven, way)
        thought = await client.call_tool("think", {})
        looked = await client.call_tool("look", {})
        driven.used.add("roots")

    assert thought.text == "mock: four"
    assert looked.text == "file:///a"
    assert isinstance(driven.asked[-1], SamplingRequest)
    assert driven.asked[-1].system_prompt == "count"


async def check_forms(driven: Driven, way: Way) -> None:
    driven.answer = ElicitationAnswer(ElicitationAction.ACCEPT, {"name": "Ada", "age": 7})
    filled = await driven.client.call_tool("who", {})
    asked = driven.asked[-1]
    assert filled.text == "Ada is 7"
    assert isinstance(asked, FormElicitation)
    assert asked.defaults() == {"age": 36}
    driven.answer = DECLINE
    declined = await driven.client.call_tool("who", {})
    assert declined.is_error
    driven.answer = None


async def check_nothing_is_asked(driven: Driven) -> None:
    """Where there is no stream to ask in, the call fails: it does not wait for ever."""
    for tool in ("who", "think", "look"):
        with pytest.raises(PeerError) as refused:
            await driven.client.call_tool(tool, {}, seconds=5)
        assert refused.value.code == -32600
    assert driven.asked == []


async def test_addresses_are_visited_where_the_version_has_visits(
    server: Server, way: Way, record: Record
) -> None:
    has_visits = way.version == "2025-11-25"
    async with drive(server, record, opening=way.opening) as driven:
        client = driven.client
        if has_visits and way.asks:
            visited = await client.call_tool("visit", {})
            await driven.until(lambda: driven.visited)
            assert (visited.text, driven.visited) == ("accept", ["v1"])
            assert isinstance(driven.asked[0], UrlElicitation)
        else:
            with pytest.raises(PeerError):
                await client.call_tool("visit", {}, seconds=5)
        with pytest.raises(PeerError) as refused:
            await client.call_tool("require_visit", {})

    # 2026-07-28 has no such error: from a server that sends it all the same it is understood
    assert refused.value.code == -32042
    assert isinstance(refused.value, UrlElicitationRequiredError) is (way.version >= "2025-11-25")
    if isinstance(refused.value, UrlElicitationRequiredError):
        assert [each.elicitation_id for each in refused.value.elicitations] == ["v2"]


async def test_a_lost_session_is_begun_anew_once(
    installed: Callable[[PackageSet], Path], record: Record
) -> None:
    port = free_port()
    with ExitStack() as running:
        running.enter_context(listening("stateful", port, installed))
        async with drive(served("stateful", reached("stateful", port)), record) as driven:
            client = driven.client
            epoch = client.epoch
            await client.list_tools()
            running.close()
            running.enter_context(listening("stateful", port, installed))
            added = await client.call_tool("add", {"a": 1, "b": 1})
            driven.used.add("session begun anew")

    assert added.structured == {"total": 2, "parts": [1, 1]}
    assert client.epoch == epoch + 1
