"""Prints, for every cause and every real transport, what came of a frame when authority went before a step.

    python -m tests.matrix.run [--cause NAME] [--transport NAME] [--steps N]

A cell is `refused / begun`: at how many steps the frame had not begun, and no byte of it came, and at
how many it had. Exit code 1, and `LEAK`, where a byte came after the flip.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path

import anyio

from tests.matrix.causes import CAUSES, Cause
from tests.matrix.rides import RIDES, Outcome, Ride

__all__ = ["STEPS", "cell", "outcomes"]

STEPS = 14


async def outcomes(ride: Ride, cause: Cause, steps: int, folder: Path) -> list[Outcome]:
    """Send one frame for each step; return what came of each."""
    with anyio.fail_after(120):
        async with aclosing(ride(cause, steps, folder)) as found:
            return [outcome async for outcome in found]


def cell(found: list[Outcome], cause: Cause) -> str:
    """Return the figures of one cell; LEAK if anything came that had not begun."""
    late = [each for each in found if not each.begun]
    if any(each.came or each.reason is not cause.reason for each in late):
        return "LEAK"
    return f"{len(late)} / {len(found) - len(late)}"


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cause", choices=tuple(CAUSES))
    parser.add_argument("--transport", choices=tuple(RIDES))
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args(words)
    rides = {name: ride for name, ride in RIDES.items() if options.transport in (None, name)}
    leaks = 0
    sys.stdout.write("| cause | " + " | ".join(rides) + " |\n" + "|---" * (len(rides) + 1) + "|\n")
    for name, cause in CAUSES.items():
        if options.cause not in (None, name):
            continue
        cells: list[str] = []
        for ride in rides.values():
            with tempfile.TemporaryDirectory() as folder:
                found = anyio.run(outcomes, ride, cause, options.steps, Path(folder))
            cells.append(cell(found, cause))
        leaks += cells.count("LEAK")
        sys.stdout.write(f"| {name} | " + " | ".join(cells) + " |\n")
        sys.stdout.flush()
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
