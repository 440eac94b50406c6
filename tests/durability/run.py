"""Kills a pipeline of twelve steps at random points, and takes each up again.

    python tests/durability/run.py [--kills N] [--seed N]

By the server's log: no step that had ended begins again, no call is carried out twice, and the result
is that of a run that was left alone. Exit code 1 at the first that is not so.
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
    from tests.durability.killing import Project, killed_and_resumed

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        project = Project.make(Path(place) / "twelve")
        approvals = project.approvals()
        _, whole = project.remit("run", "twelve.toml", *approvals)
        expected = whole["result"]["value"]  # type: ignore[index]
        doubts = 0
        for number in range(options.kills):
            project.forget()
            random = Random(f"{options.seed}-{number}")
            told = killed_and_resumed(project, approvals, random)
            doubts += told.doubts
            say(f"{number}: after {told.lines_before} calls, {told.doubts} in doubt")
            if told.resumes and told.result != expected:
                say(f"another result: {told.result}")
                return 1
    say(
        f"{options.kills} kills, {doubts} calls in doubt, the same result each time; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 0


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
