"""The outbox: what leaves, in which order, and what every refusal and every wait does to it."""

from __future__ import annotations

import errno
import gc
from collections.abc import Callable

import pytest
from hypothesis import given, strategies

from mcp_client.ports import SILENT
from mcp_client.protocol.errors import Delivery, FrameTooLargeError, LocalProtocolError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.protocol.outbox import FlushState, Outbox
from tests.mcp_client.garbage import Cycle


class RevokedError(Exception):
    pass


class Guard:
    def __init__(self, on_check: Callable[[], object] = lambda: None) -> None:
        self.revoked = False
        self.checks = 0
        self.spent = 0
        self.on_check = on_check

    def check(self) -> None:
        self.checks += 1
        self.on_check()
        if self.revoked:
            raise RevokedError

    def sent(self) -> None:
        self.spent += 1


class Ticket:
    def __init__(self) -> None:
        self.delivery = Delivery.NOT_SENT
        self.bytes_sent = 0
        self.settled = False
        self.ends: list[str] = []
        self.error: Exception | None = None

    def refused(self, error: Exception) -> None:
        self.ends.append("refused")
        self.error = error

    def written(self) -> None:
        self.ends.append("written")

    def lost(self) -> None:
        self.ends.append("lost")


class Pipe:
    """Takes what it has room for."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.writes: list[bytes] = []

    @property
    def received(self) -> bytes:
        return b"".join(self.writes)

    def write(self, view: memoryview) -> int:
        if not self.room:
            raise BlockingIOError
        taken = min(self.room, len(view))
        self.room -= taken
        self.writes.append(bytes(view[:taken]))
        return taken


class Record:
    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self.error = error

    def flushing(self) -> None:
        self.asked += 1
        if self.error is not None:
            raise self.error


def push(outbox: Outbox, frame: bytes, guard: Guard | None = None) -> tuple[Guard, Ticket]:
    guard, ticket = guard or Guard(), Ticket()
    outbox.push(frame, guard, ticket)
    return guard, ticket


def an_outbox(**bounds: int) -> Outbox:
    return Outbox(ClientLimits(**bounds), SILENT)


def test_frames_go_out_in_order_in_one_write() -> None:
    outbox, pipe = an_outbox(), Pipe()
    push(outbox, b"one")
    push(outbox, b"two")
    state = outbox.flush(pipe.write)
    assert (state, pipe.writes) == (FlushState.IDLE, [b"one\ntwo\n"])


def test_a_frame_that_went_out_has_spent_its_leave_once_and_is_written() -> None:
    outbox, pipe = an_outbox(), Pipe()
    guard, ticket = push(outbox, b"one")
    outbox.flush(pipe.write)
    assert (guard.spent, ticket.bytes_sent, ticket.ends) == (1, 4, ["written"])
    assert ticket.delivery is Delivery.MAYBE_SENT


def test_one_write_has_at_most_the_bound_of_a_flush() -> None:
    outbox, pipe = an_outbox(flush_bytes_max=8), Pipe()
    for _ in range(3):
        push(outbox, b"abc")
    outbox.flush(pipe.write)
    assert pipe.writes == [b"abc\nabc\n", b"abc\n"]


def test_a_frame_larger_than_a_flush_goes_alone() -> None:
    outbox, pipe = an_outbox(flush_bytes_max=4), Pipe()
    push(outbox, b"ab")
    push(outbox, b"c" * 10)
    push(outbox, b"d")
    outbox.flush(pipe.write)
    assert pipe.writes == [b"ab\n", b"c" * 10 + b"\n", b"d\n"]


def test_a_frame_of_just_the_bound_is_queued() -> None:
    outbox, pipe = an_outbox(frame_bytes_max=3), Pipe()
    push(outbox, b"abc")
    outbox.flush(pipe.write)
    assert pipe.received == b"abc\n"


def test_a_frame_one_past_the_bound_is_refused_and_not_queued() -> None:
    outbox = an_outbox(frame_bytes_max=3)
    with pytest.raises(FrameTooLargeError):
        push(outbox, b"abcd")
    assert outbox.queued_bytes == 0


def test_one_byte_more_than_the_outbox_holds_is_refused_and_not_queued() -> None:
    outbox = an_outbox(outbox_bytes_max=8)
    push(outbox, b"abc")
    push(outbox, b"abc")
    with pytest.raises(LocalProtocolError):
        push(outbox, b"")
    assert outbox.queued_bytes == 8


@pytest.mark.requirement("T-1")
def test_a_frame_with_a_newline_in_it_is_refused() -> None:
    outbox = an_outbox()
    with pytest.raises(LocalProtocolError):
        push(outbox, b"a\nb")
    assert outbox.queued_bytes == 0


def test_what_nobody_waits_for_any_more_is_dropped() -> None:
    outbox, pipe = an_outbox(), Pipe()
    _, ticket = push(outbox, b"one")
    push(outbox, b"two")
    ticket.settled = True
    outbox.flush(pipe.write)
    assert (pipe.received, ticket.ends, outbox.queued_bytes) == (b"two\n", [], 0)


def test_what_ends_with_the_refusal_of_another_is_dropped_with_it() -> None:
    class Sibling(Ticket):
        def refused(self, error: Exception) -> None:
            other.settled = True

    outbox, pipe = an_outbox(), Pipe()
    guard = Guard()
    guard.revoked = True
    outbox.push(b"one", guard, Sibling())
    _, other = push(outbox, b"two")
    push(outbox, b"three")
    outbox.flush(pipe.write)
    assert (pipe.received, outbox.queued_bytes) == (b"three\n", 0)


@pytest.mark.requirement("I1")
def test_of_a_refused_frame_no_byte_leaves_and_the_others_go() -> None:
    outbox, pipe = an_outbox(), Pipe()
    push(outbox, b"one")
    guard, ticket = push(outbox, b"two")
    push(outbox, b"three")
    guard.revoked = True
    outbox.flush(pipe.write)
    assert pipe.received == b"one\nthree\n"
    assert (ticket.ends, ticket.delivery, guard.spent) == (["refused"], Delivery.NOT_SENT, 0)
    assert isinstance(ticket.error, RevokedError)


def test_when_a_whole_flush_is_refused_the_next_one_follows_at_once() -> None:
    outbox, pipe = an_outbox(flush_bytes_max=4), Pipe()
    guard, _ = push(outbox, b"one")
    push(outbox, b"two")
    guard.revoked = True
    state = outbox.flush(pipe.write)
    assert (state, pipe.received) == (FlushState.IDLE, b"two\n")


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("itself", [True, False], ids=["refuses itself", "says yes itself"])
@pytest.mark.parametrize("other", [0, 2], ids=["an earlier frame", "a later frame"])
def test_a_check_that_takes_back_another_frame_of_the_same_flush_stops_it(
    itself: bool, other: int
) -> None:
    outbox, pipe = an_outbox(), Pipe()
    guards = [Guard(), Guard(), Guard()]

    def take_back() -> None:
        guards[other].revoked = True
        guards[1].revoked = itself

    guards[1].on_check = take_back
    for number, guard in enumerate(guards):
        push(outbox, b"%d" % number, guard)
    outbox.flush(pipe.write)
    expected = {0, 1, 2} - {other} - ({1} if itself else set[int]())
    assert pipe.received == b"".join(b"%d\n" % number for number in sorted(expected))


@pytest.mark.requirement("I1")
@pytest.mark.usefixtures("collector")
def test_a_finaliser_run_inside_a_check_stops_an_earlier_frame() -> None:
    outbox, pipe = an_outbox(), Pipe()
    first, _ = push(outbox, b"first")
    garbage = [Cycle(lambda: setattr(first, "revoked", True))]

    def collect() -> None:
        garbage.clear()
        gc.collect()

    push(outbox, b"second", Guard(on_check=collect))
    outbox.flush(pipe.write)
    assert pipe.received == b"second\n"


@pytest.mark.requirement("I1")
@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("frames", [1, 2, 3])
def test_no_collection_can_come_between_the_last_check_and_the_write(frames: int) -> None:
    outbox = an_outbox()
    guards = [Guard() for _ in range(frames)]
    garbage = [Cycle(lambda: setattr(guards[0], "revoked", True))]
    written_after_revocation: list[bool] = []

    def arm() -> None:
        garbage.clear()
        gc.set_threshold(1)
        gc.enable()  # from here the next container made anywhere collects

    def write(view: memoryview) -> int:
        written_after_revocation.append(guards[0].revoked)
        return len(view)

    guards[-1].on_check = arm
    for guard in guards:
        push(outbox, b"frame", guard)
    outbox.flush(write)
    assert written_after_revocation[:1] == [False] or guards[0].spent == 0


def test_a_frame_for_which_there_is_no_room_counts_as_not_sent() -> None:
    outbox, pipe = an_outbox(), Pipe(room=0)
    guard, ticket = push(outbox, b"one")
    state = outbox.flush(pipe.write)
    assert (state, ticket.delivery, guard.spent) == (FlushState.BLOCKED, Delivery.NOT_SENT, 0)


def test_a_write_that_takes_nothing_counts_as_no_room() -> None:
    outbox = an_outbox()
    _, ticket = push(outbox, b"one")
    state = outbox.flush(lambda _: 0)
    assert (state, ticket.delivery, ticket.ends) == (FlushState.BLOCKED, Delivery.NOT_SENT, [])


@pytest.mark.requirement("I1")
def test_a_frame_that_waited_for_room_is_checked_again() -> None:
    outbox, pipe = an_outbox(), Pipe(room=0)
    guard, ticket = push(outbox, b"one")
    outbox.flush(pipe.write)
    guard.revoked, pipe.room = True, 100
    outbox.flush(pipe.write)
    assert (pipe.received, ticket.ends) == (b"", ["refused"])


@pytest.mark.requirement("I3")
def test_a_frame_that_was_begun_is_finished_whatever_its_guard_says_by_then() -> None:
    outbox, pipe = an_outbox(), Pipe(room=2)
    guard, ticket = push(outbox, b"abcdef")
    outbox.flush(pipe.write)
    guard.revoked, pipe.room = True, 100
    outbox.flush(pipe.write)
    assert (pipe.received, ticket.ends, ticket.bytes_sent) == (b"abcdef\n", ["written"], 7)
    assert guard.spent == 1


def test_a_write_that_takes_no_more_of_a_frame_that_was_begun_waits_for_room() -> None:
    outbox, pipe = an_outbox(), Pipe(room=2)
    _, ticket = push(outbox, b"abcdef")
    outbox.flush(pipe.write)
    takes = iter([0])

    state = outbox.flush(lambda _: next(takes))

    assert (state, ticket.ends, ticket.bytes_sent) == (FlushState.BLOCKED, [], 2)


@pytest.mark.requirement("I1")
def test_a_frame_behind_one_that_was_begun_is_checked_again_before_its_own_first_byte() -> None:
    outbox, pipe = an_outbox(), Pipe(room=2)
    push(outbox, b"abc")
    guard, ticket = push(outbox, b"def")
    outbox.flush(pipe.write)
    assert ticket.delivery is Delivery.NOT_SENT
    guard.revoked, pipe.room = True, 100
    outbox.flush(pipe.write)
    assert (pipe.received, ticket.ends) == (b"abc\n", ["refused"])


def test_a_write_that_ends_between_two_frames_begins_neither_half() -> None:
    outbox, pipe = an_outbox(), Pipe(room=4)
    _, first = push(outbox, b"abc")
    guard, second = push(outbox, b"def")
    outbox.flush(pipe.write)
    assert (first.ends, second.ends, second.delivery) == (["written"], [], Delivery.NOT_SENT)
    assert (guard.spent, outbox.mid_frame) == (0, False)


@pytest.mark.requirement("I23")
def test_the_record_is_asked_for_once_for_each_frame_however_often_it_waits() -> None:
    record = Record()
    outbox, pipe = Outbox(ClientLimits(), record), Pipe(room=0)
    push(outbox, b"one")
    outbox.flush(pipe.write)
    outbox.flush(pipe.write)
    assert record.asked == 1
    push(outbox, b"two")
    pipe.room = 100
    outbox.flush(pipe.write)
    assert (record.asked, pipe.writes) == (2, [b"one\ntwo\n"])


@pytest.mark.requirement("I23")
def test_frames_that_could_not_be_recorded_are_refused_unsent() -> None:
    full = OSError(errno.ENOSPC, "disk full")
    outbox, pipe = Outbox(ClientLimits(), Record(full)), Pipe()
    _, one = push(outbox, b"one")
    _, two = push(outbox, b"two")
    state = outbox.flush(pipe.write)
    assert (state, pipe.writes, one.error, two.error) == (FlushState.IDLE, [], full, full)
    assert (one.delivery, outbox.queued_bytes) == (Delivery.NOT_SENT, 0)


@pytest.mark.requirement("I23")
def test_the_record_is_asked_for_before_any_check() -> None:
    order: list[str] = []

    class Recorder:
        def flushing(self) -> None:
            order.append("record")

    outbox = Outbox(ClientLimits(), Recorder())
    push(outbox, b"one", Guard(on_check=lambda: order.append("check")))
    outbox.flush(Pipe().write)
    assert order == ["record", "check"]


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ECONNRESET])
def test_a_pipe_that_was_broken_before_the_first_byte_means_not_sent(number: int) -> None:
    def broken(_view: memoryview) -> int:
        raise OSError(number, "broken")

    outbox = an_outbox()
    guard, ticket = push(outbox, b"one")
    with pytest.raises(OSError, match="broken"):
        outbox.flush(broken)
    assert (ticket.delivery, guard.spent) == (Delivery.NOT_SENT, 0)


def test_an_error_that_says_nothing_of_the_bytes_leaves_maybe_sent() -> None:
    def broken(_view: memoryview) -> int:
        raise OSError(errno.EIO, "broken")

    outbox = an_outbox()
    _, ticket = push(outbox, b"one")
    with pytest.raises(OSError, match="broken"):
        outbox.flush(broken)
    assert ticket.delivery is Delivery.MAYBE_SENT


def test_a_pipe_that_breaks_within_a_frame_leaves_maybe_sent() -> None:
    def broken(_view: memoryview) -> int:
        raise BrokenPipeError(errno.EPIPE, "broken")

    outbox = an_outbox()
    _, ticket = push(outbox, b"abcdef")
    outbox.flush(Pipe(room=2).write)
    with pytest.raises(BrokenPipeError):
        outbox.flush(broken)
    assert (ticket.delivery, ticket.bytes_sent) == (Delivery.MAYBE_SENT, 2)


def test_after_a_write_of_unknown_outcome_nothing_is_written_again() -> None:
    def interrupted(_view: memoryview) -> int:
        raise KeyboardInterrupt

    outbox, pipe = an_outbox(), Pipe()
    push(outbox, b"one")
    with pytest.raises(KeyboardInterrupt):
        outbox.flush(interrupted)
    with pytest.raises(RuntimeError):
        outbox.flush(pipe.write)
    assert pipe.writes == []


def test_the_end_of_the_connection_loses_the_begun_and_the_waiting_frames() -> None:
    outbox = an_outbox()
    _, begun = push(outbox, b"abcdef")
    _, waiting = push(outbox, b"def")
    outbox.flush(Pipe(room=2).write)
    outbox.fail_all()
    assert (begun.ends, waiting.ends, outbox.queued_bytes) == (["lost"], ["lost"], 0)
    assert (begun.delivery, waiting.delivery) == (Delivery.MAYBE_SENT, Delivery.NOT_SENT)


@pytest.mark.requirement("I2")
def test_after_the_end_of_the_connection_no_byte_of_a_begun_frame_leaves() -> None:
    outbox, pipe = an_outbox(), Pipe(room=2)
    push(outbox, b"abcdef")
    outbox.flush(pipe.write)
    outbox.fail_all()
    pipe.room = 100
    outbox.flush(pipe.write)
    assert pipe.received == b"ab"


def test_a_check_that_ends_the_connection_lets_no_byte_leave() -> None:
    outbox, pipe = an_outbox(), Pipe()
    _, other = push(outbox, b"one")
    _, ticket = push(outbox, b"two", Guard(on_check=outbox.fail_all))
    outbox.flush(pipe.write)
    assert (pipe.writes, other.ends, ticket.ends) == ([], ["lost"], ["lost"])


@given(
    frames=strategies.lists(
        strategies.tuples(strategies.binary(max_size=40), strategies.booleans()), max_size=12
    ),
    rooms=strategies.lists(strategies.integers(min_value=0, max_value=60), max_size=20),
    bound=strategies.integers(min_value=1, max_value=50),
)
def test_whatever_the_cuts_the_peer_gets_the_permitted_frames_whole_and_in_order(
    frames: list[tuple[bytes, bool]], rooms: list[int], bound: int
) -> None:
    outbox, pipe = an_outbox(flush_bytes_max=bound), Pipe()
    expected = b""
    for raw, revoked in frames:
        frame = raw.replace(b"\n", b"")
        guard, _ = push(outbox, frame)
        guard.revoked = revoked
        expected += b"" if revoked else frame + b"\n"
    for room in rooms:
        pipe.room = room
        outbox.flush(pipe.write)
    pipe.room = 1 << 20
    assert outbox.flush(pipe.write) is FlushState.IDLE
    assert (pipe.received, outbox.queued_bytes) == (expected, 0)
