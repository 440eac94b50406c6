"""What the server asks and tells by itself."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    HandshakeError,
    ServerGoneError,
    UnsupportedVersionError,
)
from mcp_client.protocol.events import ListKind, Violation
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import ScriptedServer
from tests.mcp_client.kit import Bench, RefusalError, new_bench, open_bench


def answers(bench: Bench) -> list[object]:
    """The client's answers that have come to the server."""
    bench.reactor.run()
    return [each for each in bench.server.received if "method" not in each]


@pytest.mark.requirement("F-53")
@pytest.mark.parametrize("request_id", [0, 7, "a", "é\\"])
async def test_a_ping_is_answered_under_its_own_id(request_id: object) -> None:
    bench = await open_bench()

    bench.server.ask(request_id, "ping")

    assert answers(bench) == [{"jsonrpc": "2.0", "id": request_id, "result": {}}]


async def test_the_observer_is_told_of_every_frame_that_is_no_request() -> None:
    bench = await open_bench()
    bench.server.ask(7, "ping")
    bench.reactor.run()
    given_up = bench.sent_call()
    given_up.fail(RefusalError())
    bench.session.cancel(given_up, guard=bench.session.guard)
    bench.reactor.run()

    assert bench.observer.notices == [
        "notifications/initialized",
        "",
        "notifications/cancelled",
    ]


@pytest.mark.requirement("F-53")
async def test_a_ping_during_the_handshake_is_answered() -> None:
    bench = new_bench()
    bench.server.hold("initialize")
    async with anyio.create_task_group() as group:
        group.start_soon(bench.session.open)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.run()
        bench.server.ask("early", "ping")

        assert answers(bench) == [{"jsonrpc": "2.0", "id": "early", "result": {}}]
        group.cancel_scope.cancel()


@pytest.mark.requirement("L-4")
@pytest.mark.parametrize(
    "method", ["sampling/createMessage", "elicitation/create", "roots/list", "tasks/get", "x"]
)
async def test_every_other_request_is_refused_since_nothing_is_declared(method: str) -> None:
    bench = await open_bench()

    bench.server.ask(5, method, {"messages": []})

    assert answers(bench) == [
        {"jsonrpc": "2.0", "id": 5, "error": {"code": -32601, "message": "method not found"}}
    ]


async def test_an_answer_to_the_server_goes_out_under_the_connections_guard() -> None:
    bench = await open_bench()
    bench.guard.error = RefusalError()

    bench.server.ask(5, "ping")

    assert answers(bench) == []


async def test_one_request_over_the_bound_is_not_answered_until_the_others_are_written() -> None:
    bench = await open_bench(limits=ClientLimits(peer_requests_max=3))
    bench.server.wire.block()
    for request_id in range(4):
        bench.server.ask(request_id, "ping")
    bench.reactor.run()
    assert bench.session.violations == {Violation.TOO_MANY_REQUESTS: 1}

    bench.server.wire.unblock()
    bench.reactor.run()
    bench.server.ask(9, "ping")

    assert len(answers(bench)) == 4


async def test_an_answer_for_which_there_is_no_room_is_dropped_and_not_counted_as_waiting() -> None:
    bench = await open_bench(limits=ClientLimits(outbox_bytes_max=200, peer_requests_max=1))
    bench.server.wire.block()
    pending = bench.sent_call()
    bench.server.ask("x" * 100, "ping")
    bench.server.wire.unblock()
    bench.reactor.run()

    bench.server.ask(1, "ping")

    assert len(answers(bench)) == 1
    assert not pending.settled


async def test_changes_of_the_tools_are_told_once_for_all_of_a_step() -> None:
    bench = await open_bench()
    told: list[ListKind] = []
    bench.session.bulletin.on_list_changed = told.append

    for _ in range(5):
        bench.server.notify("notifications/tools/list_changed")
    assert told == []
    bench.reactor.run()
    bench.server.notify("notifications/tools/list_changed")
    bench.reactor.run()

    assert told == [ListKind.TOOLS, ListKind.TOOLS]


@pytest.mark.requirement("F-25")
async def test_a_change_that_the_server_has_not_declared_is_not_told() -> None:
    bench = await open_bench(ScriptedServer(capabilities={"tools": {}}))
    told: list[ListKind] = []
    bench.session.bulletin.on_list_changed = told.append

    bench.server.notify("notifications/tools/list_changed")
    bench.reactor.run()

    assert told == []
    assert bench.session.violations == {Violation.UNDECLARED_NOTIFICATION: 1}


# -------------------------------------------------------------------------------------- handshake


@pytest.mark.requirement("L-2")
async def test_the_handshake_is_initialize_and_then_initialized() -> None:
    bench = await open_bench()

    assert [each["method"] for each in bench.server.received] == [
        "initialize",
        "notifications/initialized",
    ]


@pytest.mark.requirement("L-2")
async def test_nobody_uses_a_connection_whose_initialized_was_refused() -> None:
    bench = new_bench()
    refusal = RefusalError()
    bench.server.hold("initialize")

    async def opening() -> None:
        with pytest.raises(RefusalError):
            await bench.session.open()

    async with anyio.create_task_group() as group:
        group.start_soon(opening)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.run()
        bench.guard.error = refusal
        bench.server.held[0].answer(bench.server.initialize_result)
        bench.reactor.run()

    assert len(bench.server.received) == 1


async def test_a_guard_that_refuses_the_handshake_is_heard_and_no_byte_leaves() -> None:
    bench = new_bench()
    bench.guard.error = RefusalError()

    with pytest.raises(RefusalError):
        await bench.reactor.finish(bench.session.open)

    assert bench.server.wire.writes == []


@pytest.mark.requirement("L-3")
async def test_a_server_of_another_version_is_refused_and_told_nothing_more() -> None:
    bench = new_bench(ScriptedServer(version="2027-01-01"))

    with pytest.raises(UnsupportedVersionError) as caught:
        await bench.reactor.finish(bench.session.open)

    assert caught.value.offered == "2027-01-01"
    assert caught.value.delivery is Delivery.ANSWERED
    assert len(bench.server.received) == 1


@pytest.mark.parametrize("result", [None, [], {}, {"protocolVersion": "2025-11-25"}])
async def test_a_server_whose_answer_cannot_be_used_is_refused(result: object) -> None:
    server = ScriptedServer()
    server.initialize_result = result
    bench = new_bench(server)

    with pytest.raises(HandshakeError):
        await bench.reactor.finish(bench.session.open)


async def test_an_answer_to_initialize_that_comes_too_late_finds_nobody() -> None:
    bench = new_bench(limits=ClientLimits(initialize_seconds_max=3))
    bench.server.hold("initialize")

    async def opening() -> None:
        with pytest.raises(CallTimeoutError):
            await bench.session.open()

    async with anyio.create_task_group() as group:
        group.start_soon(opening)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.advance(4)
        bench.server.held[0].answer(bench.server.initialize_result)
        bench.reactor.run()

    assert len(bench.server.received) == 1
    with pytest.raises(ServerGoneError):
        bench.call()
