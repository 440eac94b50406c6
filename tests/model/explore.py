"""Walks through every state of the machine, breadth first, and stops at a broken law.

python -m tests.model.explore [--states N] [--mistake NAME]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import deque
from dataclasses import dataclass

from tests.model.machine import START, Bounds, Mistake, State, steps

__all__ = ["STATES_MAX", "Explored", "explore"]

STATES_MAX = 1_500_000
"""As many as fit into two gigabytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """How many states and steps there were; the law that is broken, and the shortest way there."""

    states: int
    steps: int
    whole: bool
    broken: str = ""
    way: tuple[str, ...] = ()


def explore(
    bounds: Bounds, mistake: Mistake | None = None, *, states_max: int = STATES_MAX
) -> Explored:
    """Visit every state that can be reached, at most so many, until a law is broken."""
    before: dict[State, tuple[State, str] | None] = {START: None}
    waiting = deque([START])
    taken = 0
    while waiting and len(before) < states_max:
        state = waiting.popleft()
        for step in steps(state, bounds, mistake):
            taken += 1
            if step.broken:
                way = (*_way(before, state), step.what)
                return Explored(
                    states=len(before), steps=taken, whole=False, broken=step.broken, way=way
                )
            if step.state not in before:
                before[step.state] = (state, step.what)
                waiting.append(step.state)
    return Explored(states=len(before), steps=taken, whole=not waiting)


def _way(before: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    words: list[str] = []
    while (last := before[state]) is not None:
        state, word = last
        words.append(word)
    return tuple(reversed(words))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=STATES_MAX)
    parser.add_argument("--mistake", choices=[mistake.name for mistake in Mistake])
    options = parser.parse_args(words)
    mistake = Mistake[options.mistake] if options.mistake else None
    began = time.process_time()
    found = explore(Bounds(), mistake, states_max=options.states)
    whole = "all of them" if found.whole else "not all of them"
    sys.stdout.write(
        f"{found.states} states ({whole}), {found.steps} steps, "
        f"{time.process_time() - began:.0f} s of CPU\n"
    )
    if found.broken:
        sys.stdout.write(f"{found.broken} is broken:\n  " + "\n  ".join(found.way) + "\n")
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
