"""No interleaving of the machine breaks a law, each mistake is found, and the real ledger agrees with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from orchestrator.authority._mint import Permit, Stamp
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.core.errors import AuthorityError, DenyReason
from orchestrator.core.ids import CallId
from tests.model.explore import explore
from tests.model.machine import (
    LAW_OF,
    START,
    Bounds,
    Mistake,
    State,
    Step,
    lapsed,
    steps,
)

SMALL = Bounds(revocations=2, connections=1, retries=0, remote=False)
"""A corner of the full instance: `python -m tests.model.explore` walks through all of it."""
STATES = 100_000
WALKS = 400
LAWS = ("I1", "I2", "I3", "I4", "I5", "I16", "I17", "I18", "I21", "I22", "I26")


def test_every_law_has_a_mistake_that_breaks_it() -> None:
    assert set(LAW_OF) == set(Mistake)
    assert set(LAW_OF.values()) == set(LAWS)


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I2")
@pytest.mark.requirement("I3")
@pytest.mark.requirement("I4")
@pytest.mark.requirement("I5")
@pytest.mark.requirement("I16")
@pytest.mark.requirement("I17")
@pytest.mark.requirement("I18")
@pytest.mark.requirement("I21")
@pytest.mark.requirement("I22")
@pytest.mark.requirement("I26")
def test_no_law_is_broken_in_a_hundred_thousand_states() -> None:
    found = explore(Bounds(), states_max=STATES)

    assert (found.broken, found.way) == ("", ())
    assert found.states >= STATES


def test_a_small_instance_is_walked_through_to_its_end() -> None:
    found = explore(SMALL, states_max=STATES)

    assert (found.whole, found.broken) == (True, "")
    assert found.states > 10_000


@pytest.mark.parametrize("mistake", Mistake)
def test_each_mistake_breaks_its_law(mistake: Mistake) -> None:
    found = explore(Bounds(), mistake, states_max=STATES)

    assert found.broken == LAW_OF[mistake], found.way


@dataclass
class Real:
    """The product's own ledger and permits, moved by the machine's steps."""

    ledger: Ledger = field(default_factory=lambda: Ledger(thread=lambda: 1))
    permits: dict[int, Permit] = field(default_factory=dict[int, Permit])
    child: Cell | None = None

    def __post_init__(self) -> None:
        self.parent = self.ledger.open(CellKind.AGENT, "p")
        self.policy = self.ledger.open(CellKind.POLICY, "policy")
        self.server = self.ledger.open(CellKind.SERVER, "s")
        self.login = self.ledger.open(CellKind.LOGIN, "s")

    def take(self, step: Step) -> None:
        match step.what.split():
            case ["the", "child", "is", "born"]:
                self.child = self.ledger.open(CellKind.AGENT, "p/c", under=self.parent)
            case ["the", "child", "is", "not", "born"]:
                with pytest.raises(AuthorityError):
                    self.ledger.open(CellKind.AGENT, "p/c", under=self.parent)
            case ["revoke", number]:
                cell = (self.parent, self.child, self.server, self.login)[int(number) - 1]
                assert cell is not None
                self.ledger.revoke(cell, DenyReason.AGENT_CANCELLED)
            case ["connected", *_]:
                self.ledger.void(self.server, DenyReason.SERVER_DISCONNECTED)
            case ["another", *_]:
                self.server = self.ledger.open(CellKind.SERVER, "s")
            case ["logged", *_]:
                self.login = self.ledger.open(CellKind.LOGIN, "s")
            case ["frame", number, "is", "minted"]:
                self.permits[int(number)] = self.permit(int(number))
            case _:
                pass

    def permit(self, number: int) -> Permit:
        agent = self.parent if number == 0 else self.child
        assert agent is not None
        stamp = Stamp(
            agent=agent,
            target=self.server,
            link=self.server,
            policy=self.policy,
            login=self.login,
        )
        return Permit(call=CallId("c"), stamp=stamp, deadline=1.0, now=lambda: 0.0)


def agreed(real: Real, state: State) -> bool:
    """Whether the permits of this host's frames say what the machine says."""
    for number in (0, 1):
        frame = state.frames[number]
        if frame.link and (real.permits[number].lapsed() is None) is lapsed(state, number, frame):
            return False
    return True


@pytest.mark.requirement("I1")
@pytest.mark.requirement("I4")
@pytest.mark.requirement("I5")
def test_the_real_ledger_says_of_every_permit_what_the_machine_says() -> None:
    compared = 0
    for seed in range(WALKS):
        random, real, state = Random(seed), Real(), START
        way: list[str] = []
        for _ in range(40):
            ahead = list(steps(state, Bounds(remote=False)))
            if not ahead:
                break
            step = random.choice(ahead)
            way.append(step.what)
            real.take(step)
            state = step.state
            assert agreed(real, state), (seed, way)
            compared += sum(1 for frame in state.frames if frame.link)
    assert compared > 5_000
