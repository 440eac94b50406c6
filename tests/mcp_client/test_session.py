from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings, strategies as st

from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    LocalProtocolError,
    PeerError,
    RemoteProtocolError,
    ServerGoneError,
)
from mcp_client.protocol.events import Violation
from mcp_client.protocol.limits import ClientLimits
from mcp_client.session import PendingRequest
from mcp_client.testing import RecordingGuard, ScriptedServer
from tests.mcp_client.kit import CALL, Bench, RefusalError, new_bench, open_bench


async def failure(pending: PendingRequest) -> Exception:
    """The error with which a request has ended."""
    assert pending.settled
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever it is
        await pending.wait()
    return caught.value


def frames_of(bench: Bench) -> list[bytes]:
    """The frames that left after the handshake."""
    return [record.frame for record in bench.server.frames[2:]]


# ---------------------------------------------------------------------------------- out and back


async def test_a_result_reaches_its_caller_in_the_step_in_which_its_frame_came() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.answer(pending.id, {"a": 1})

    assert pending.settled
    assert pending.delivery is Delivery.ANSWERED
    assert await pending.wait() == {"a": 1}


async def test_the_params_of_a_request_leave_as_the_bytes_that_they_were() -> None:
    bench = await open_bench()

    pending = bench.sent_call()

    assert frames_of(bench) == [
        b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":%b}' % (pending.id, CALL)
    ]
    assert pending.bytes_sent == len(frames_of(bench)[0]) + 1


async def test_nothing_leaves_in_the_step_that_starts_a_request() -> None:
    bench = await open_bench()

    pending = bench.call()

    assert pending.delivery is Delivery.NOT_SENT
    assert frames_of(bench) == []


async def test_the_observer_hears_of_the_first_byte_and_of_the_answer() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    bench.server.answer(pending.id, {})

    assert bench.observer.events == [("request_sent", pending.id), ("request_answered", pending.id)]


async def test_the_observer_hears_of_the_first_byte_once_however_often_the_rest_is_written() -> (
    None
):
    bench = await open_bench()
    bench.server.wire.take_at_most(5)

    pending = bench.sent_call()

    assert bench.observer.events == [("request_sent", pending.id)]


async def test_an_error_of_the_server_is_raised_with_its_text_apart() -> None:
    bench = await open_bench(limits=ClientLimits(peer_message_chars_max=10))
    pending = bench.sent_call()

    bench.server.refuse(pending.id, -32000, "s3cr3t" * 10, {"a": 1})

    error = await failure(pending)
    assert isinstance(error, PeerError)
    assert (error.code, error.data, error.delivery) == (-32000, {"a": 1}, Delivery.ANSWERED)
    assert len(error.peer_message) == 10
    assert "s3cr3t" not in str(error)


async def test_only_one_task_waits_for_a_request() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    async with anyio.create_task_group() as group:
        group.start_soon(pending.wait)
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        with pytest.raises(LocalProtocolError):
            await pending.wait()
        bench.server.answer(pending.id, {})


# -------------------------------------------------------------------------- answers and their ids


@settings(deadline=None, max_examples=60)
@given(order=st.permutations(range(6)), twice=st.lists(st.integers(0, 5), max_size=6))
def test_no_answer_reaches_another_caller_in_any_order_and_however_often_it_comes(
    order: list[int], twice: list[int]
) -> None:
    async def scenario() -> None:
        bench = await open_bench()
        calls = [bench.sent_call() for _ in range(6)]

        for index in [*order[:3], *twice, *order]:
            bench.server.answer(calls[index].id, {"for": calls[index].id})

        assert [await call.wait() for call in calls] == [{"for": call.id} for call in calls]

    anyio.run(scenario)


async def test_the_first_answer_counts_and_a_second_is_dropped_and_told() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.answer(pending.id, {"n": 1})
    bench.server.answer(pending.id, {"n": 2})
    bench.server.refuse(pending.id, 1, "no")

    assert await pending.wait() == {"n": 1}
    assert bench.observer.events[2:] == [("answer_dropped", pending.id)] * 2
    assert bench.session.violations[Violation.LATE_ANSWER] == 2


@pytest.mark.requirement("F-52")
async def test_an_answer_that_comes_after_the_request_has_ended_is_dropped() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    given_up = RefusalError()
    pending.fail(given_up)

    bench.server.answer(pending.id, {"late": True})

    assert await failure(pending) is given_up
    assert ("answer_dropped", pending.id) in bench.observer.events


@pytest.mark.parametrize("wrong", [99, 0, -1, "2", "x"])
async def test_an_answer_to_an_unknown_id_is_counted_and_settles_nothing(wrong: object) -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    assert pending.id == 2

    bench.server.answer(wrong, {})

    assert not pending.settled
    assert bench.session.violations == {Violation.UNKNOWN_ID: 1}


@pytest.mark.requirement("J-4")
async def test_an_error_without_an_id_settles_nobodys_request() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.send({"jsonrpc": "2.0", "error": {"code": -32700, "message": "what"}})

    assert not pending.settled
    assert bench.session.violations == {Violation.UNKNOWN_ID: 1}


async def test_an_answer_to_a_request_that_has_not_left_is_a_guess_and_not_delivered() -> None:
    bench = await open_bench()
    bench.server.wire.block()
    pending = bench.sent_call()

    bench.server.answer(pending.id, {"guess": True})

    assert not pending.settled
    assert bench.session.violations == {Violation.UNSENT_REQUEST: 1}


@pytest.mark.requirement("J-2")
async def test_ids_are_not_reused_after_failures_of_every_kind() -> None:
    bench = await open_bench()
    refused = bench.sent_call()
    refused.fail(RefusalError())
    denied = bench.call(guard=RecordingGuard(RefusalError()))
    bench.reactor.run()
    late = bench.sent_call(seconds=1)
    bench.reactor.advance(2)
    with pytest.raises(FrameTooLargeError):
        bench.session.start("ping", b'{"a":"' + b"x" * (9 << 20) + b'"}', guard=bench.guard)
    answered = bench.sent_call()
    bench.server.answer(answered.id, {})

    ids = [refused.id, denied.id, late.id, answered.id, bench.call().id]

    assert sorted(set(ids)) == ids


@pytest.mark.requirement("J-3")
@pytest.mark.parametrize(
    "members",
    [
        {"result": {}, "error": {"code": 1, "message": "m"}},
        {"error": {"code": "1", "message": "m"}},
        {},
    ],
)
async def test_a_malformed_answer_fails_its_own_request_and_no_other(
    members: dict[str, object],
) -> None:
    bench = await open_bench()
    first, second = bench.sent_call(), bench.sent_call()

    bench.server.send({"jsonrpc": "2.0", "id": first.id, **members})
    bench.server.answer(second.id, {"fine": True})

    error = await failure(first)
    assert isinstance(error, RemoteProtocolError)
    assert error.delivery is Delivery.ANSWERED
    assert await second.wait() == {"fine": True}


@pytest.mark.requirement("J-5")
async def test_a_batch_settles_each_of_its_requests() -> None:
    server = ScriptedServer(version="2025-03-26")
    server.add_tool("wait")
    bench = await open_bench(server)
    first, second = bench.sent_call(), bench.sent_call()

    server.send(
        [
            {"jsonrpc": "2.0", "id": second.id, "result": {"n": 2}},
            {"jsonrpc": "2.0", "id": first.id, "result": {"n": 1}},
        ]
    )

    assert (await first.wait(), await second.wait()) == ({"n": 1}, {"n": 2})


# ---------------------------------------------------------------------------------------- guards


@pytest.mark.requirement("I1")
async def test_a_guards_refusal_reaches_the_caller_as_it_is_and_no_byte_leaves() -> None:
    bench = await open_bench()
    refusal = RefusalError()

    pending = bench.call(guard=RecordingGuard(refusal))
    bench.reactor.run()

    assert await failure(pending) is refusal
    assert (pending.delivery, pending.bytes_sent) == (Delivery.NOT_SENT, 0)
    assert frames_of(bench) == []
    assert bench.observer.events == [("request_failed", pending.id)]


@pytest.mark.requirement("I1")
async def test_leave_that_is_taken_back_after_the_request_was_queued_counts() -> None:
    bench = await open_bench()
    guard = RecordingGuard()
    pending = bench.call(guard=guard)

    guard.error = RefusalError()
    bench.reactor.run()

    assert await failure(pending) is guard.error
    assert frames_of(bench) == []


@pytest.mark.requirement("I1")
async def test_leave_that_is_taken_back_while_the_pipe_is_full_counts() -> None:
    bench = await open_bench()
    bench.server.wire.block()
    guard = RecordingGuard()
    pending = bench.call(guard=guard)
    bench.reactor.run()

    guard.error = RefusalError()
    bench.server.wire.unblock()
    bench.reactor.run()

    assert await failure(pending) is guard.error
    assert (pending.bytes_sent, frames_of(bench)) == (0, [])


async def test_a_refused_request_does_not_hold_up_its_neighbours() -> None:
    bench = await open_bench()

    before, refused, after = (
        bench.call(),
        bench.call(guard=RecordingGuard(RefusalError())),
        bench.call(),
    )
    bench.reactor.run()

    assert (before.delivery, after.delivery) == (Delivery.MAYBE_SENT, Delivery.MAYBE_SENT)
    assert refused.settled
    assert len(frames_of(bench)) == 2


async def test_leave_is_spent_once_for_each_frame() -> None:
    bench = await open_bench()
    bench.server.wire.take_at_most(3)
    guard = RecordingGuard()

    bench.call(guard=guard)
    bench.reactor.run()

    assert guard.spent == 1


# -------------------------------------------------------------------------------------- giving up


async def test_a_request_that_ends_before_its_first_byte_never_leaves() -> None:
    bench = await open_bench()
    pending = bench.call()

    pending.fail(RefusalError())
    bench.reactor.run()

    assert pending.drained
    assert (pending.bytes_sent, frames_of(bench)) == (0, [])


@pytest.mark.requirement("I3")
async def test_a_request_that_ends_in_mid_frame_leaves_whole_and_is_drained_then() -> None:
    bench = await open_bench()
    bench.server.wire.block(after_bytes=10)
    pending = bench.sent_call()
    pending.fail(RefusalError())

    assert not pending.drained
    bench.server.wire.unblock()
    await bench.reactor.finish(pending.wait_drained)

    assert pending.drained
    assert pending.bytes_sent == len(frames_of(bench)[0]) + 1


async def test_the_end_of_the_connection_drains_a_request_in_mid_frame() -> None:
    bench = await open_bench()
    bench.server.wire.block(after_bytes=10)
    pending = bench.sent_call()
    pending.fail(RefusalError())

    bench.server.die()

    await bench.reactor.finish(pending.wait_drained)
    assert pending.bytes_sent == 10


async def test_a_request_ends_once() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    first = RefusalError()

    pending.fail(first)
    pending.fail(RefusalError())

    assert await failure(pending) is first
    assert bench.observer.errors == [first]


# ------------------------------------------------------------------------------ the end of it all


async def test_the_death_of_the_server_ends_every_request_with_its_own_delivery() -> None:
    bench = await open_bench()
    sent = bench.sent_call()
    bench.server.wire.block()
    unsent = bench.call()
    bench.reactor.run()

    bench.server.die(exit_status=-9, stderr_tail="s3cr3t")

    errors = [await failure(sent), await failure(unsent)]
    assert [type(error) for error in errors] == [ServerGoneError, ServerGoneError]
    assert isinstance(errors[0], ServerGoneError)
    assert (errors[0].exit_status, errors[0].stderr_tail) == (-9, "s3cr3t")
    assert "s3cr3t" not in str(errors[0])
    assert errors[0] is not errors[1]
    assert [error.delivery for error in errors if isinstance(error, ServerGoneError)] == [
        Delivery.MAYBE_SENT,
        Delivery.NOT_SENT,
    ]


async def test_a_request_after_the_end_fails_at_once_with_what_ended_it() -> None:
    bench = await open_bench()
    bench.sent_call()
    bench.server.die(exit_status=3)

    with pytest.raises(ServerGoneError) as caught:
        bench.call()

    assert (caught.value.exit_status, caught.value.delivery) == (3, Delivery.NOT_SENT)


async def test_closing_ends_every_request() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.session.close()

    assert isinstance(await failure(pending), ServerGoneError)
    assert bench.session.pending_count == 0
    assert bench.reactor.timers == 0


async def test_an_error_of_another_kind_ends_every_request_as_the_cause() -> None:
    bench = await open_bench()
    pending = bench.sent_call()
    cause = OSError("broken")

    bench.server.wire.lose(cause)

    error = await failure(pending)
    assert isinstance(error, ServerGoneError)
    assert error.__cause__ is cause


async def test_a_frame_over_the_bound_ends_the_connection_with_its_own_error() -> None:
    limits = ClientLimits(frame_bytes_max=1_000)
    bench = await open_bench(limits=limits)
    pending = bench.sent_call()

    bench.server.say(b"x" * 1_001)

    error = await failure(pending)
    assert isinstance(error, FrameTooLargeError)
    assert error.delivery is Delivery.MAYBE_SENT


# ------------------------------------------------------------------------------------------ noise


@pytest.mark.requirement("T-3")
async def test_lines_that_are_no_messages_are_counted_and_disturb_no_request() -> None:
    bench = await open_bench()
    pending = bench.sent_call()

    bench.server.say(b"npm WARN deprecated\n\n\xff\xfe\n{}\n[1]\n")
    bench.server.answer(pending.id, {"fine": True})

    assert await pending.wait() == {"fine": True}
    assert bench.session.violations == {
        Violation.NOT_JSON: 2,
        Violation.MALFORMED: 1,
        Violation.BATCH: 1,
    }


@pytest.mark.requirement("T-3")
async def test_one_line_of_noise_over_the_bound_ends_the_connection() -> None:
    bench = await open_bench(limits=ClientLimits(noise_lines_max=3))
    pending = bench.sent_call()
    bench.server.say(b"noise\n" * 3)
    assert not pending.settled

    bench.server.say(b"noise\n")

    assert isinstance(await failure(pending), RemoteProtocolError)
    assert isinstance(bench.session.lost, RemoteProtocolError)


# ----------------------------------------------------------------------------------------- bounds


async def test_one_request_over_the_bound_is_refused() -> None:
    bench = await open_bench(limits=ClientLimits(pending_requests_max=3))
    calls = [bench.sent_call() for _ in range(3)]
    with pytest.raises(LocalProtocolError, match="in flight"):
        bench.call()

    calls[0].fail(RefusalError())

    assert bench.call().id


@pytest.mark.requirement("S-29")
async def test_a_request_one_byte_over_the_bound_is_refused_and_leaves_nothing_behind() -> None:
    limits = ClientLimits(frame_bytes_max=1_000)
    bench = await open_bench(limits=limits)
    envelope = len(b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"a":""}}')
    fits = b'{"a":"%b"}' % (b"x" * (1_000 - envelope))

    assert bench.session.start("tools/call", fits, guard=bench.guard).id == 2
    with pytest.raises(FrameTooLargeError):
        bench.session.start("tools/call", fits.replace(b"x", b"xx", 1), guard=bench.guard)
    assert bench.session.pending_count == 1


async def test_requests_over_the_bound_of_queued_bytes_are_refused() -> None:
    bench = await open_bench(limits=ClientLimits(outbox_bytes_max=250))
    bench.server.wire.block()
    bench.sent_call()
    bench.sent_call()

    with pytest.raises(LocalProtocolError):
        bench.sent_call()


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
async def test_a_deadline_that_is_none_is_refused(seconds: float) -> None:
    bench = await open_bench()

    with pytest.raises(LocalProtocolError, match="deadline"):
        bench.call(seconds=seconds)


@pytest.mark.requirement("L-4")
async def test_what_the_server_has_not_declared_is_not_asked() -> None:
    bench = await open_bench(ScriptedServer(capabilities={}))

    with pytest.raises(LocalProtocolError):
        bench.call()
    bench.reactor.run()

    assert frames_of(bench) == []


@pytest.mark.requirement("L-2")
async def test_before_the_handshake_nothing_can_be_asked() -> None:
    bench = new_bench()

    with pytest.raises(LocalProtocolError):
        bench.call()
