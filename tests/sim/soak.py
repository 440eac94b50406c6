"""Runs seeded schedules one after another and says how many were clean, and what is left of any.

python -m tests.sim.soak --schedules 100000 [--first SEED] [--seconds N]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.testing import run_seeded
from tests.sim.judge import violations
from tests.sim.world import World


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--say-every", type=int, default=1_000)
    options = parser.parse_args(words)
    until = time.monotonic() + options.seconds
    clean, steps, agents = 0, 0, 0
    before = _left()
    # a world is one large cycle: it is let go of at once, and what was there before is not looked at
    gc.collect()
    gc.freeze()
    gc.disable()
    for seed in range(options.first, options.first + options.schedules):
        if time.monotonic() > until:
            break
        world = World(seed)
        try:
            run_seeded(seed, world.run, before_step=world.count)
        except BaseException as error:
            _say(f"seed {seed}: {error!r}")
            raise
        wrong = [*violations(world.journal), world.small]
        if any(wrong):
            _say(f"seed {seed}: {wrong[:5]}")
            return 1
        clean, steps, agents = clean + 1, steps + world.steps, agents + world.agents
        if clean % options.say_every == 0:
            _say(f"{clean} clean schedules, {steps} steps, {time.process_time():.0f} s of CPU")
        del world
        gc.collect()
    gc.collect()
    left = {name: count - before[name] for name, count in _left().items()}
    _say(f"{clean} clean schedules, {steps} steps, {agents} agents; left: {left}")
    return 0 if not any(left.values()) else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _left() -> dict[str, int]:
    """Return what could be left behind: descriptors, and processes below this one."""
    counts: dict[str, Callable[[], int]] = {
        "descriptors": lambda: len(list(Path("/proc/self/fd").iterdir())),
        "processes": lambda: len(
            Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
        ),
    }
    return {name: count() for name, count in counts.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
