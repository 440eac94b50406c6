"""Every listing of a client: pages, bounds, clashes, and a list that changes while it is read."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    CallTimeoutError,
    Client,
    ClientLimits,
    LocalProtocolError,
    LogLevel,
    PeerError,
    PromptReference,
    Quarantined,
    RemoteProtocolError,
    connect,
)
from mcp_client.protocol.jsonrpc import encode
from mcp_client.testing import ScriptedRequest, ScriptedServer

OFFERS_ALL: dict[str, object] = {"tools": {}, "resources": {}, "prompts": {}}


class Kind:
    """One of the lists: how it is asked for, and what an entry looks like."""

    def __init__(
        self, method: str, member: str, bound: str, entry: dict[str, Any], key: str
    ) -> None:
        self.method, self.member, self.bound = method, member, bound
        self._entry, self._key = entry, key

    def entry(self, name: str, **more: object) -> dict[str, object]:
        return {**self._entry, self._key: name, **more}

    async def list(self, client: Client) -> tuple[list[str], tuple[Quarantined, ...]]:
        """Return what is listed by its name, and what is quarantined."""
        match self.method:
            case "tools/list":
                tools = await client.list_tools()
                return [each.name for each in tools.tools], tools.quarantined
            case "resources/list":
                resources = await client.list_resources()
                return [each.uri for each in resources.resources], resources.quarantined
            case "resources/templates/list":
                templates = await client.list_templates()
                return [each.template for each in templates.templates], templates.quarantined
            case _:
                prompts = await client.list_prompts()
                return [each.name for each in prompts.prompts], prompts.quarantined


KINDS = [
    Kind("tools/list", "tools", "tools_max", {"inputSchema": {"type": "object"}}, "name"),
    Kind("resources/list", "resources", "resources_max", {"name": "n"}, "uri"),
    Kind(
        "resources/templates/list",
        "resourceTemplates",
        "resources_max",
        {"name": "n"},
        "uriTemplate",
    ),
    Kind("prompts/list", "prompts", "prompts_max", {}, "name"),
]
of_every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.member)

Found = tuple[list[str], tuple[Quarantined, ...]]


async def listed(
    kind: Kind, answer: Callable[[ScriptedRequest], object], limits: ClientLimits | None = None
) -> Found:
    """List from a server that answers with pages of its own making."""
    server = ScriptedServer(capabilities=OFFERS_ALL)
    server.on(kind.method, answer)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, limits=limits or ClientLimits()) as client:
            return await kind.list(client)


def once(kind: Kind, *entries: object) -> Callable[[ScriptedRequest], object]:
    return lambda request: request.answer({kind.member: list(entries)})


@pytest.mark.requirement("F-22")
@of_every_kind
async def test_all_pages_are_read_in_the_servers_order(kind: Kind) -> None:
    def answer(request: ScriptedRequest) -> None:
        number = [None, "", "2"].index(cast("str | None", request.params.get("cursor")))
        page: dict[str, object] = {kind.member: [kind.entry(f"x{number}")]}
        if number < 2:
            page["nextCursor"] = ["", "2"][number]
        request.answer(page)

    assert await listed(kind, answer) == (["x0", "x1", "x2"], ())


@of_every_kind
async def test_bad_entries_are_set_apart_with_reasons_and_the_others_work(kind: Kind) -> None:
    bad: list[object] = [None, 7, [], {}, kind.entry(""), kind.entry("y", description=7)]

    names, quarantined = await listed(kind, once(kind, kind.entry("x"), *bad, kind.entry("z")))

    assert names == ["x", "z"]
    assert [each.name for each in quarantined] == ["", "", "", "", "", "y"]
    assert all(each.reason for each in quarantined)


@of_every_kind
async def test_two_definitions_under_one_name_are_both_set_apart(kind: Kind) -> None:
    entries = [kind.entry("x", description=text) for text in ("a", "b", "a")]

    names, quarantined = await listed(kind, once(kind, *entries, kind.entry("y")))

    assert names == ["y"]
    assert [each.name for each in quarantined] == ["x"]


@of_every_kind
async def test_one_definition_that_is_listed_twice_is_there_once(kind: Kind) -> None:
    assert await listed(kind, once(kind, kind.entry("x"), kind.entry("x"))) == (["x"], ())


@of_every_kind
async def test_one_entry_over_the_bound_ends_the_listing(kind: Kind) -> None:
    limits = ClientLimits(**{kind.bound: 2})
    entries = [kind.entry(name) for name in "abc"]

    names, _ = await listed(kind, once(kind, *entries[:2]), limits)

    assert names == ["a", "b"]
    with pytest.raises(RemoteProtocolError, match="entries"):
        await listed(kind, once(kind, *entries), limits)


@of_every_kind
async def test_one_byte_of_definitions_over_the_bound_ends_the_listing(kind: Kind) -> None:
    entries = [kind.entry(name) for name in "ab"]
    size = sum(len(encode(entry)) for entry in entries)

    await listed(kind, once(kind, *entries), ClientLimits(listing_bytes_max=size))

    with pytest.raises(RemoteProtocolError, match="bytes"):
        await listed(kind, once(kind, *entries), ClientLimits(listing_bytes_max=size - 1))


@of_every_kind
async def test_definitions_that_are_set_apart_count_against_the_bytes_of_a_listing(
    kind: Kind,
) -> None:
    bad = kind.entry("x", description=7)
    size = 2 * len(encode(bad))

    _, quarantined = await listed(kind, once(kind, bad, bad), ClientLimits(listing_bytes_max=size))

    assert len(quarantined) == 2
    with pytest.raises(RemoteProtocolError, match="bytes"):
        await listed(kind, once(kind, bad, bad), ClientLimits(listing_bytes_max=size - 1))


@of_every_kind
async def test_one_byte_of_a_definition_over_the_bound_sets_it_apart(kind: Kind) -> None:
    size = len(encode(kind.entry("x")))
    entries = once(kind, kind.entry("x"), kind.entry("yy"))

    names, quarantined = await listed(kind, entries, ClientLimits(definition_bytes_max=size))

    assert names == ["x"]
    assert [each.name for each in quarantined] == ["yy"]


@of_every_kind
async def test_a_listing_ends_at_its_own_deadline_however_fast_its_pages_come(kind: Kind) -> None:
    numbers = itertools.count()

    def endless(request: ScriptedRequest) -> None:
        request.answer({kind.member: [], "nextCursor": str(next(numbers))})

    with pytest.raises(CallTimeoutError):
        await listed(kind, endless, ClientLimits(pages_max=10**9, listing_seconds_max=0.1))


@of_every_kind
async def test_a_page_gets_no_more_time_than_is_left_of_its_listing(kind: Kind) -> None:
    def stalls(request: ScriptedRequest) -> None:
        if "cursor" not in request.params:
            request.answer({kind.member: [], "nextCursor": "x"})

    with pytest.raises(CallTimeoutError):
        await listed(kind, stalls, ClientLimits(listing_seconds_max=0.1))


@pytest.mark.requirement("F-22")
@of_every_kind
async def test_pages_without_an_end_or_in_a_circle_end_the_listing(kind: Kind) -> None:
    def endless(request: ScriptedRequest) -> None:
        cursor = request.params.get("cursor", "")
        request.answer({kind.member: [], "nextCursor": f"{cursor}x"})

    def circle(request: ScriptedRequest) -> None:
        request.answer({kind.member: [], "nextCursor": "x"})

    with pytest.raises(RemoteProtocolError, match="pages"):
        await listed(kind, endless, ClientLimits(pages_max=5))
    with pytest.raises(RemoteProtocolError, match="circle"):
        await listed(kind, circle)


class Changing:
    """A list that changes while its second page is asked for, so often as it is told to."""

    def __init__(self, kind: Kind, times: int) -> None:
        self.kind, self.times = kind, times
        self.asked: list[object] = []

    def __call__(self, request: ScriptedRequest) -> None:
        cursor = request.params.get("cursor")
        self.asked.append(cursor)
        if cursor is None:
            old = f"v{self.times}"
            request.answer({self.kind.member: [self.kind.entry(old)], "nextCursor": old})
        elif self.times:
            self.times -= 1
            request.refuse(-32602, "stale cursor")
        else:
            request.answer({self.kind.member: [self.kind.entry("last")]})


@pytest.mark.requirement("F-22")
@of_every_kind
async def test_a_cursor_that_has_become_invalid_drops_all_pages_and_begins_once_more(
    kind: Kind,
) -> None:
    changing = Changing(kind, times=1)

    assert await listed(kind, changing) == (["v0", "last"], ())
    assert changing.asked == [None, "v1", None, "v0"]


@of_every_kind
async def test_a_cursor_that_is_invalid_again_is_the_servers_error(kind: Kind) -> None:
    changing = Changing(kind, times=2)

    with pytest.raises(PeerError):
        await listed(kind, changing)
    assert len(changing.asked) == 4


@of_every_kind
async def test_an_error_on_the_first_page_is_not_asked_for_again(kind: Kind) -> None:
    asked: list[object] = []

    def refuse(request: ScriptedRequest) -> None:
        asked.append(request)
        request.refuse(-32602, "no")

    with pytest.raises(PeerError):
        await listed(kind, refuse)
    assert len(asked) == 1


@pytest.mark.requirement("L-4", "S-42")
@of_every_kind
async def test_what_a_server_has_not_declared_is_not_asked_for(kind: Kind) -> None:
    server = ScriptedServer(capabilities={})
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            assert await kind.list(client) == ([], ())

    assert server.requests(kind.method) == []


@pytest.mark.requirement("L-4", "S-42")
@pytest.mark.parametrize("what", ["read", "subscribe", "prompt", "complete", "log"])
async def test_using_what_a_server_has_not_declared_is_refused_here(what: str) -> None:
    server = ScriptedServer(capabilities={})
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            uses: dict[str, Callable[[], Any]] = {
                "read": lambda: client.read_resource("a:b"),
                "subscribe": lambda: client.subscribe("a:b"),
                "prompt": lambda: client.get_prompt("p"),
                "complete": lambda: client.complete(PromptReference("p"), "a", ""),
                "log": lambda: client.set_log_level(LogLevel.INFO),
            }
            with pytest.raises(LocalProtocolError):
                await uses[what]()
            assert client.subscriptions == frozenset()
            await client.ping()

    assert [each["method"] for each in server.received] == [
        "initialize",
        "notifications/initialized",
        "ping",
    ]
