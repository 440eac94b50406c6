"""Kills pipelines at random points, and takes each up again.

    python tests/durability/run.py [--kills N] [--talks N] [--seed N]

A pipeline of twelve steps is killed `--kills` times, and one whose steps have a language model `--talks`
times. By the server's log: no step that had ended begins again, no call is carried out twice, and the
result is that of a run that was left alone; by the model's: no turn that was kept is asked for again.
Exit code 1 at the first that is not so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))


def main() -> int:
    """Do it as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--talks", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        passed = _steps(Path(place), options.kills, options.seed) and _talks(
            Path(place), options.talks, options.seed
        )
    return 0 if passed else 1


def _steps(place: Path, kills: int, seed: int) -> bool:
    from tests.durability.killing import Project, killed_and_resumed

    began = time.monotonic()
    project = Project.make(place / "twelve")
    approvals = project.approvals()
    _, whole = project.remit("run", "pipeline.toml", *approvals)
    doubts = 0
    for number in range(kills):
        project.forget()
        told = killed_and_resumed(project, approvals, Random(f"{seed}-{number}"))
        doubts += told.doubts
        say(f"{number}: after {told.lines_before} calls, {told.doubts} in doubt")
        if told.resumes and told.result != whole["result"]["value"]:  # type: ignore[index]
            say(f"another result: {told.result}")
            return False
    say(
        f"{kills} kills, {doubts} calls in doubt, the same result each time; "
        f"{time.monotonic() - began:.0f} s"
    )
    return True


def _talks(place: Path, kills: int, seed: int) -> bool:
    from tests.durability.talking import RESULT, talk, talked_and_resumed

    began = time.monotonic()
    doubts = turns = 0
    with talk(place / "talk") as there:
        approvals = there.project.approvals()
        for number in range(kills):
            there.project.forget()
            told, kept = talked_and_resumed(there, approvals, Random(f"{seed}-{number}"))
            doubts += told.doubts
            turns += kept
            say(f"{number}: after {told.lines_before} calls, {kept} turns kept")
            if told.resumes and told.result != RESULT:
                say(f"another result: {told.result}")
                return False
    say(
        f"{kills} kills of a step with a language model, {turns} turns kept and said again, "
        f"{doubts} calls in doubt, the same result each time; {time.monotonic() - began:.0f} s"
    )
    return True


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
