from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from mcp_client.protocol.errors import CallCancelledError, CallTimeoutError, Delivery
from mcp_client.protocol.events import Violation
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.progress import Progress
from mcp_client.session import PendingRequest
from mcp_client.testing import RecordingGuard, ScriptedRequest
from tests.mcp_client.kit import CALL, Bench, RefusalError, new_bench, open_bench


def cancellations(bench: Bench) -> list[object]:
    """The params of the cancellations that the server has got."""
    bench.reactor.run()
    return [each["params"] for each in bench.server.requests("notifications/cancelled")]


async def timeout_of(pending: PendingRequest) -> CallTimeoutError:
    assert pending.settled
    with pytest.raises(CallTimeoutError) as caught:
        await pending.wait()
    return caught.value


# -------------------------------------------------------------------------------------- deadlines


@pytest.mark.requirement("L-5")
async def test_a_request_without_an_answer_ends_at_its_deadline_and_the_server_is_told() -> None:
    bench = await open_bench()
    pending = bench.sent_call(seconds=5)

    bench.reactor.advance(4.9)
    assert not pending.settled
    bench.reactor.advance(0.2)

    error = await timeout_of(pending)
    assert (error.delivery, error.stage) == (Delivery.MAYBE_SENT, "wait")
    assert cancellations(bench) == [{"requestId": pending.id, "reason": "timed out"}]
    assert bench.cancel_guard.spent == 1


@pytest.mark.requirement("L-5")
async def test_a_request_that_names_no_deadline_has_the_one_of_the_limits() -> None:
    bench = await open_bench(limits=ClientLimits(request_seconds_max=7))
    pending = bench.sent_call()

    bench.reactor.advance(6.9)
    assert not pending.settled
    bench.reactor.advance(0.2)
    assert pending.settled


async def test_the_deadline_covers_the_write_and_nothing_is_told_of_what_never_left() -> None:
    bench = await open_bench()
    bench.server.wire.block()
    pending = bench.sent_call(seconds=5)

    bench.reactor.advance(6)

    error = await timeout_of(pending)
    assert (error.delivery, error.stage) == (Delivery.NOT_SENT, "send")
    bench.server.wire.unblock()
    assert cancellations(bench) == []
    assert bench.server.requests("tools/call") == []


async def test_every_deadline_is_kept_in_any_order_by_one_timer() -> None:
    bench = await open_bench()
    calls = {seconds: bench.sent_call(seconds=seconds) for seconds in (5, 1, 9, 3, 3.5)}
    assert bench.reactor.timers == 1

    ended: list[float] = []
    for _ in range(100):
        bench.reactor.advance(0.1)
        ended += [s for s, call in calls.items() if call.settled and s not in ended]

    assert ended == [1, 3, 3.5, 5, 9]


async def test_an_idle_session_sets_no_timer_again() -> None:
    bench = await open_bench()
    pending = bench.sent_call(seconds=5)
    bench.server.answer(pending.id, {})

    bench.reactor.advance(100)

    assert bench.reactor.timers == 0


async def test_an_answer_in_time_beats_the_deadline() -> None:
    bench = await open_bench()
    pending = bench.sent_call(seconds=5)
    bench.reactor.advance(4.9)

    bench.server.answer(pending.id, {"in": "time"})
    bench.reactor.advance(10)

    assert await pending.wait() == {"in": "time"}
    assert cancellations(bench) == []


# --------------------------------------------------------------------------------------- progress


class Watched:
    """A call that listens to progress, and the server's end of it."""

    def __init__(self, bench: Bench, *, seconds: float, stretches: bool = True) -> None:
        self.seen: list[Progress] = []
        self.pending = bench.session.start(
            "tools/call",
            CALL,
            guard=RecordingGuard(),
            seconds=seconds,
            on_progress=self.seen.append,
            stretches=stretches,
        )
        bench.reactor.run()
        self.request: ScriptedRequest = bench.server.held[-1]


@pytest.mark.requirement("F-51")
async def test_progress_reaches_the_caller_that_asked_for_it() -> None:
    bench = await open_bench(limits=ClientLimits(peer_message_chars_max=10))
    call, other = Watched(bench, seconds=5), Watched(bench, seconds=5)

    call.request.progress(0.5, 2, "a message that is long")

    assert call.seen == [Progress(done=0.5, total=2, message="a m […cut]")]
    assert other.seen == []


@pytest.mark.requirement("L-5")
async def test_progress_begins_the_clock_anew() -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5)

    for step in range(1, 4):
        bench.reactor.advance(4)
        call.request.progress(step)
    assert not call.pending.settled
    bench.reactor.advance(5.1)

    await timeout_of(call.pending)


@pytest.mark.requirement("L-5")
async def test_no_progress_moves_the_clock_over_the_absolute_maximum() -> None:
    bench = await open_bench(limits=ClientLimits(progress_seconds_max=10))
    call = Watched(bench, seconds=5)

    for step in range(1, 4):
        bench.reactor.advance(3)
        call.request.progress(step)
    assert not call.pending.settled
    bench.reactor.advance(1.1)

    await timeout_of(call.pending)
    assert cancellations(bench) == [{"requestId": call.pending.id, "reason": "timed out"}]


async def test_progress_of_a_call_that_nothing_stretches_is_told_and_moves_no_clock() -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5, stretches=False)

    bench.reactor.advance(4)
    call.request.progress(1)
    assert not call.pending.settled
    bench.reactor.advance(1.1)

    await timeout_of(call.pending)
    assert call.seen == [Progress(done=1)]


async def test_a_deadline_longer_than_the_absolute_maximum_is_kept_whatever_is_reported() -> None:
    bench = await open_bench(limits=ClientLimits(progress_seconds_max=10))
    call = Watched(bench, seconds=20)
    bench.reactor.advance(15)

    call.request.progress(1)
    bench.sent_call(seconds=1)
    bench.reactor.advance(4.9)
    assert not call.pending.settled
    bench.reactor.advance(0.2)

    await timeout_of(call.pending)


@pytest.mark.requirement("F-51")
async def test_progress_that_does_not_increase_is_ignored_and_moves_no_clock() -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5)
    call.request.progress(3)
    bench.reactor.advance(4)

    call.request.progress(3)
    call.request.progress(2)
    bench.reactor.advance(1.1)

    assert [progress.done for progress in call.seen] == [3]
    await timeout_of(call.pending)


@pytest.mark.requirement("F-51")
@pytest.mark.parametrize("token", [1, 99, True, 2.0, "2", None])
async def test_progress_under_a_token_of_no_running_request_is_only_counted(token: object) -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5)
    assert call.pending.id == 2

    bench.server.notify("notifications/progress", {"progressToken": token, "progress": 1})

    assert call.seen == []
    assert bench.session.violations == {Violation.UNKNOWN_PROGRESS: 1}


@pytest.mark.requirement("F-51")
async def test_progress_after_the_answer_is_ignored() -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5)
    call.request.answer({})

    call.request.progress(1)

    assert call.seen == []


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"progress": "1"},
        {"progress": True},
        {"progress": 1, "total": "2"},
        {"progress": 1, "message": 3},
    ],
)
async def test_malformed_progress_is_only_counted(params: dict[str, object]) -> None:
    bench = await open_bench()
    call = Watched(bench, seconds=5)

    bench.server.notify("notifications/progress", {"progressToken": call.pending.id, **params})

    assert call.seen == []
    assert bench.session.violations == {Violation.UNKNOWN_PROGRESS: 1}


async def test_a_request_that_asks_for_no_progress_carries_no_token() -> None:
    bench = await open_bench()
    pending = bench.sent_call(seconds=5)

    bench.server.notify("notifications/progress", {"progressToken": pending.id, "progress": 1})
    bench.reactor.advance(5.1)

    assert "_meta" not in bench.server.held[-1].params
    await timeout_of(pending)


async def test_a_listener_that_raises_ends_its_own_request_and_no_other() -> None:
    bench = await open_bench()
    error = RefusalError()

    def listen(_progress: Progress) -> None:
        raise error

    pending = bench.session.start("tools/call", CALL, guard=RecordingGuard(), on_progress=listen)
    other = bench.sent_call()
    bench.server.held[0].progress(1)
    bench.server.answer(other.id, {"fine": True})

    with pytest.raises(RefusalError):
        await pending.wait()
    assert await other.wait() == {"fine": True}
    assert cancellations(bench) == [{"requestId": pending.id, "reason": "given up"}]


# ----------------------------------------------------------------------------------- cancellation


async def cancel_the_wait(bench: Bench, pending: PendingRequest) -> None:
    """Wait for a request in a task of its own, and cancel that."""
    async with anyio.create_task_group() as group:
        group.start_soon(pending.wait)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    bench.reactor.run()


async def test_cancelling_the_task_that_waits_ends_the_request_and_tells_the_server() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    await cancel_the_wait(bench, pending)

    assert pending.settled
    assert cancellations(bench) == [{"requestId": pending.id, "reason": "cancelled"}]
    assert bench.cancel_guard.spent == 1
    assert isinstance(bench.observer.errors[0], CallCancelledError)


async def test_nothing_is_told_under_a_cancel_guard_that_refuses() -> None:
    bench = await open_bench()
    bench.cancel_guard.error = RefusalError()
    pending = bench.sent_call()

    await cancel_the_wait(bench, pending)

    assert pending.settled
    assert cancellations(bench) == []


async def test_cancelling_the_wait_for_a_request_that_has_not_left_drops_it_without_a_word() -> (
    None
):
    bench = await open_bench()
    bench.server.wire.block()
    pending = bench.call()
    bench.reactor.run()

    await cancel_the_wait(bench, pending)
    bench.server.wire.unblock()

    assert cancellations(bench) == []
    assert bench.server.requests("tools/call") == []


async def test_a_result_that_came_before_the_cancellation_is_no_cancelled_call() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    async with anyio.create_task_group() as group:
        group.start_soon(pending.wait)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.server.answer(pending.id, {})
        group.cancel_scope.cancel()

    assert pending.delivery is Delivery.ANSWERED
    assert cancellations(bench) == []


async def test_a_task_that_is_cancelled_after_its_request_ended_tells_the_server_nothing() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    pending.fail(RefusalError())

    bench.session.give_up(pending)

    assert cancellations(bench) == []


async def test_the_server_is_told_once_under_the_guard_that_was_given() -> None:
    bench = await open_bench()
    guard = RecordingGuard()
    pending = bench.sent_call()
    pending.fail(RefusalError())

    bench.session.cancel(pending, guard=guard, reason="taken back")
    bench.session.cancel(pending, guard=guard)

    assert cancellations(bench) == [{"requestId": pending.id, "reason": "taken back"}]
    assert (guard.spent, bench.cancel_guard.spent) == (1, 0)


async def test_nothing_is_told_of_a_request_that_was_answered() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    bench.server.answer(pending.id, {})

    bench.session.cancel(pending, guard=RecordingGuard())

    assert cancellations(bench) == []


async def test_a_cancellation_comes_behind_a_frame_that_is_half_written() -> None:
    bench = await open_bench()
    bench.server.wire.block(after_bytes=10)
    pending = bench.sent_call()
    pending.fail(RefusalError())

    bench.session.cancel(pending, guard=RecordingGuard())
    bench.server.wire.unblock()

    assert cancellations(bench) == [{"requestId": pending.id}]
    assert [message["method"] for message in bench.server.received[2:]] == [
        "tools/call",
        "notifications/cancelled",
    ]


@pytest.mark.requirement("L-6")
async def test_initialize_that_is_given_up_is_not_cancelled_by_a_notification() -> None:
    bench = new_bench()
    bench.server.hold("initialize")

    async with anyio.create_task_group() as group:
        group.start_soon(bench.session.open)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.run()
        group.cancel_scope.cancel()

    assert len(bench.server.requests("initialize")) == 1
    assert cancellations(bench) == []


@pytest.mark.requirement("L-6")
async def test_initialize_that_times_out_is_not_cancelled_by_a_notification() -> None:
    bench = new_bench(limits=ClientLimits(initialize_seconds_max=3))
    bench.server.hold("initialize")
    async with anyio.create_task_group() as group:

        async def opening() -> None:
            with pytest.raises(CallTimeoutError):
                await bench.session.open()

        group.start_soon(opening)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.advance(4)

    assert cancellations(bench) == []


async def test_a_server_that_takes_no_byte_of_initialize_is_given_up() -> None:
    bench = new_bench(limits=ClientLimits(initialize_seconds_max=3))
    bench.server.wire.block()
    deliveries: list[Delivery] = []
    async with anyio.create_task_group() as group:

        async def opening() -> None:
            with pytest.raises(CallTimeoutError) as caught:
                await bench.session.open()
            deliveries.append(caught.value.delivery)

        group.start_soon(opening)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        bench.reactor.advance(4)

    assert deliveries == [Delivery.NOT_SENT]


async def test_a_cancellation_by_the_server_disturbs_nothing() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.notify("notifications/cancelled", {"requestId": pending.id})

    assert not pending.settled
    assert bench.session.violations == {}
