"""The test kit itself: what it records and how it misbehaves."""

from __future__ import annotations

import anyio
import pytest

from mcp_client import UNGUARDED, connect
from mcp_client.testing import ManualReactor, RecordingGuard, ScriptedServer
from tests.mcp_client.kit import CALL, RefusalError, open_bench


async def test_each_frame_is_recorded_with_the_step_of_its_first_byte() -> None:
    bench = await open_bench()
    before = bench.server.frames[-1].step
    bench.call()
    bench.call()
    bench.reactor.run()
    bench.sent_call()

    steps = [frame.step for frame in bench.server.frames[2:]]

    assert steps == [before + 1, before + 1, before + 2]


async def test_a_frame_that_is_cut_into_writes_arrives_whole() -> None:
    bench = await open_bench()
    writes = len(bench.server.wire.writes)
    bench.server.wire.take_at_most(7)

    bench.sent_call()

    assert len(bench.server.wire.writes) - writes > 10
    assert bench.server.received[-1]["method"] == "tools/call"


async def test_a_blocked_wire_takes_what_it_was_told_and_then_nothing() -> None:
    bench = await open_bench()
    written = sum(len(write.data) for write in bench.server.wire.writes)
    bench.server.wire.block(after_bytes=10)

    bench.sent_call()
    bench.sent_call()

    assert sum(len(write.data) for write in bench.server.wire.writes) == written + 10


@pytest.mark.requirement("I3")
async def test_a_frame_whose_leave_is_taken_back_in_mid_frame_is_finished() -> None:
    bench = await open_bench()
    guard = RecordingGuard()
    bench.server.wire.block(after_bytes=10)
    pending = bench.session.start("tools/call", CALL, guard=guard)
    bench.reactor.run()

    guard.error = RefusalError()
    bench.server.wire.unblock()
    bench.reactor.run()

    assert pending.drained
    assert bench.server.received[-1]["method"] == "tools/call"


async def test_bytes_may_be_delivered_in_any_pieces() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    for byte in b'{"jsonrpc":"2.0","id":%d,"result":{"a":1}}\n' % pending.id:
        bench.server.say(bytes([byte]))

    assert await pending.wait() == {"a": 1}


async def test_a_server_answers_what_it_was_not_told_to_with_an_error() -> None:
    with anyio.fail_after(30):
        server = ScriptedServer(capabilities={"prompts": {}})
        async with connect(server, guard=UNGUARDED) as client:
            pending = client.session.start("prompts/list", b"{}", guard=UNGUARDED)
            with pytest.raises(Exception, match="-32601"):
                await pending.wait()


async def test_a_removed_tool_is_neither_listed_nor_called() -> None:
    server = ScriptedServer()
    server.add_tool("gone", lambda _: "here")
    server.remove_tool("gone")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            assert (await client.list_tools()).tools == ()
            with pytest.raises(Exception, match="-32602"):
                await client.call_tool("gone", {})


def test_a_server_that_nobody_has_connected_to_has_no_wire() -> None:
    with pytest.raises(LookupError):
        ScriptedServer().notify("x")


def test_the_manual_loop_runs_timers_in_the_order_of_their_times() -> None:
    reactor = ManualReactor()
    ran: list[float] = []
    start = reactor.now()
    for seconds in (3, 1, 2):
        reactor.at(start + seconds, lambda: ran.append(reactor.now() - start))
    reactor.at(start + 1.5, lambda: ran.append(-1)).cancel()

    reactor.advance(2.5)

    assert ran == [1, 2]
    assert (reactor.now() - start, reactor.timers) == (2.5, 1)


async def test_the_manual_loop_finishes_a_function_and_raises_what_it_raises() -> None:
    reactor = ManualReactor()

    async def waits_and_fails() -> None:
        waiter = reactor.waiter()
        reactor.soon(waiter.set_result, None)
        await waiter
        raise RefusalError

    with pytest.raises(RefusalError):
        await reactor.finish(waits_and_fails)
