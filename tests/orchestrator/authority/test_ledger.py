"""The ledger: what is dead stays dead, takes its children along, and stops what depends on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.core.errors import AuthorityError, DenyReason


def one_thread() -> int:
    return 1


class Call:
    """A flight that depends on one cell, and notes what it was told."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.generation = cell.generation
        self.told: list[DenyReason] = []

    def lapsed(self) -> DenyReason | None:
        if self.cell.reason is not None:
            return self.cell.reason
        return None if self.cell.generation == self.generation else self.cell.void_reason

    def interrupt(self, reason: DenyReason) -> None:
        self.told.append(reason)


@pytest.mark.requirement("I4")
def test_what_is_opened_again_under_the_same_name_is_another_cell() -> None:
    ledger = Ledger(thread=one_thread)
    old = ledger.open(CellKind.SERVER, "git")
    ledger.revoke(old, DenyReason.SERVER_DISABLED)

    new = ledger.open(CellKind.SERVER, "git")

    assert new.reason is None
    assert old.reason is DenyReason.SERVER_DISABLED
    assert new.incarnation != old.incarnation


@pytest.mark.requirement("I4")
def test_a_second_revocation_does_not_change_the_cause() -> None:
    ledger = Ledger(thread=one_thread)
    cell = ledger.open(CellKind.AGENT, "a")
    ledger.revoke(cell, DenyReason.AGENT_CANCELLED)

    flip = ledger.revoke(cell, DenyReason.AGENT_CLOSED)

    assert cell.reason is DenyReason.AGENT_CANCELLED
    assert flip.cells == 0


@pytest.mark.requirement("I5")
def test_a_revocation_kills_every_descendant_and_tells_it_the_cause() -> None:
    ledger = Ledger(thread=one_thread)
    parent = ledger.open(CellKind.AGENT, "a")
    child = ledger.open(CellKind.AGENT, "a/b", under=parent)
    grandchild = ledger.open(CellKind.AGENT, "a/b/c", under=child)
    other = ledger.open(CellKind.AGENT, "z")

    flip = ledger.revoke(parent, DenyReason.AGENT_CANCELLED)

    assert (child.reason, grandchild.reason) == (DenyReason.PARENT_CLOSED, DenyReason.PARENT_CLOSED)
    assert other.reason is None
    assert flip.cells == 3


@pytest.mark.requirement("I5")
def test_no_child_is_born_under_a_dead_parent() -> None:
    ledger = Ledger(thread=one_thread)
    parent = ledger.open(CellKind.AGENT, "a")
    ledger.revoke(parent, DenyReason.AGENT_CANCELLED)

    with pytest.raises(AuthorityError) as caught:
        ledger.open(CellKind.AGENT, "a/b", under=parent)

    assert caught.value.reason is DenyReason.PARENT_CLOSED


@pytest.mark.requirement("I17")
def test_the_clean_up_of_an_old_incarnation_does_not_touch_its_successor() -> None:
    ledger = Ledger(thread=one_thread)
    session = ledger.open(CellKind.SESSION, "s")
    old = ledger.open(CellKind.SERVER, "git", under=session)
    ledger.revoke(old, DenyReason.SERVER_DISCONNECTED)
    new = ledger.open(CellKind.SERVER, "git", under=session)

    ledger.revoke(old, DenyReason.SERVER_REMOVED)

    assert new.reason is None
    assert new in session.below


def test_what_happens_to_one_server_leaves_calls_to_another_alone() -> None:
    ledger = Ledger(thread=one_thread)
    git, files = (ledger.open(CellKind.SERVER, name) for name in ("git", "files"))
    on_git, on_files = Call(git), Call(files)
    ledger.depart(on_git)
    ledger.depart(on_files)

    flip = ledger.revoke(git, DenyReason.LOGGED_OUT)

    assert flip.flights == (on_git,)
    assert on_git.told == [DenyReason.LOGGED_OUT]
    assert on_files.told == []


def test_voiding_ends_the_permits_in_flight_and_leaves_the_cell_in_force() -> None:
    ledger = Ledger(thread=one_thread)
    policy = ledger.open(CellKind.POLICY, "policy")
    before = Call(policy)
    ledger.depart(before)

    ledger.void(policy, DenyReason.POLICY_CHANGED)

    after = Call(policy)
    assert before.told == [DenyReason.POLICY_CHANGED]
    assert after.lapsed() is None


def test_every_cell_is_dead_before_the_first_flight_is_interrupted() -> None:
    ledger = Ledger(thread=one_thread)
    parent = ledger.open(CellKind.AGENT, "a")
    children = [ledger.open(CellKind.AGENT, f"a/{n}", under=parent) for n in range(3)]
    seen: list[bool] = []

    class Looking(Call):
        def interrupt(self, reason: DenyReason) -> None:
            seen.append(all(child.reason is not None for child in children))

    ledger.depart(Looking(parent))

    ledger.revoke(parent, DenyReason.AGENT_CANCELLED)

    assert seen == [True]


def test_a_flight_that_revokes_more_while_it_is_interrupted_interrupts_each_flight_once() -> None:
    ledger = Ledger(thread=one_thread)
    first, second = (ledger.open(CellKind.AGENT, name) for name in ("a", "b"))

    class Spreading(Call):
        def interrupt(self, reason: DenyReason) -> None:
            super().interrupt(reason)
            ledger.revoke(second, DenyReason.AGENT_CLOSED)

    spreading, other = Spreading(first), Call(second)
    ledger.depart(spreading)
    ledger.depart(other)

    ledger.revoke(first, DenyReason.AGENT_CANCELLED)

    assert spreading.told == [DenyReason.AGENT_CANCELLED]
    assert other.told == [DenyReason.AGENT_CLOSED]


@pytest.mark.requirement("I25")
@pytest.mark.parametrize("change", [Ledger.revoke, Ledger.void])
def test_authority_changes_in_another_thread_are_refused(
    change: Callable[[Ledger, Cell, DenyReason], object],
) -> None:
    threads = iter([1, 1, 2])
    ledger = Ledger(thread=lambda: next(threads))
    cell = ledger.open(CellKind.SESSION, "s")

    with pytest.raises(RuntimeError, match="thread of its own event loop"):
        change(ledger, cell, DenyReason.SESSION_CLOSED)

    assert (cell.reason, cell.generation) == (None, 0)


@pytest.mark.requirement("I4")
def test_each_change_moves_the_generation_by_one_and_says_how_many_cells_died() -> None:
    ledger = Ledger(thread=one_thread)
    server = ledger.open(CellKind.SERVER, "git")
    tool = ledger.open(CellKind.DEFINITION, "git/log", under=server)
    before = (server.generation, tool.generation)

    voided = ledger.void(server, DenyReason.SERVER_DISCONNECTED)
    between = (server.generation, tool.generation)
    revoked = ledger.revoke(server, DenyReason.SERVER_REMOVED)

    assert (before, between, server.generation, tool.generation) == ((0, 0), (1, 0), 2, 1)
    assert (voided.cells, revoked.cells) == (0, 2)


def test_each_act_that_changes_a_cell_is_another_turn_for_all_cells() -> None:
    ledger = Ledger(thread=lambda: 1)
    login = ledger.open(CellKind.LOGIN, "git")
    other = ledger.open(CellKind.SERVER, "files")
    assert other.turn.number == 0

    ledger.void(login, DenyReason.SCOPE_CHANGED)
    assert other.turn.number == 1

    ledger.revoke(login, DenyReason.LOGGED_OUT)
    assert other.turn.number == 2


def test_what_is_dead_is_voided_no_more_and_tells_its_first_cause() -> None:
    ledger = Ledger(thread=one_thread)
    login = ledger.open(CellKind.LOGIN, "git")
    ledger.revoke(login, DenyReason.LOGGED_OUT)
    generation = login.generation

    flip = ledger.void(login, DenyReason.SCOPE_CHANGED)

    assert (login.generation, login.reason) == (generation, DenyReason.LOGGED_OUT)
    assert flip.flights == ()


def test_what_is_over_is_interrupted_no_more() -> None:
    ledger = Ledger(thread=one_thread)
    cell = ledger.open(CellKind.AGENT, "a")
    over, under_way = Call(cell), Call(cell)
    ledger.depart(over)
    ledger.depart(under_way)
    ledger.arrive(over)
    assert ledger.flights == 1

    flip = ledger.revoke(cell, DenyReason.AGENT_CANCELLED)

    assert (over.told, under_way.told) == ([], [DenyReason.AGENT_CANCELLED])
    assert ledger.flights == 0
    assert flip.record == {
        "what": "agent",
        "name": "a",
        "incarnation": cell.incarnation,
        "reason": "agent_cancelled",
        "cells": 1,
        "stopped": 1,
    }


def test_a_long_session_forgets_what_is_dead() -> None:
    ledger = Ledger(thread=one_thread)
    session = ledger.open(CellKind.SESSION, "s")

    for number in range(100):
        agent = ledger.open(CellKind.AGENT, f"a{number}", under=session)
        ledger.revoke(agent, DenyReason.AGENT_CLOSED)

    assert session.below == {}


@pytest.mark.requirement("I4", "S-40")
@pytest.mark.parametrize("first", ["server", "agent"])
def test_what_stands_under_two_dies_with_either_in_the_same_step_and_leaves_neither_a_trace(
    first: str,
) -> None:
    ledger = Ledger(thread=one_thread)
    above = {
        "server": ledger.open(CellKind.SERVER, "git"),
        "agent": ledger.open(CellKind.AGENT, "one"),
    }
    own = ledger.open(CellKind.SERVER, "own", under=above["server"], and_under=above["agent"])
    below = ledger.open(CellKind.DEFINITION, "own/log", under=own)
    call = Call(below)
    ledger.depart(call)

    flip = ledger.revoke(above[first], DenyReason.SERVER_REMOVED)

    assert (own.reason, below.reason) == (DenyReason.SERVER_REMOVED, DenyReason.SERVER_REMOVED)
    assert flip.flights == (call,)
    assert above["server"].below == above["agent"].below == {}
    other = above["agent" if first == "server" else "server"]
    assert other.reason is None


@pytest.mark.requirement("I4")
@pytest.mark.parametrize("dead", [0, 1])
def test_nothing_is_born_under_two_of_which_one_is_dead(dead: int) -> None:
    ledger = Ledger(thread=one_thread)
    above = ledger.open(CellKind.SERVER, "git"), ledger.open(CellKind.AGENT, "one")
    ledger.revoke(above[dead], DenyReason.SERVER_REMOVED)

    with pytest.raises(AuthorityError):
        ledger.open(CellKind.SERVER, "own", under=above[0], and_under=above[1])

    assert above[1 - dead].below == {}


def test_what_stands_under_two_outlives_no_lease_of_either() -> None:
    ledger = Ledger(thread=one_thread)
    long = ledger.open(CellKind.SERVER, "git", lease_until=9.0)
    short = ledger.open(CellKind.AGENT, "one", lease_until=5.0)

    assert ledger.open(CellKind.SERVER, "a", under=long, and_under=short).lease_until == 5.0
    assert ledger.open(CellKind.SERVER, "b", under=short, and_under=long).lease_until == 5.0


class Counting(Call):
    """A call that counts how often somebody looked whether it may go on."""

    def __init__(self, cell: Cell) -> None:
        super().__init__(cell)
        self.looks = 0

    def lapsed(self) -> DenyReason | None:
        self.looks += 1
        return super().lapsed()


def test_the_end_of_an_agent_is_held_against_its_own_and_against_what_is_nobodys_alone() -> None:
    ledger = Ledger(thread=one_thread)
    one, other = (ledger.open(CellKind.AGENT, name) for name in ("one", "other"))
    below = ledger.open(CellKind.AGENT, "one/child", under=one)
    mine, childs, theirs, nobodys = (Counting(cell) for cell in (one, below, other, other))
    for flight, agent in ((mine, one), (childs, below), (theirs, other), (nobodys, None)):
        ledger.depart(flight, agent)
    over = Counting(one)
    ledger.depart(over, one)
    ledger.arrive(over)
    ledger.arrive(over)  # once more is nothing

    flip = ledger.revoke(one, DenyReason.AGENT_CLOSED)

    assert set(flip.flights) == {mine, childs}
    assert over.looks == 0
    assert (theirs.looks, nobodys.looks, ledger.flights) == (0, 1, 2)


@pytest.mark.requirement("I4")
@pytest.mark.parametrize("kind", [kind for kind in CellKind if kind is not CellKind.AGENT])
def test_the_end_of_anything_else_is_held_against_everything(kind: CellKind) -> None:
    ledger = Ledger(thread=one_thread)
    agent, shared = ledger.open(CellKind.AGENT, "one"), ledger.open(kind, "shared")
    on_both = Call(shared)
    ledger.depart(on_both, agent)

    assert ledger.revoke(shared, DenyReason.SERVER_REMOVED).flights == (on_both,)


@pytest.mark.requirement("I4")
def test_the_end_of_an_agent_with_a_connection_of_its_own_is_held_against_everything() -> None:
    ledger = Ledger(thread=one_thread)
    agent, other = (ledger.open(CellKind.AGENT, name) for name in ("one", "other"))
    own = ledger.open(
        CellKind.SERVER, "own", under=ledger.open(CellKind.SERVER, "git"), and_under=agent
    )
    astray = Call(own)
    ledger.depart(astray, other)

    assert ledger.revoke(agent, DenyReason.AGENT_CLOSED).flights == (astray,)


class LedgerMachine(RuleBasedStateMachine):
    """The ledger beside a reference of a few lines: a set of dead names and each one's parent."""

    cells = Bundle("cells")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(thread=one_thread)
        self.parents: dict[Cell, Cell | None] = {}
        self.dead: set[Cell] = set()

    @rule(target=cells)
    def open_root(self) -> Cell:
        cell = self.ledger.open(CellKind.AGENT, "root")
        self.parents[cell] = None
        return cell

    @rule(target=cells, parent=cells)
    def open_child(self, parent: Cell) -> Cell:
        if parent in self.dead:
            with pytest.raises(AuthorityError):
                self.ledger.open(CellKind.AGENT, "child", under=parent)
            return parent
        cell = self.ledger.open(CellKind.AGENT, "child", under=parent)
        self.parents[cell] = parent
        return cell

    @rule(cell=cells)
    def revoke(self, cell: Cell) -> None:
        self.ledger.revoke(cell, DenyReason.AGENT_CANCELLED)
        self.dead |= {other for other in self.parents if cell in self.lineage(other)}

    def lineage(self, cell: Cell | None) -> list[Cell]:
        line: list[Cell] = []
        while cell is not None:
            line.append(cell)
            cell = self.parents[cell]
        return line

    @invariant()
    def the_dead_are_the_same(self) -> None:
        assert {cell for cell in self.parents if cell.reason is not None} == self.dead


TestLedgerAgainstReference = LedgerMachine.TestCase
TestLedgerAgainstReference.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None
)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=20))
def test_incarnations_are_never_used_again(names: list[int]) -> None:
    ledger = Ledger(thread=one_thread)

    cells = [ledger.open(CellKind.SERVER, str(name)) for name in names]

    assert len({cell.incarnation for cell in cells}) == len(cells)
