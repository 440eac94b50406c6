"""Seeded schedules of the whole road: nothing begins after it was taken back, and everything ends."""

from __future__ import annotations

import os

import pytest

from orchestrator.testing import run_seeded
from tests.sim.judge import Begun, calls_on_the_wire, violations
from tests.sim.parts import TEMPLATE, Recorded
from tests.sim.world import World

SCHEDULES = int(os.environ.get("REMIT_SIM_SCHEDULES", "2000"))
"""How many seeds are run; more for a soak."""
FIRST = int(os.environ.get("REMIT_SIM_SEED", "0"))
"""Where to begin: the seed that a failure names, to replay it alone with one schedule."""
BLOCK = 100


def run(seed: int) -> World:
    """Run one schedule. Raises AssertionError that names the seed, which replays it."""
    world = World(seed)
    try:
        run_seeded(seed, world.run, before_step=world.count)
        wrong = violations(world.journal)
        assert not wrong, wrong
        assert not world.small
    except BaseException as error:
        replay = f"REMIT_SIM_SEED={seed} REMIT_SIM_SCHEDULES=1 pytest tests/sim"
        message = f"seed {seed}: {error!r}; replay with {replay}"
        raise AssertionError(message) from error
    return world


@pytest.mark.sim
@pytest.mark.requirement("I1")
@pytest.mark.requirement("I5")
@pytest.mark.requirement("I21")  # of one host: no frame begins after the lease of its agent
@pytest.mark.requirement("I23")
@pytest.mark.parametrize("block", range((SCHEDULES + BLOCK - 1) // BLOCK))
def test_no_call_begins_after_its_authority_is_gone_and_every_call_ends(block: int) -> None:
    start = block * BLOCK
    for seed in range(FIRST + start, FIRST + min(start + BLOCK, SCHEDULES)):
        run(seed)


@pytest.mark.sim
@pytest.mark.parametrize("seed", [7, 11, 27, 36])
def test_the_same_seed_gives_the_same_schedule_wherever_its_objects_lie(seed: int) -> None:
    first = run(seed).journal.events
    clutter = [bytearray(size) for size in range(10, 4_000, 3)]
    again = run(seed).journal.events
    del clutter[::2]

    assert first == again == run(seed).journal.events


REACHED = frozenset(
    {
        "agent_cancelled",
        "server_removed",
        "server_disabled",
        "server_enabled",
        "configuration_reloaded",
        "parent_closed",
        "server_disconnected",
        "session_closed",
        "policy_changed",
        "definition_changed",
        "pin_forgotten",
        "logged_in",
        "logged_out",
        "needs_auth",
        "scope_changed",
        "lease_over",
        "forbidden",
        "answer_dropped",
    }
)
"""What has to have happened to somebody in some schedule; the rarest comes once in two hundred."""


@pytest.mark.sim
def test_the_schedules_reach_what_they_are_for() -> None:
    kinds: set[str] = set()
    begun: list[Begun] = []
    receipts = schedules = 0
    while schedules < 2_000 and (schedules < 150 or not kinds >= REACHED):
        world = run(schedules)
        schedules += 1
        receipts += world.receipts
        begun += calls_on_the_wire(world.journal)
        kinds |= {
            str(event.fields.get("reason", event.kind))
            for event in world.journal.events
            if isinstance(event, Recorded)
        }

    assert kinds >= REACHED
    assert len(begun) > 1_000
    assert sum(frame.name.endswith(TEMPLATE) for frame in begun) > 50
    assert receipts > 30
