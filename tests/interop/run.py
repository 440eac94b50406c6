"""Drives the reference servers by pytest, and prints what was driven on each of them.

    python tests/interop/run.py [PYTEST ARGUMENT]...

One line for each server, transport and version of the protocol: what was used on it (requests by
their methods, and what the server asked or told), and what is odd about the server. It ends as
pytest does.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
WIDTH = 118
NOT_USES = {"initialize", "server/discover"}


@dataclass(slots=True)
class Row:
    """One server over one transport in one version, over all tests."""

    connections: int = 0
    used: set[str] = field(default_factory=set[str])
    oddities: dict[str, None] = field(default_factory=dict[str, None])
    violations: dict[str, int] = field(default_factory=dict[str, int])


def rows(report: Path) -> Mapping[tuple[str, str, str, str], Row]:
    """Read what the tests kept, from pytest's report."""
    found: dict[tuple[str, str, str, str], Row] = {}
    for kept in ElementTree.parse(report).iter("property"):
        if kept.get("name") != "driven":
            continue
        said: dict[str, Any] = json.loads(kept.get("value", ""))
        row = found.setdefault(
            (said["server"], said["version"], said["transport"], said["era"]), Row()
        )
        row.connections += 1
        row.used.update(said["used"])
        row.oddities.update(dict.fromkeys(said["oddities"]))
        for kind, count in said["violations"].items():
            row.violations[kind] = row.violations.get(kind, 0) + count
    return found


def lines(found: Mapping[tuple[str, str, str, str], Row]) -> Iterable[str]:
    """Yield the table."""
    head = f"{'server':22} {'version':11} {'transport':15} {'era':11} connections"
    yield head
    yield "-" * len(head)
    for (server, version, transport, era), row in sorted(found.items()):
        yield f"{server:22} {version:11} {transport:15} {era:11} {row.connections:11}"
        parts = [f"used: {', '.join(sorted(row.used - NOT_USES))}"]
        parts += [f"odd: {oddity}" for oddity in row.oddities]
        if row.violations:
            counts = (f"{kind} {count}" for kind, count in sorted(row.violations.items()))
            parts.append(f"violations: {', '.join(counts)}")
        for part in parts:
            yield textwrap.fill(part, WIDTH, initial_indent="    ", subsequent_indent="      ")


def main(arguments: list[str]) -> int:
    """Run pytest with these arguments too; return its exit code."""
    with tempfile.TemporaryDirectory(prefix="interop-") as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-m", "interop", str(ROOT / "tests/interop")]
        command += [f"--junitxml={report}", "-o", "junit_family=xunit1", *arguments]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if report.exists():
            sys.stdout.write("\n".join(["", *lines(rows(report)), ""]))
        return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
