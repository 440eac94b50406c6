"""What an agent costs beside other frameworks: fresh ones with one MCP call each, and parked ones.

    python benchmarks/spawning/run.py FOLDER [--only NAME] [--row ROW] [--rounds N] [--json]

Makes an environment for each framework below FOLDER, with what the package index serves today. Each does the same:
a fresh agent with a scripted model calls one tool of the same stdio server, over one connection for all, 16 agents at
a time. The frameworks take turns, round after round; shown are medians. CPU time and memory are the client's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.environments import FRAMEWORKS, python_for

PEERS_FOLDER = Path(__file__).with_name("peers")
CELL_SECONDS_MAX = 300
ROWS = {"fresh": 300, "parked": 100}
"""What is measured, and with how many agents."""
PEERS = tuple(name for name in FRAMEWORKS if name != "deepagents")


@dataclass
class Result:
    """One framework: its versions, and for each row its figures, or why there are none."""

    name: str
    python: Path
    versions: dict[str, str] = field(default_factory=dict[str, str])
    figures: dict[str, list[float]] = field(default_factory=dict[str, list[float]])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    def median(self, row: str) -> float | None:
        """Return its figure in a row; None where it has none."""
        found = self.figures.get(row)
        return statistics.median(found) if found and row not in self.failed else None


def main() -> int:
    """Measure what the command line says, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", choices=PEERS)
    parser.add_argument("--row", action="append", choices=tuple(ROWS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows: list[str] = options.row or list(ROWS)
    results = [installed(name, options.folder) for name in options.only or PEERS]
    for row in rows:
        for _ in range(options.rounds):
            for result in results:
                play(result, row)
    if options.json:
        print(json.dumps({each.name: each.figures for each in results}))
    else:
        show(results, rows)
    return 0


def installed(name: str, folder: Path) -> Result:
    """Make a framework's environment; one that stands is taken."""
    result = Result(name, Path(sys.executable))
    try:
        result.python = python_for(name, folder)
    except (OSError, subprocess.SubprocessError) as error:
        result.failed = dict.fromkeys(ROWS, f"could not be installed: {error}")
    return result


def play(result: Result, row: str) -> None:
    """Measure one cell in a process of its own."""
    if row in result.failed:
        return
    driver = PEERS_FOLDER / f"{FRAMEWORKS[result.name][0]}.py"
    try:
        ended = subprocess.run(
            [str(result.python), str(driver), row, str(ROWS[row])],
            capture_output=True,
            text=True,
            timeout=CELL_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        result.failed[row] = "it took too long"
        return
    try:
        told = json.loads(ended.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        result.failed[row] = "\n".join(ended.stderr.splitlines()[-3:])
        return
    result.versions = told["versions"]
    result.figures.setdefault(row, []).append(told["figure"])
    print(f"{result.name} {row}: {told['figure']:,.0f}", file=sys.stderr, flush=True)


def show(results: list[Result], rows: list[str]) -> None:
    """Print the table, and how remit stands to the best of the others."""
    print("| framework | versions | " + " | ".join(rows) + " |")
    print("|---" * (len(rows) + 2) + "|")
    for result in results:
        versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
        cells = [result.median(row) for row in rows]
        told = " | ".join("not driven" if each is None else f"{each:,.0f}" for each in cells)
        print(f"| {result.name} | {versions} | {told} |")
    for row in rows:
        ours = next((each.median(row) for each in results if each.name == "remit"), None)
        others = [m for each in results if each.name != "remit" and (m := each.median(row))]
        if ours and others:
            ratio = ours / max(others) if row == "fresh" else min(others) / ours
            print(f"\n{row}: {ratio:.1f} times better than the best of the others")
    for result in results:
        for row, why in result.failed.items():
            print(f"\n{result.name}, {row}: {why}")


if __name__ == "__main__":
    sys.exit(main())
