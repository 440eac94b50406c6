"""When agents are out of time: each at its own, by one timer; who has ended is not told."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from mcp_client.testing import ManualReactor
from orchestrator.sessions.deadlines import Deadlines


@dataclass(eq=False)
class Clocked:
    """A worker that notes when it was told that its time is over."""

    reactor: ManualReactor
    told: list[float] = field(default_factory=list[float])

    def run_out(self) -> None:
        self.told.append(self.reactor.now() - 1_000.0)


@pytest.fixture
def reactor() -> ManualReactor:
    return ManualReactor()


@pytest.fixture
def deadlines(reactor: ManualReactor) -> Deadlines:
    made = Deadlines()
    made.begin(reactor)
    return made


def test_each_worker_is_told_when_its_own_time_is_over(
    deadlines: Deadlines, reactor: ManualReactor
) -> None:
    long, short, later = (Clocked(reactor) for _ in range(3))
    deadlines.watch(long, 10.0)
    deadlines.watch(short, 4.0)
    reactor.advance(1.0)
    deadlines.watch(later, 4.0)

    for _ in range(20):
        reactor.advance(1.0)

    assert (short.told, later.told, long.told) == ([4.0], [5.0], [10.0])


def test_who_has_ended_is_not_told_and_keeps_no_other_from_being_told(
    deadlines: Deadlines, reactor: ManualReactor
) -> None:
    ended, other = Clocked(reactor), Clocked(reactor)
    deadlines.watch(ended, 3.0)
    reactor.advance(1.0)
    deadlines.watch(other, 3.0)
    deadlines.forget(ended, 3.0)

    for _ in range(10):
        reactor.advance(1.0)

    assert (ended.told, other.told) == ([], [4.0])


def test_who_begins_after_all_others_have_ended_is_told(
    deadlines: Deadlines, reactor: ManualReactor
) -> None:
    first, second = Clocked(reactor), Clocked(reactor)
    deadlines.watch(first, 2.0)
    deadlines.forget(first, 2.0)
    reactor.advance(5.0)
    deadlines.watch(second, 1.0)

    reactor.advance(1.0)

    assert second.told == [6.0]


def test_nobody_is_watched_before_the_session_begins_nor_told_after_its_end(
    deadlines: Deadlines, reactor: ManualReactor
) -> None:
    worker = Clocked(reactor)
    assert not Deadlines().watch(worker, 1.0)
    assert deadlines.watch(worker, 1.0)

    deadlines.end()
    reactor.advance(2.0)

    assert worker.told == []
    deadlines.forget(worker, 1.0)
