"""What our client costs, beside the newest official SDK and a raw floor, in one interleaved run.

    python benchmarks/client.py [--rounds 5] [--only ROW] [--json] [--quick]

Prints every row of the goals with what was measured, the ratio and the goal; see README.md beside
this file for how to read it. Each measurement is a process of its own, the clients taking turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GOALS", "RECORDS_A_CALL", "ROWS", "Goal", "Plan", "judge"]

OURS = ("client", "guard", "remit")
PEERS = ("session", "sdk")

Figures = Mapping[str, float]
RECORDS_A_CALL = 4
"""Decided, sent, answered, ended; `tests/benchmarks` counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One row: which clients, how often in each process, and what of it is shown in which unit."""

    clients: tuple[str, ...]
    count: int
    shows: Mapping[str, str]


_CALLS = {"cpu": "CPU µs", "rate": "calls/s", "p50": "p50 µs", "p99": "p99 µs"}
_LARGE = {"cpu": "CPU ms", "peak": "peak, frames"}
_ALL = ("floor", "client", "guard", "remit", "session", "sdk")
_PLAIN = ("floor", "client", "session", "sdk")

ROWS: dict[str, Plan] = {
    "stdio c=1": Plan(clients=_ALL, count=2_000, shows=_CALLS),
    "stdio c=16": Plan(clients=_ALL, count=6_000, shows=_CALLS),
    "stdio c=256": Plan(clients=_ALL, count=6_000, shows=_CALLS),
    "http json c=16": Plan(clients=_PLAIN, count=2_000, shows=_CALLS),
    "http json c=256": Plan(clients=_PLAIN, count=2_000, shows=_CALLS),
    "http sse c=16": Plan(clients=_PLAIN, count=2_000, shows=_CALLS),
    "http sse c=256": Plan(clients=_PLAIN, count=2_000, shows=_CALLS),
    "large stdio": Plan(clients=_PLAIN, count=5, shows=_LARGE),
    "large http json": Plan(clients=_PLAIN, count=5, shows=_LARGE),
    "large http sse": Plan(clients=("floor", "client"), count=5, shows=_LARGE),
    "connect": Plan(clients=_PLAIN, count=50, shows={"cpu": "CPU ms", "close": "close, CPU ms"}),
    "list": Plan(clients=_PLAIN, count=10_000, shows={"cpu": "CPU ms"}),
    "catalogue": Plan(
        clients=("client", "session", "sdk"),
        count=10_000,
        shows={"held": "MB held", "pause": "GC pause ms"},
    ),
    "import": Plan(
        clients=("floor", "client", "remit", "session", "sdk"), count=3, shows={"cpu": "CPU ms"}
    ),
}


class MissingError(LookupError):
    """What a goal needs was not measured."""


class Found:
    """The medians of a run."""

    def __init__(self, medians: Mapping[tuple[str, str], Figures]) -> None:
        self._medians = medians

    def __call__(self, row: str, client: str, figure: str = "cpu") -> float:
        """Return one figure; of `mcp` the better one of the SDK's two clients."""
        names = PEERS if client == "mcp" else (client,)
        values = [
            self._medians[row, name][figure] for name in names if (row, name) in self._medians
        ]
        if not values:
            raise MissingError(row)
        return max(values) if figure == "rate" else min(values)


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure, most often a ratio, is to be; `at_least` where more is better."""

    row: str
    says: str
    of: Callable[[Found], float]
    bound: float
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        """Return whether a value is good enough."""
        return value >= self.bound if self.at_least else value <= self.bound


def _ratio(row: str, ours: str, other: str, figure: str = "cpu") -> Callable[[Found], float]:
    return lambda found: found(row, ours, figure) / found(row, other, figure)


def _between(rows: tuple[str, str], client: str) -> Callable[[Found], float]:
    return lambda found: found(rows[0], client) / found(rows[1], client)


def _tail(row: str, client: str) -> Callable[[Found], float]:
    return lambda found: found(row, client, "p99") / found(row, client, "p50")


_C1, _C16, _C256 = "stdio c=1", "stdio c=16", "stdio c=256"

GOALS: tuple[Goal, ...] = (
    Goal(_C1, "guard / floor, p50", _ratio(_C1, "guard", "floor", "p50"), 1.25),
    Goal(_C1, "guard, p99 / p50", _tail(_C1, "guard"), 3),
    Goal(_C16, "guard / mcp, CPU", _ratio(_C16, "guard", "mcp"), 1 / 15),
    Goal(_C16, "guard / mcp, calls/s", _ratio(_C16, "guard", "mcp", "rate"), 15, at_least=True),
    Goal(
        _C16, "guard / floor, calls/s", _ratio(_C16, "guard", "floor", "rate"), 0.65, at_least=True
    ),
    Goal(_C16, "remit / mcp, calls/s", _ratio(_C16, "remit", "mcp", "rate"), 10, at_least=True),
    Goal(_C16, "the guard, µs a call", lambda f: f(_C16, "guard") - f(_C16, "client"), 4),
    Goal(
        _C16, "a record, µs", lambda f: (f(_C16, "remit") - f(_C16, "guard")) / RECORDS_A_CALL, 2.5
    ),
    Goal(_C256, "guard / mcp, calls/s", _ratio(_C256, "guard", "mcp", "rate"), 18, at_least=True),
    Goal(_C256, "guard, p99 / p50", _tail(_C256, "guard"), 3),
    Goal("http json c=16", "client / mcp, CPU", _ratio("http json c=16", "client", "mcp"), 1 / 12),
    Goal(
        "http json c=256",
        "client, c=256 / c=16, CPU",
        _between(("http json c=256", "http json c=16"), "client"),
        1.5,
    ),
    Goal("http sse c=16", "client / mcp, CPU", _ratio("http sse c=16", "client", "mcp"), 1 / 16),
    Goal(
        "http sse c=256",
        "client, c=256 / c=16, CPU",
        _between(("http sse c=256", "http sse c=16"), "client"),
        1.5,
    ),
    Goal("large stdio", "client / mcp, CPU", _ratio("large stdio", "client", "mcp"), 1 / 6),
    Goal("large stdio", "client / floor, CPU", _ratio("large stdio", "client", "floor"), 1.2),
    Goal(
        "large stdio", "client, peak in frames", lambda f: f("large stdio", "client", "peak"), 4.5
    ),
    Goal(
        "large http sse",
        "client, SSE / JSON, CPU",
        _between(("large http sse", "large http json"), "client"),
        1.3,
    ),
    Goal(
        "large http json",
        "client, peak in frames",
        lambda f: f("large http json", "client", "peak"),
        4.5,
    ),
    Goal(
        "large http sse",
        "client, peak in frames",
        lambda f: f("large http sse", "client", "peak"),
        4.5,
    ),
    Goal("connect", "client / mcp, CPU", _ratio("connect", "client", "mcp"), 0.5),
    Goal("connect", "client / mcp, close", _ratio("connect", "client", "mcp", "close"), 0.4),
    Goal("list", "client / mcp, CPU", _ratio("list", "client", "mcp"), 1 / 6),
    Goal("catalogue", "client / mcp, held", _ratio("catalogue", "client", "mcp", "held"), 0.2),
    Goal("catalogue", "client / mcp, pause", _ratio("catalogue", "client", "mcp", "pause"), 0.1),
    Goal("import", "client / mcp, CPU", _ratio("import", "client", "mcp"), 0.2),
    Goal("import", "remit --help / mcp, CPU", _ratio("import", "remit", "mcp"), 0.15),
)


def judge(medians: Mapping[tuple[str, str], Figures]) -> list[tuple[Goal, float]]:
    """Return the goals that what was measured says something about, and the value of each."""
    found = Found(medians)
    judged: list[tuple[Goal, float]] = []
    for goal in GOALS:
        try:
            judged.append((goal, goal.of(found)))
        except (MissingError, KeyError, ZeroDivisionError):
            continue
    return judged


def _measured(row: str, client: str, count: int) -> Figures | None:
    """Measure in a fresh process; None if the client could not do it."""
    program = str(Path(__file__).with_name("measure.py"))
    done = subprocess.run(
        [sys.executable, program, row, client, str(count)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no word"]
        print(f"{row}, {client}: failed: {reason[0]}", file=sys.stderr)
        return None
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _run(rows: list[str], rounds: int, share: int) -> dict[tuple[str, str], Figures]:
    runs: dict[tuple[str, str], list[Figures]] = {}
    for _ in range(rounds):
        for row in rows:
            plan = ROWS[row]
            for client in plan.clients:
                count = plan.count if plan.count <= 50 else max(50, plan.count // share)
                figures = _measured(row, client, count)
                if figures is not None:
                    runs.setdefault((row, client), []).append(figures)
    return {
        key: {name: statistics.median(each[name] for each in found) for name in found[0]}
        for key, found in runs.items()
    }


def _report(medians: Mapping[tuple[str, str], Figures]) -> None:
    judged = judge(medians)
    for row, plan in ROWS.items():
        measured = [client for client in plan.clients if (row, client) in medians]
        if not measured:
            continue
        print(f"\n{row:18}" + "".join(f"{unit:>15}" for unit in plan.shows.values()))
        for client in measured:
            figures = medians[row, client]
            print(f"  {client:16}" + "".join(f"{figures[name]:15.1f}" for name in plan.shows))
        for goal, value in judged:
            if goal.row == row:
                sign = "≥" if goal.at_least else "≤"
                met = "met" if goal.is_met(value) else "MISSED"
                print(f"    {goal.says:32} {value:8.3f}  goal {sign} {goal.bound:<7.3g} {met}")


def main() -> None:
    """Run all clients in turns, as often as asked, and print the medians."""
    parser = argparse.ArgumentParser(description="Our client beside the official SDK and a floor.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", action="append", metavar="ROW", help="rows that begin so")
    parser.add_argument("--quick", action="store_true", help="a tenth of the calls")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    begins = tuple(options.only or ("",))
    rows = [row for row in ROWS if row.startswith(begins)]
    medians = _run(rows, options.rounds, 10 if options.quick else 1)
    if options.json:
        figures = {f"{row}, {client}": dict(values) for (row, client), values in medians.items()}
        goals = [
            {
                "row": goal.row,
                "says": goal.says,
                "value": value,
                "goal": goal.bound,
                "at_least": goal.at_least,
                "met": goal.is_met(value),
            }
            for goal, value in judge(medians)
        ]
        print(json.dumps({"figures": figures, "goals": goals}))
    else:
        _report(medians)


if __name__ == "__main__":
    main()
