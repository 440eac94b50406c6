"""Revocation to bytes: what a server still receives after authority over it was taken back.

    python benchmarks/revocation/run.py FOLDER [--only NAME] [--row ROW] [--json]

Makes an environment for each framework below FOLDER, with what the package index serves today, and
plays the same script with each. What could not be installed or driven is listed, and not judged.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from driving import ROWS

from benchmarks.environments import FRAMEWORKS, python_for

PEERS_FOLDER = Path(__file__).with_name("peers")
ROW_SECONDS_MAX = 120
PEERS = tuple(name for name in FRAMEWORKS if name != "langchain")


@dataclass
class Result:
    """One framework: versions, and for each row the frames after the mark, or why there are none."""

    name: str
    versions: dict[str, str] = field(default_factory=dict[str, str])
    frames: dict[str, int] = field(default_factory=dict[str, int])
    failed: dict[str, str] = field(default_factory=dict[str, str])

    def cell(self, row: str) -> str:
        if row in self.failed:
            return "not driven"
        frames = self.frames.get(row)
        return "" if frames is None else str(frames)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", choices=PEERS)
    parser.add_argument("--row", action="append", choices=ROWS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = [
        measured(name, options.folder, options.row or ROWS) for name in options.only or PEERS
    ]
    if options.json:
        print(json.dumps([result.__dict__ for result in results], indent=2))
    else:
        show(results, options.row or ROWS)
    return 0


def measured(name: str, folder: Path, rows: tuple[str, ...] | list[str]) -> Result:
    result = Result(name)
    try:
        python = python_for(name, folder)
    except (OSError, subprocess.SubprocessError) as error:
        result.failed = dict.fromkeys(rows, f"could not be installed: {error}")
        return result
    for row in rows:
        play(result, row, python, PEERS_FOLDER / f"{FRAMEWORKS[name][0]}.py")
        print(f"{name} {row}: {result.cell(row)}", file=sys.stderr, flush=True)
    return result


def play(result: Result, row: str, python: Path, driver: Path) -> None:
    """Play one row in a process of its own, and read the server's log."""
    with tempfile.TemporaryDirectory(prefix="revocation.") as name:
        folder = Path(name)
        try:
            ended = subprocess.run(
                [str(python), str(driver), row, str(folder)],
                capture_output=True,
                text=True,
                timeout=ROW_SECONDS_MAX,
                check=False,
            )
            told = json.loads(ended.stdout.splitlines()[-1])
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            result.failed[row] = f"{type(error).__name__}"
            return
        result.versions = told["versions"]
        judge(result, row, log_of(folder), told["error"])


def log_of(folder: Path) -> list[dict[str, Any]]:
    path = folder / "wire.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def judge(result: Result, row: str, log: list[dict[str, Any]], error: str) -> None:
    """Count the calls behind the mark. Without a listing before it nothing was taken back."""
    at = next((number for number, line in enumerate(log) if "mark" in line), None)
    listed = any(line.get("frame") == "tools/list" for line in log[:at])
    if at is None or not listed:
        result.failed[row] = error or "the script did not come to its mark"
        return
    result.frames[row] = sum(1 for line in log[at:] if line.get("frame") == "tools/call")


def show(results: list[Result], rows: tuple[str, ...] | list[str]) -> None:
    print("| framework | versions | " + " | ".join(rows) + " |")
    print("|---" * (len(rows) + 2) + "|")
    for result in results:
        versions = ", ".join(f"{name} {number}" for name, number in result.versions.items())
        cells = " | ".join(map(result.cell, rows))
        print(f"| {result.name} | {versions} | {cells} |")
    for result in results:
        for row, why in result.failed.items():
            print(f"\n{result.name}, {row}: {why}")


if __name__ == "__main__":
    sys.exit(main())
