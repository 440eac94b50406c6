"""Strikes each of twelve flows at every turn of the loop, on both backends: cancelled, failed, and both.

    python -m tests.torture.run [--flow NAME] [--backend asyncio|trio]

Exit code 1 if anything hangs, leaves something behind, or fails with an error that is not ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import anyio

from tests.servers.oauth.running import oauth_world
from tests.torture.flows import FLOWS, WITH_SOCKETS
from tests.torture.striking import Blow, Flow, How, Ran, strike

__all__ = ["Score", "torture"]

TURNS_MAX = 200
"""Turns of the loop in one flow; the longest has a fraction of it."""


@dataclass
class Score:
    """How many points there were, and what was wrong at which."""

    points: int = 0
    wrong: list[str] = field(default_factory=list[str])

    def note(self, ran: Ran, where: str) -> bool:
        """Count a strike; False if the flow was over before it fell."""
        if ran.wrong:
            self.wrong.append(f"{where}: {ran.wrong}")
        self.points += ran.reached
        return ran.reached


async def at_every_turn(flow: Flow, score: Score, stride: int) -> None:
    """Cancel a flow, and let it fail, at every turn; and the other at every turn after that."""
    await strike(flow)  # what is made once is made now
    for first, second in ((How.CANCEL, How.FAIL), (How.FAIL, How.CANCEL)):
        for turn in range(0, TURNS_MAX, stride):
            where = f"{first.value} at {turn}"
            if not score.note(await strike(flow, Blow(first, turn)), where):
                break
            for later in range(1, TURNS_MAX, stride):
                ran = await strike(flow, Blow(first, turn), Blow(second, later))
                if not score.note(ran, f"{where}, {second.value} {later} later"):
                    break


async def at_every_await(flow: Flow, score: Score, stride: int) -> None:
    """The same where turns are not to be counted: while bytes travel there is any number of them."""
    await strike(flow)
    for how in How:
        for at in range(1, TURNS_MAX, stride):
            for late in (0, 1, 3):
                ran = await strike(flow, Blow(how, late), at=at)
                reached = score.note(ran, f"{how.value} at await {at}, {late} later")
            if not reached:
                break


def torture(name: str, backend: str, *, stride: int = 1) -> Score:
    """Strike one flow at every point on one backend; at each `stride`-th only, for a share."""
    score = Score()
    if name in FLOWS:
        anyio.run(at_every_turn, FLOWS[name], score, stride, backend=backend)
        return score
    with oauth_world() as world:
        flow = WITH_SOCKETS[name](world)
        anyio.run(at_every_await, flow, score, stride, backend=backend)
    return score


def _rows(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    for name in (*FLOWS, *WITH_SOCKETS):
        for backend in ("asyncio", "trio"):
            if options.flow in (None, name) and options.backend in (None, backend):
                yield name, backend


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flow", choices=(*FLOWS, *WITH_SOCKETS))
    parser.add_argument("--backend", choices=("asyncio", "trio"))
    options = parser.parse_args(words)
    total, failures = 0, 0
    for name, backend in _rows(options):
        began = time.process_time()
        score = torture(name, backend)
        total, failures = total + score.points, failures + len(score.wrong)
        took = time.process_time() - began
        sys.stdout.write(f"{name} on {backend}: {score.points} points, {took:.0f} s\n")
        sys.stdout.writelines(f"  {line}\n" for line in score.wrong[:20])
        sys.stdout.flush()
    sys.stdout.write(f"{total} points, {failures} wrong\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
