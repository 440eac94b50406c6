"""What a server tells by itself, what it completes, and how often anybody hears of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from mcp_client import (
    UNGUARDED,
    CallTimeoutError,
    Client,
    ClientLimits,
    ListKind,
    LocalProtocolError,
    LogLevel,
    LogMessage,
    PeerError,
    PromptReference,
    RemoteProtocolError,
    ResourceNotFoundError,
    TemplateReference,
    connect,
    open_host,
)
from mcp_client.protocol.events import Violation
from mcp_client.protocol.texts import CUT_MARK
from mcp_client.testing import ScriptedRequest, ScriptedServer
from tests.mcp_client.kit import Bench, open_bench

ALL: dict[str, object] = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
UPDATED = "notifications/resources/updated"
MESSAGE = "notifications/message"


def offering(**members: object) -> ScriptedServer:
    server = ScriptedServer(capabilities={**ALL, **members})
    server.on("resources/subscribe", lambda request: request.answer({}))
    server.on("resources/unsubscribe", lambda request: request.answer({}))
    server.on("prompts/list", lambda request: request.answer({"prompts": []}))
    return server


@asynccontextmanager
async def connected(server: ScriptedServer, **options: Any) -> AsyncGenerator[Client]:
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, **options) as client:
            yield client


# ------------------------------------------------------------------------------------- changes


@pytest.mark.requirement("S-9", "F-25")
@pytest.mark.parametrize("kind", ListKind)
async def test_changes_of_every_list_are_told_once_for_all_of_a_step(kind: ListKind) -> None:
    bench = await open_bench(offering())
    told: list[ListKind] = []
    bench.session.bulletin.on_list_changed = told.append

    for _ in range(3):
        bench.server.notify(f"notifications/{kind.value}/list_changed")
    bench.reactor.run()

    assert told == [kind]


@pytest.mark.requirement("F-25", "S-42")
@pytest.mark.parametrize("kind", ListKind)
@pytest.mark.requirement("S-4")
async def test_changes_that_were_not_declared_are_counted_and_not_told(kind: ListKind) -> None:
    bench = await open_bench(offering(**{kind.value: {"subscribe": True}}))
    told: list[ListKind] = []
    bench.session.bulletin.on_list_changed = told.append

    bench.server.notify(f"notifications/{kind.value}/list_changed")
    bench.reactor.run()

    assert told == []
    assert bench.session.violations == {Violation.UNDECLARED_NOTIFICATION: 1}


@pytest.mark.requirement("F-25")
async def test_24000_notifications_around_one_reply_cost_at_most_two_refreshes() -> None:
    server = offering()
    refreshes: list[int] = []
    flood = b'{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}\n' * 12_000

    def answer(request: ScriptedRequest) -> None:
        server.say(flood)
        request.answer("done")
        server.say(flood)

    server.on("tools/call", answer)
    async with connected(server) as client, anyio.create_task_group() as group:

        async def follow() -> None:
            async for _ in client.prompt_changes():
                await client.list_prompts()
                refreshes.append(1)

        group.start_soon(follow)
        await client.call_tool("t", {})
        with anyio.move_on_after(2 * client.session.limits.list_change_seconds_min):
            await anyio.sleep_forever()
        group.cancel_scope.cancel()

    assert 1 <= len(refreshes) <= 2


async def test_two_refreshes_of_one_list_keep_their_distance() -> None:
    server = offering()
    times: list[float] = []
    limits = ClientLimits(list_change_seconds_min=0.05)
    async with connected(server, limits=limits) as client:
        changes = client.tool_changes()
        for _ in range(3):
            server.notify("notifications/tools/list_changed")
            await anext(changes)
            times.append(client.session.reactor.now())

    assert times[1] - times[0] >= 0.05
    assert times[2] - times[1] >= 0.05


@pytest.mark.parametrize(
    "iterate",
    [Client.tool_changes, Client.resource_changes, Client.prompt_changes, Client.resource_updates],
)
async def test_whoever_waits_for_news_is_let_go_when_the_connection_ends(
    iterate: Callable[[Client], Any],
) -> None:
    ended: list[int] = []
    server = offering()
    async with connected(server) as client, anyio.create_task_group() as group:

        async def follow() -> None:
            async for _ in iterate(client):
                raise AssertionError("nothing was told")
            ended.append(1)

        group.start_soon(follow)
        await anyio.lowlevel.checkpoint()
        server.die()

    assert ended == [1]


async def test_every_connection_of_a_host_has_a_number_of_its_own() -> None:
    with anyio.fail_after(30):
        async with open_host() as host:
            epochs: list[int] = []
            for _ in range(3):
                async with connect(offering(), guard=UNGUARDED, host=host) as client:
                    epochs.append(client.epoch)

    assert epochs == [1, 2, 3]


# -------------------------------------------------------------------------------- subscriptions


@pytest.mark.requirement("F-26")
async def test_only_what_was_subscribed_to_and_its_parts_are_told() -> None:
    server = offering()
    async with connected(server) as client:
        updates = client.resource_updates()
        await client.subscribe("file:///a")
        for uri in ("file:///b", "file:///ab", None, 7, "file:///a/b", "file:///a"):
            server.notify(UPDATED, {"uri": uri})
        assert await anext(updates) == "file:///a"
        await client.ping()

        assert client.session.violations == {Violation.UNASKED_NOTICE: 4}
        server.notify(UPDATED, {"uri": "file:///a"})
        assert await anext(updates) == "file:///a"


@pytest.mark.requirement("F-26")
async def test_an_update_right_behind_the_answer_is_not_missed() -> None:
    server = offering()

    def answer(request: ScriptedRequest) -> None:
        request.answer({})
        server.notify(UPDATED, {"uri": request.params["uri"]})

    server.on("resources/subscribe", answer)
    async with connected(server) as client:
        await client.subscribe("file:///a")

        assert await anext(client.resource_updates()) == "file:///a"


@pytest.mark.requirement("F-26")
async def test_a_subscription_that_was_refused_is_none() -> None:
    server = offering()
    server.on("resources/subscribe", lambda request: request.refuse(-32002, "no"))
    async with connected(server) as client:
        with pytest.raises(ResourceNotFoundError):
            await client.subscribe("file:///a")

        assert client.subscriptions == frozenset()


async def test_one_subscription_over_the_bound_is_not_asked_for() -> None:
    server = offering()
    async with connected(server, limits=ClientLimits(subscriptions_max=2)) as client:
        for uri in ("a:1", "a:2", "a:2"):
            await client.subscribe(uri)
        with pytest.raises(LocalProtocolError):
            await client.subscribe("a:3")

        assert client.subscriptions == {"a:1", "a:2"}
    assert len(server.requests("resources/subscribe")) == 3


@pytest.mark.requirement("F-21")
@pytest.mark.parametrize(
    ("code", "kind"),
    [(-32002, ResourceNotFoundError), (-32602, ResourceNotFoundError), (-32603, PeerError)],
)
async def test_both_codes_say_that_there_is_no_such_resource(
    code: int, kind: type[PeerError]
) -> None:
    server = offering()
    server.on("resources/read", lambda request: request.refuse(code, "no", {"uri": "x"}))
    async with connected(server) as client:
        with pytest.raises(PeerError) as caught:
            await client.read_resource("file:///a")

    assert type(caught.value) is kind
    assert (caught.value.code, caught.value.peer_message) == (code, "no")


@pytest.mark.requirement("F-21")
async def test_the_codes_mean_nothing_of_the_kind_for_other_requests() -> None:
    server = offering()
    server.on("tools/call", lambda request: request.refuse(-32002, "no"))
    async with connected(server) as client:
        with pytest.raises(PeerError) as caught:
            await client.call_tool("t", {})

    assert type(caught.value) is PeerError


@pytest.mark.parametrize("uri", ["", "x" * 8_193])
async def test_a_uri_that_is_none_or_over_the_bound_is_not_asked_for(uri: str) -> None:
    server = offering()
    async with connected(server) as client:
        with pytest.raises(LocalProtocolError):
            await client.read_resource(uri)

    assert server.requests("resources/read") == []


# ----------------------------------------------------------------------------------- completion


def completing(values: object, **more: object) -> ScriptedServer:
    server = offering()
    completion = {"values": values, **more}
    server.on("completion/complete", lambda request: request.answer({"completion": completion}))
    return server


@pytest.mark.requirement("S-8", "F-24")
async def test_candidates_over_the_bounds_are_left_out_and_said_to_be_missing() -> None:
    limits = ClientLimits(completion_values_max=3, completion_chars_max=2)
    async with connected(completing(["a", "bb", "ccc", "d"]), limits=limits) as client:
        over = await client.complete(PromptReference("p"), "a", "")
    async with connected(completing(["a", "bb", "c"], total=3), limits=limits) as client:
        fits = await client.complete(PromptReference("p"), "a", "")

    assert (over.values, over.has_more) == (("a", "bb"), True)
    assert (fits.values, fits.has_more, fits.total) == (("a", "bb", "c"), False, 3)


@pytest.mark.requirement("S-8")
@pytest.mark.parametrize("values", [None, {}, "ab"])
async def test_what_is_no_completion_fails_its_request(values: object) -> None:
    async with connected(completing(values)) as client:
        with pytest.raises(RemoteProtocolError):
            await client.complete(PromptReference("p"), "a", "")


@pytest.mark.requirement("S-8")
async def test_candidates_that_are_no_texts_are_left_out() -> None:
    async with connected(completing([1, None, "a", ["b"]], total=-1)) as client:
        found = await client.complete(TemplateReference("a:{b}"), "b", "")

    assert (found.values, found.total, found.has_more) == (("a",), None, True)


@pytest.mark.requirement("S-8")
async def test_a_completion_has_a_deadline_of_its_own_and_is_taken_back() -> None:
    server = offering()
    server.hold("completion/complete")
    async with connected(server, limits=ClientLimits(completion_seconds_max=0.02)) as client:
        with pytest.raises(CallTimeoutError):
            await client.complete(PromptReference("p"), "a", "")
        with anyio.move_on_after(0.01):
            await client.complete(PromptReference("p"), "a", "b", seconds=4)
        await server.until_received("notifications/cancelled", 2)


@pytest.mark.requirement("F-23")
async def test_arguments_that_are_no_texts_are_refused_and_nothing_is_sent() -> None:
    server = offering()
    wrong: Any = {"a": 1}
    async with connected(server) as client:
        with pytest.raises(LocalProtocolError):
            await client.complete(PromptReference("p"), "a", "b", known=wrong)
        with pytest.raises(LocalProtocolError):
            await client.get_prompt("p", wrong)
        await client.ping()

    assert server.requests("completion/complete") == server.requests("prompts/get") == []


# ----------------------------------------------------------------------------------------- logs


async def logging_bench(limits: ClientLimits | None = None) -> tuple[Bench, list[LogMessage]]:
    bench = await open_bench(offering(), limits=limits)
    messages: list[LogMessage] = []
    bench.session.bulletin.on_log = messages.append
    return bench, messages


@pytest.mark.requirement("F-50")
async def test_log_messages_over_the_rate_are_dropped_and_counted_until_time_has_passed() -> None:
    bench, messages = await logging_bench(ClientLimits(log_messages_max=2, log_seconds=10))

    for number in range(5):
        bench.server.notify(MESSAGE, {"level": "info", "data": number})
    bench.reactor.run()
    assert [each.text for each in messages] == ["0", "1"]
    bench.reactor.advance(10)
    bench.server.notify(MESSAGE, {"level": "info", "data": "later"})
    bench.reactor.run()

    assert [each.text for each in messages] == ["0", "1", "later"]
    assert bench.session.bulletin.logs_dropped == 3
    assert bench.session.violations == {Violation.TOO_MANY_MESSAGES: 3}


@pytest.mark.requirement("F-50")
@pytest.mark.parametrize("level", LogLevel)
async def test_a_message_of_every_level_is_passed_on_with_its_place(level: LogLevel) -> None:
    bench, messages = await logging_bench()

    bench.server.notify(MESSAGE, {"level": level.value, "logger": "db", "data": {"a": [1]}})
    bench.reactor.run()

    assert messages == [LogMessage(level=level, logger="db", text='{"a":[1]}')]


@pytest.mark.requirement("F-50")
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"level": "info"},
        {"data": "x"},
        {"level": "loud", "data": "x"},
        {"level": ["info"], "data": "x"},
        {"level": "info", "data": "x", "logger": 7},
    ],
)
async def test_a_malformed_message_is_dropped_and_counted(params: dict[str, object]) -> None:
    bench, messages = await logging_bench()

    bench.server.notify(MESSAGE, params)
    bench.reactor.run()

    assert messages == []
    assert bench.session.bulletin.logs_dropped == 1


@pytest.mark.requirement("F-50")
async def test_a_message_over_the_bound_is_cut_and_marked() -> None:
    bench, messages = await logging_bench(ClientLimits(log_chars_max=10))

    for text in ("x" * 10, "x" * 11):
        bench.server.notify(MESSAGE, {"level": "info", "data": text})
    bench.reactor.run()

    assert messages[0].text == "x" * 10
    assert (len(messages[1].text), messages[1].text.endswith(CUT_MARK)) == (10, True)


@pytest.mark.requirement("F-50", "L-4")
async def test_messages_of_a_server_that_declared_no_logging_are_ignored() -> None:
    bench = await open_bench(ScriptedServer(capabilities={}))
    messages: list[LogMessage] = []
    bench.session.bulletin.on_log = messages.append

    bench.server.notify(MESSAGE, {"level": "info", "data": "x"})
    bench.reactor.run()

    assert messages == []
    assert bench.session.violations == {Violation.UNDECLARED_NOTIFICATION: 1}
