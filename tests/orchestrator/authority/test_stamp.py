"""Stamps: every cell a call depends on counts by itself, the earliest cause is told, leases end permits."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

import pytest

from orchestrator.authority._mint import Permit, Stamp
from orchestrator.authority.gate import Gate
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId
from tests.orchestrator.authority.admitting import Shop, found

CAUSES = {
    "agent": DenyReason.AGENT_CANCELLED,
    "login": DenyReason.LOGGED_OUT,
    "target": DenyReason.DEFINITION_CHANGED,
    "link": DenyReason.SERVER_REMOVED,
}
"""In the order in which they are told when several have ended."""


class Apart:
    """Cells of which none stands under another, so that each has to be looked at by itself."""

    def __init__(self, *, lease_until: float = math.inf) -> None:
        self.time = 0.0
        self.ledger = Ledger(thread=lambda: 1)
        self.agent = self.ledger.open(CellKind.AGENT, "a", lease_until=lease_until)
        self.login = self.ledger.open(CellKind.LOGIN, "git")
        self.target = self.ledger.open(CellKind.DEFINITION, "git/log")
        self.link = self.ledger.open(CellKind.SERVER, "git")
        self.policy = self.ledger.open(CellKind.POLICY, "policy")
        self.stamp = Stamp(
            agent=self.agent,
            target=self.target,
            link=self.link,
            policy=self.policy,
            login=self.login,
        )

    def permit(self, *, deadline: float = 100.0) -> Permit:
        return Permit(
            call=CallId("c1"),
            stamp=self.stamp,
            deadline=deadline,
            now=lambda: self.time,
        )

    def end(self, name: str) -> None:
        cell: Cell = getattr(self, name)
        self.ledger.revoke(cell, CAUSES[name])


def reason_of(permit: Permit) -> DenyReason | None:
    try:
        permit.check()
    except AuthorityError as error:
        return error.reason
    return None


@pytest.mark.requirement("I1")
@pytest.mark.parametrize("name", CAUSES)
def test_each_cell_that_ends_by_itself_ends_the_permit_for_its_cause(name: str) -> None:
    world = Apart()
    permit = world.permit()
    assert (world.stamp.lapsed(), world.stamp.ended(), reason_of(permit)) == (None, None, None)

    world.end(name)

    assert reason_of(permit) is CAUSES[name]
    assert permit.lapsed() is CAUSES[name]
    assert world.stamp.lapsed() is CAUSES[name]
    assert world.stamp.ended() is CAUSES[name]


@pytest.mark.parametrize("first", range(len(CAUSES) - 1))
def test_of_several_causes_the_one_nearest_to_the_agent_is_told(first: int) -> None:
    world = Apart()
    nearest, *others = list(CAUSES)[first:]
    for name in (*others, nearest):
        world.end(name)

    assert world.stamp.lapsed() is CAUSES[nearest]
    assert world.stamp.ended() is CAUSES[nearest]


def test_what_only_moves_on_has_not_ended() -> None:
    world = Apart()

    for cell in (world.link, world.login, world.policy):
        world.ledger.void(cell, DenyReason.SCOPE_CHANGED)

    assert world.stamp.lapsed() is DenyReason.SCOPE_CHANGED
    assert world.stamp.ended() is None


def test_a_policy_that_ended_is_told_for_its_cause() -> None:
    world = Apart()

    world.ledger.revoke(world.policy, DenyReason.SESSION_CLOSED)

    assert world.stamp.lapsed() is DenyReason.SESSION_CLOSED


def test_a_permit_says_whether_a_byte_went_out_under_it() -> None:
    permit = Apart().permit()
    assert permit.spent is False

    permit.sent()

    assert permit.spent is True


@pytest.mark.requirement("I21")
def test_the_instant_of_a_lease_is_within_it_and_the_next_is_not() -> None:
    world = Apart(lease_until=5.0)
    permit = world.permit()
    world.time = 5.0
    assert (reason_of(permit), permit.lapsed()) == (None, None)

    world.time = 5.001

    assert reason_of(permit) is DenyReason.LEASE_OVER
    assert permit.lapsed() is DenyReason.LEASE_OVER


def test_a_spent_permit_is_told_before_its_time_is() -> None:
    world = Apart(lease_until=5.0)
    permit = world.permit(deadline=1.0)
    permit.sent()
    world.time = 10.0

    assert reason_of(permit) is DenyReason.PERMIT_SPENT


@pytest.mark.requirement("I21")
def test_no_stamp_is_made_after_the_lease_of_the_agent() -> None:
    shop, time = Shop(), [5.0]
    gate = Gate(policy=shop.policy_cell, now=lambda: time[0])
    snapshot = shop.snapshot(shop.table(), lease_until=5.0)
    capability = found(snapshot.table, "git", "log")
    assert gate.stamp(snapshot, capability).lapsed() is None
    time[0] = 5.001

    with pytest.raises(AuthorityError) as caught:
        gate.stamp(snapshot, capability)

    assert caught.value.reason is DenyReason.LEASE_OVER


def test_a_dead_agent_is_told_before_its_lease_is() -> None:
    shop = Shop()
    gate = Gate(policy=shop.policy_cell, now=lambda: 6.0)
    snapshot = shop.snapshot(shop.table(), lease_until=5.0)
    shop.ledger.revoke(snapshot.cell, DenyReason.AGENT_CANCELLED)

    with pytest.raises(AuthorityError) as caught:
        gate.stamp(snapshot, found(snapshot.table, "git", "log"))

    assert caught.value.reason is DenyReason.AGENT_CANCELLED


@contextmanager
def calling_often(fn: Callable[[], object]) -> Generator[None]:
    """Within the block call `fn` wherever a function begins: as a finaliser may be, in any midst."""

    def note(_frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            fn()

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.requirement("I1")
def test_who_looks_in_the_midst_of_an_act_is_told_of_each_cell_as_it_is_by_then() -> None:
    ledger = Ledger(thread=lambda: 1)
    others = [ledger.open(kind, "x") for kind in (CellKind.SERVER, CellKind.POLICY)]
    # each stands under two: to leave the other is a function that begins in the midst
    agents = [ledger.open(CellKind.AGENT, "a", under=others[1], and_under=others[0])]
    for depth in range(4):
        name, above = f"a/{depth}", agents[-1]
        agents.append(ledger.open(CellKind.AGENT, name, under=above, and_under=others[0]))

    def stamped(agent: Cell) -> Stamp:
        return Stamp(agent=agent, target=others[0], link=others[0], policy=others[1])

    stamps = [stamped(agent) for agent in agents]
    assert [stamp.lapsed() for stamp in stamps] == [None] * 5
    seen: list[int] = []

    def look() -> None:
        # of those that are made in the midst as well: each is looked at again later in it
        stamps.extend([stamped(agent) for agent in agents if agent.reason is None])
        assert [stamp.lapsed() for stamp in stamps] == [stamp.agent.reason for stamp in stamps]
        seen.append(sum(agent.reason is None for agent in agents))

    with calling_often(look):
        ledger.revoke(agents[0], DenyReason.AGENT_CANCELLED)

    assert {0, 1, 2, 3, 4, 5} == set(seen)
    assert None not in [stamp.lapsed() for stamp in stamps]


def test_an_act_that_concerns_others_leaves_a_stamp_and_what_is_taken_back_next_ends_it() -> None:
    world = Apart()
    assert world.stamp.lapsed() is None
    world.ledger.revoke(world.ledger.open(CellKind.AGENT, "b"), DenyReason.AGENT_CLOSED)
    assert world.stamp.lapsed() is None

    world.ledger.void(world.policy, DenyReason.POLICY_CHANGED)

    assert world.stamp.lapsed() is DenyReason.POLICY_CHANGED


@pytest.mark.requirement("I21")
def test_a_child_outlives_no_lease_of_its_parent() -> None:
    ledger = Ledger(thread=lambda: 1)
    parent = ledger.open(CellKind.AGENT, "a", lease_until=5.0)

    assert ledger.open(CellKind.AGENT, "a/b", under=parent, lease_until=9.0).lease_until == 5.0
    assert ledger.open(CellKind.AGENT, "a/c", under=parent, lease_until=3.0).lease_until == 3.0
    assert ledger.open(CellKind.AGENT, "a/d", under=parent).lease_until == 5.0
    assert ledger.open(CellKind.AGENT, "e").lease_until == math.inf


def test_a_cell_says_what_it_is_and_whether_it_lives() -> None:
    ledger = Ledger(thread=lambda: 1)
    cell = ledger.open(CellKind.SERVER, "git")
    assert repr(cell) == "<server 'git' #1 in force>"

    ledger.revoke(cell, DenyReason.SERVER_REMOVED)

    assert repr(cell) == "<server 'git' #1 server_removed>"
