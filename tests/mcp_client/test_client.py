from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    CallTimeoutError,
    Client,
    ClientLimits,
    Delivery,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    ServerGoneError,
    ServerSpec,
    UnsupportedVersionError,
    connect,
    open_host,
)
from mcp_client.protocol.errors import McpError
from mcp_client.testing import RecordingGuard, ScriptedServer, text_result
from tests.mcp_client.kit import RefusalError


def echo_server(*, page_size: int | None = None) -> ScriptedServer:
    server = ScriptedServer("files", page_size=page_size, instructions="be kind")
    server.add_tool("echo", lambda arguments: str(arguments["text"]))
    return server


async def in_client(
    server: ScriptedServer,
    limits: ClientLimits | None = None,
    *,
    seconds: float = 5,
) -> None:
    """Connect and list the tools, within bounds."""
    with anyio.fail_after(seconds):
        async with connect(server, guard=UNGUARDED, limits=limits or ClientLimits()) as client:
            await client.list_tools()


# ------------------------------------------------------------------------------------ connecting


@pytest.mark.requirement("S-31")
async def test_a_client_knows_what_the_handshake_told_and_calls_tools() -> None:
    server = echo_server()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            result = await client.call_tool("echo", {"text": "hello"})
            await client.ping()

    assert result.text == "hello"
    assert (client.server, client.protocol_version) == ("files", "2025-11-25")
    assert (client.server_info.name, client.instructions) == ("scripted", "be kind")
    assert client.capabilities.tools


async def test_leaving_the_block_closes_the_connection() -> None:
    server = echo_server()
    async with connect(server, guard=UNGUARDED) as client:
        assert not server.over

    assert server.over
    with pytest.raises(ServerGoneError):
        await client.ping()


async def test_an_error_in_the_block_comes_out_as_it_is_and_closes_the_connection() -> None:
    server = echo_server()

    with pytest.raises(RefusalError):
        async with connect(server, guard=UNGUARDED):
            raise RefusalError

    assert server.over


async def test_cancelling_the_owner_closes_the_connection_and_ends_its_calls() -> None:
    server = ScriptedServer()
    server.add_tool("wait")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:

            async def owner() -> None:
                async with connect(server, guard=UNGUARDED) as client:
                    await client.call_tool("wait", {})

            group.start_soon(owner)
            await server.until(lambda: server.held)
            group.cancel_scope.cancel()

    assert server.over


@pytest.mark.requirement("L-5")
async def test_a_server_that_never_answers_initialize_is_given_up_and_closed() -> None:
    server = echo_server()
    server.hold("initialize")

    with pytest.raises(CallTimeoutError) as caught:
        await in_client(server, ClientLimits(initialize_seconds_max=0.02))

    assert (caught.value.server, caught.value.delivery) == ("files", Delivery.MAYBE_SENT)
    assert server.over


@pytest.mark.requirement("L-3")
async def test_a_server_of_an_unsupported_version_is_closed() -> None:
    server = ScriptedServer(version="2024-10-07")

    with pytest.raises(UnsupportedVersionError):
        await in_client(server)

    assert server.over


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
@pytest.mark.requirement("S-31")
async def test_tools_are_listed_and_called_at_every_version(version: str) -> None:
    server = ScriptedServer(version=version)
    server.add_tool("echo", lambda arguments: str(arguments["text"]))
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()
            result = await client.call_tool("echo", {"text": version})

    assert [tool.name for tool in listing.tools] == ["echo"]
    assert result.text == version


async def test_connections_that_share_a_host_do_not_share_anything_else() -> None:
    first, second = ScriptedServer("first"), ScriptedServer("second")
    with anyio.fail_after(30):
        async with (
            open_host() as host,
            connect(first, guard=UNGUARDED, host=host) as one,
            connect(second, guard=UNGUARDED, host=host) as two,
        ):
            first.die()
            await one.wait_lost()
            await two.ping()

    assert len(first.requests("ping")) == 0


async def test_the_end_of_the_connection_is_told_with_its_cause() -> None:
    server = echo_server()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            server.die(exit_status=3)
            error = await client.wait_lost()

    assert isinstance(error, ServerGoneError)
    assert error.exit_status == 3


# ----------------------------------------------------------------------------------------- calling


async def test_a_tools_own_failure_is_a_result() -> None:
    server = ScriptedServer()
    server.add_tool("fail", lambda _: text_result("no", is_error=True))
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            result = await client.call_tool("fail", {})

    assert (result.is_error, result.text) == (True, "no")


async def test_an_unknown_tool_is_the_servers_error() -> None:
    with anyio.fail_after(30):
        async with connect(echo_server(), guard=UNGUARDED) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("nope", {})

    assert caught.value.code == -32602


@pytest.mark.requirement("F-3")
async def test_a_result_that_is_none_fails_its_call_and_no_other() -> None:
    server = echo_server()
    server.add_tool("odd", lambda _: {"content": "text"})
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(RemoteProtocolError):
                await client.call_tool("odd", {})
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"


async def test_a_call_goes_out_under_its_own_guard() -> None:
    own, connection = RecordingGuard(), RecordingGuard()
    with anyio.fail_after(30):
        async with connect(echo_server(), guard=connection) as client:
            before = connection.spent
            await client.call_tool("echo", {"text": ""}, guard=own)

    assert (own.spent, connection.spent) == (1, before)


@pytest.mark.requirement("I1")
async def test_a_guards_refusal_reaches_the_caller_of_a_tool_as_it_is() -> None:
    server = echo_server()
    refusal = RefusalError()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(RefusalError) as caught:
                await client.call_tool("echo", {"text": ""}, guard=RecordingGuard(refusal))

    assert caught.value is refusal
    assert server.requests("tools/call") == []


@pytest.mark.requirement("S-15")
@pytest.mark.parametrize("arguments", [{1: "a"}, {"a": float("nan")}, {"a": object()}, []])
async def test_arguments_that_are_no_json_are_refused_and_nothing_is_sent(
    arguments: Mapping[str, object],
) -> None:
    server = echo_server()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(LocalProtocolError):
                await client.call_tool("echo", arguments)

    assert server.requests("tools/call") == []


async def test_many_callers_get_their_own_answers_when_these_come_in_any_order() -> None:
    server = ScriptedServer()
    server.add_tool("wait")
    got: dict[int, str] = {}
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client, anyio.create_task_group() as group:

            async def call(number: int) -> None:
                got[number] = (await client.call_tool("wait", {"n": number})).text

            for number in range(20):
                group.start_soon(call, number)
            await server.until(lambda: len(server.held) == 20)
            for request in [*server.held[::-2], *server.held[::2], *server.held[:5]]:
                arguments = request.params["arguments"]
                assert isinstance(arguments, dict)
                request.answer(f"for {arguments['n']}")

    assert got == {number: f"for {number}" for number in range(20)}


async def test_the_death_of_the_server_ends_the_calls_of_every_task() -> None:
    server = ScriptedServer()
    server.add_tool("wait")
    statuses: list[int | None] = []
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client, anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(ServerGoneError) as caught:
                    await client.call_tool("wait", {})
                statuses.append(caught.value.exit_status)

            for _ in range(5):
                group.start_soon(call)
            await server.until(lambda: len(server.held) == 5)
            server.die(exit_status=7)

    assert statuses == [7] * 5


async def test_a_call_that_gets_no_answer_ends_at_its_deadline_while_others_go_on() -> None:
    server = echo_server()
    server.add_tool("wait")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(CallTimeoutError):
                await client.call_tool("wait", {}, seconds=0.02)
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"


async def test_progress_reaches_the_caller_while_the_call_runs() -> None:
    server = ScriptedServer()
    server.add_tool("wait")
    seen: list[float] = []
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client, anyio.create_task_group() as group:

            async def call() -> None:
                await client.call_tool("wait", {}, on_progress=lambda p: seen.append(p.done))

            group.start_soon(call)
            await server.until(lambda: server.held)
            server.held[0].progress(0.5)
            server.held[0].answer("done")

    assert seen == [0.5]


# ----------------------------------------------------------------------------------------- listing


@pytest.mark.requirement("F-22")
@pytest.mark.parametrize("page_size", [None, 1, 2, 3, 7, 100])
async def test_the_tools_of_all_pages_are_listed_in_the_servers_order(
    page_size: int | None,
) -> None:
    server = ScriptedServer(page_size=page_size)
    for number in range(7):
        server.add_tool(f"tool{number}")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == [f"tool{number}" for number in range(7)]


async def serve_pages(
    answer: Callable[[int, object], object], *, limits: ClientLimits | None = None
) -> tuple[Client, ScriptedServer, McpError | None]:
    """List tools from pages that are made by number and cursor; return how it ended."""
    server = ScriptedServer()
    server.hold("tools/list")
    failure: list[McpError] = []
    with anyio.fail_after(30):
        async with (
            connect(server, guard=UNGUARDED, limits=limits or ClientLimits()) as client,
            anyio.create_task_group() as group,
        ):

            async def answering() -> None:
                for number in range(100):
                    await server.until(lambda n=number: len(server.held) > n)
                    request = server.held[number]
                    request.answer(answer(number, request.params.get("cursor")))

            group.start_soon(answering)
            try:
                await client.list_tools()
            except McpError as error:
                failure.append(error)
            group.cancel_scope.cancel()
    return client, server, failure[0] if failure else None


@pytest.mark.requirement("F-22")
async def test_an_empty_cursor_is_a_cursor() -> None:
    _, server, failure = await serve_pages(
        lambda number, _: {"tools": [], "nextCursor": ""} if number == 0 else {"tools": []}
    )

    assert failure is None
    assert [each["params"] for each in server.requests("tools/list")] == [{}, {"cursor": ""}]


@pytest.mark.requirement("F-22")
async def test_a_null_cursor_ends_the_list() -> None:
    _, server, failure = await serve_pages(
        lambda _number, _cursor: {"tools": [], "nextCursor": None}
    )

    assert failure is None
    assert len(server.held) == 1


@pytest.mark.requirement("F-22")
async def test_an_empty_cursor_is_one_and_ends_the_list_where_it_leads_to_itself() -> None:
    _, server, failure = await serve_pages(lambda _number, _cursor: {"tools": [], "nextCursor": ""})

    assert failure is None
    assert len(server.held) == 2


@pytest.mark.requirement("F-22")
@pytest.mark.parametrize("period", [1, 2, 5])
async def test_pages_that_turn_in_a_circle_are_found(period: int) -> None:
    _, server, failure = await serve_pages(
        lambda number, _: {"tools": [], "nextCursor": f"c{number % period}"}
    )

    assert isinstance(failure, RemoteProtocolError)
    assert len(server.held) == period + 1


@pytest.mark.requirement("F-22")
async def test_one_page_over_the_bound_is_not_asked_for() -> None:
    limits = ClientLimits(pages_max=4)

    def ends_after(pages: int) -> Callable[[int, object], object]:
        return lambda number, _: (
            {"tools": []} if number == pages - 1 else {"tools": [], "nextCursor": str(number)}
        )

    *_, fits = await serve_pages(ends_after(4), limits=limits)
    _, server, failure = await serve_pages(ends_after(5), limits=limits)

    assert fits is None
    assert isinstance(failure, RemoteProtocolError)
    assert len(server.held) == 4


@pytest.mark.requirement("F-22")
@pytest.mark.parametrize("cursor", [1, True, {}, [], "c" * 8_193])
async def test_a_cursor_that_is_no_text_within_bounds_ends_the_listing(cursor: object) -> None:
    *_, failure = await serve_pages(lambda _number, _cursor: {"tools": [], "nextCursor": cursor})

    assert isinstance(failure, RemoteProtocolError)


@pytest.mark.parametrize("result", [[], "text", {}, {"tools": None}, {"tools": {}}])
async def test_a_page_that_is_none_ends_the_listing(result: object) -> None:
    *_, failure = await serve_pages(lambda _number, _cursor: result)

    assert isinstance(failure, RemoteProtocolError)


async def test_one_tool_over_the_bound_ends_the_listing() -> None:
    server = ScriptedServer(page_size=2)
    for number in range(5):
        server.add_tool(f"tool{number}")
    await in_client(server, ClientLimits(tools_max=5))

    with pytest.raises(RemoteProtocolError):
        await in_client(server, ClientLimits(tools_max=4))


async def test_a_bad_tool_is_quarantined_with_a_reason_and_the_others_are_listed() -> None:
    server = ScriptedServer()
    server.add_tool("before")
    server.add_definition({"name": "bad", "inputSchema": {"type": "string"}})
    server.add_definition(None)
    server.add_tool("after")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == ["before", "after"]
    assert [bad.name for bad in listing.quarantined] == ["bad", ""]
    assert all(bad.reason for bad in listing.quarantined)


async def test_of_two_definitions_under_one_name_neither_wins() -> None:
    server = ScriptedServer(page_size=1)
    for description in ("one", "two", "one"):
        server.add_tool("twin", description=description)
    server.add_tool("other")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == ["other"]
    assert [bad.name for bad in listing.quarantined] == ["twin"]


async def test_a_tool_that_is_listed_twice_alike_is_listed_once() -> None:
    server = ScriptedServer()
    server.add_tool("twin")
    server.add_tool("twin")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()

    assert [tool.name for tool in listing.tools] == ["twin"]
    assert listing.quarantined == ()


@pytest.mark.requirement("L-4")
async def test_a_server_without_tools_is_not_asked_for_them() -> None:
    server = ScriptedServer(capabilities={})
    await in_client(server)

    assert server.requests("tools/list") == []


@pytest.mark.requirement("F-25")
async def test_changes_are_told_to_who_goes_through_them_until_the_connection_ends() -> None:
    server = echo_server()
    turns: list[int] = []
    with anyio.fail_after(30):
        async with (
            connect(server, guard=UNGUARDED, on_list_changed=lambda _: turns.append(0)) as client,
            anyio.create_task_group() as group,
        ):

            async def follow() -> None:
                async for _ in client.tool_changes():
                    turns.append(1)
                    server.die()
                turns.append(2)

            group.start_soon(follow)
            server.notify("notifications/tools/list_changed")
            server.notify("notifications/tools/list_changed")

    assert turns == [0, 1, 2]


# --------------------------------------------------------------------------------------------- spec


@pytest.mark.parametrize(
    "fault",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"command": ""},
        {"command": "a\0b"},
        {"args": ("ok", "a\0b")},
        {"cwd": "a\0b"},
        {"env": {"": "v"}},
        {"env": {"A=B": "v"}},
        {"env": {"A\0": "v"}},
        {"env": {"A": "s3cr3t\0"}},
    ],
)
def test_a_spec_that_can_name_no_process_is_refused_without_its_values(
    fault: dict[str, object],
) -> None:
    members: dict[str, object] = {"name": "s", "command": "c", **fault}

    with pytest.raises(LocalProtocolError) as caught:
        ServerSpec(**members)  # pyright: ignore[reportArgumentType]

    assert "s3cr3t" not in str(caught.value)


def test_a_spec_never_shows_its_arguments_and_the_values_of_its_variables() -> None:
    spec = ServerSpec(name="s", command="c", args=("--token=s3cr3t",), env={"A": "s3cr3t"})

    assert "s3cr3t" not in repr(spec)
