"""What the four things cost that the guard is named for: `python benchmarks/guard_steps.py`.

They are the look into the snapshot, the verdict of the policy, the ledger (a stamp, the admission, the
checks before and at the byte, the look when the answer is there) and the deadline, as the broker does
them, in this order. All else that a guarded call has beyond the client (its arguments in canonical
bytes and their digest, its records, the origin of its result) is in the rows of guarded_call.py. Also
how long it takes until all agents of a large tree are dead.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import anyio
from sessions import POLICY, echo_view

import policies
from orchestrator import Call
from orchestrator.authority.gate import Gate
from orchestrator.authority.history import PolicyHistory
from orchestrator.authority.ledger import CellKind, Ledger
from orchestrator.broker import AgentView
from orchestrator.broker.deciding import Deciding
from orchestrator.broker.wish import Wish
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import CallId
from orchestrator.core.limits import OrchestratorLimits

ECHO: Final = Path(__file__).with_name("echo_server.py")
CALLS: Final = 20_000
GOAL_US: Final = 4.0
AGENTS: Final = 10_000
FLIP_GOAL_MS: Final = 2.0


def steps(view: AgentView) -> Callable[[], None]:
    """Return what does the four things once, for a call that `view` may make."""
    call = Call("echo", "echo", {"text": "hello"})
    snapshot = view.snapshot
    assert snapshot is not None
    table = snapshot.table
    now = time.monotonic
    gate = Gate(policy=Ledger(thread=lambda: 0).open(CellKind.POLICY, "policy"), now=now)
    deciding = Deciding(PolicyHistory(table.policy), time.time)
    found = table.find_call(call)
    assert found is not None
    wish = Wish(CallId("1"), view, call, found.ref)
    wish.take_arguments(OrchestratorLimits(), lambda _: "")
    seconds = OrchestratorLimits().call_seconds_max

    def once() -> None:
        capability = table.find_call(call)
        assert capability is not None
        stamp = gate.stamp(snapshot, capability)
        decision = deciding.decide(wish, snapshot, capability)
        permit = gate.admit(
            call=wish.id,
            capability=capability,
            stamp=stamp,
            decision=decision,
            approval=None,
            params=wish.params,
            standing=None if decision is capability.constant else view.standing,
            deadline=now() + seconds,
        )
        permit.check()
        permit.check()
        permit.sent()
        permit.lapsed()

    return once


async def measured(*, conditional: bool, rounds: int) -> float:
    """Return the CPU time of the four things, in microseconds a call: the median of the rounds."""
    async with echo_view([sys.executable, str(ECHO)], audit=None, conditional=conditional) as view:
        once = steps(view)
        figures: list[float] = []
        for _ in range(rounds):
            began = time.process_time()
            for _ in range(CALLS):
                once()
            figures.append((time.process_time() - began) / CALLS * 1e6)
        return median(figures)


def flip(rounds: int) -> float:
    """Return the CPU time in which 10,000 agents of one tree are dead, in milliseconds: the median."""
    figures: list[float] = []
    for _ in range(rounds):
        ledger = Ledger(thread=lambda: 0)
        cells = [ledger.open(CellKind.AGENT, "root")]
        for number in range(AGENTS - 1):
            cells.append(ledger.open(CellKind.AGENT, f"a{number}", under=cells[number // 10]))
        began = time.process_time()
        ledger.revoke(cells[0], DenyReason.AGENT_CANCELLED)
        figures.append((time.process_time() - began) * 1e3)
        assert cells[-1].reason is DenyReason.PARENT_CLOSED
    return median(figures)


def main() -> None:
    """Print the figures beside the goals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    rules = len(policies.load([policies.Source("bench.policy", POLICY)]).rules)
    print(
        f"snapshot, verdict, ledger, deadline: us of CPU a call, {rules} rules (goal {GOAL_US:g})"
    )
    for name, conditional in (("permit without condition", False), ("with one", True)):
        found = anyio.run(lambda: measured(conditional=conditional, rounds=rounds))  # noqa: B023
        print(f"  {name:26} {found:6.2f}  {'met' if found <= GOAL_US else 'MISSED'}")
    took = flip(rounds)
    told = "met" if took <= FLIP_GOAL_MS else "MISSED"
    print(f"flip of {AGENTS:,} agents, ms of CPU (goal {FLIP_GOAL_MS:g})")
    print(f"  {'one tree':26} {took:6.2f}  {told}")


if __name__ == "__main__":
    main()
