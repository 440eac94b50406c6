"""Runs the official MCP conformance suite against this client, one scenario at a time, and counts.

    python tests/conformance/run.py [--only SUBSTRING] [--with-authorization] [--folder DIR]

It installs the suite and a Node.js that is new enough from the npm registry (once), runs every
client scenario on every wire version that it applies to, and prints a table and totals. A scenario
counts as passed only if at least one of its checks succeeded, none failed, warned or was skipped,
and the client exited with 0, or with an error where the suite says that the client may refuse.

Scenarios run alone: the suite's own parallel mode ignores exit codes, and shares two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE_VERSION = "22.23.3"
CLIENT = Path(__file__).with_name("client.py")
SECONDS = 60
MAY_REFUSE = (
    re.compile(r"auth/iss-(supported-missing|wrong-issuer|unexpected|normalized)"),
    re.compile(r"auth/(resource-mismatch|metadata-issuer-mismatch|scope-retry-limit)"),
    re.compile(r"http-invalid-tool-headers"),
    re.compile(r"sep-2640-client-verify-.*"),
)
"""Scenarios in which the suite lets the client end with an error: refusing is the right thing."""

_SCENARIO = re.compile(r"^  - (\S+) \[(.+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario on one wire; an extension's scenarios have no version of their own."""

    scenario: str
    wire: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a case: how many checks ended how, and the client's exit code."""

    case: Case
    checks: Counter[str]
    exit_code: int
    output: str

    @property
    def passed(self) -> bool:
        """True by the rule that stands at the top."""
        bad = sum(self.checks[word] for word in ("FAILURE", "WARNING", "SKIPPED"))
        may_refuse = any(rule.fullmatch(self.case.scenario) for rule in MAY_REFUSE)
        return self.checks["SUCCESS"] > 0 and bad == 0 and (self.exit_code == 0 or may_refuse)


def install(folder: Path) -> tuple[Path, Path]:
    """Return the paths of node and of the suite, installed into `folder` if they are not there."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}[platform.machine()]
    node = folder / "node_modules" / f"node-linux-{machine}" / "bin" / "node"
    suite = folder / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    if not (node.exists() and suite.exists()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"name": "conformance", "private": true}')
        packages = [f"node-linux-{machine}@{NODE_VERSION}", SUITE]
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(["npm", "install", *options, *packages], cwd=folder, check=True, timeout=600)
    return node, suite


def cases(node: Path, suite: Path, only: str, *, authorization: bool) -> Iterator[Case]:
    """Yield every client scenario on every wire, as the suite itself lists them."""
    done = subprocess.run(
        [node, suite, "list"], capture_output=True, text=True, check=True, timeout=60
    )
    listed = done.stdout.split("Client scenarios", 1)[1].split("Authorization server", 1)[0]
    for scenario, wires in _SCENARIO.findall(listed):
        if only in scenario and (authorization or not scenario.startswith("auth/")):
            for wire in wires.split(","):
                yield Case(scenario, wire)


def run(case: Case, node: Path, suite: Path) -> Outcome:
    """Run one case in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        command = [str(node), str(suite), "client", "--scenario", case.scenario]
        command += ["--command", f"{sys.executable} {CLIENT}"]
        command += ["--timeout", str(SECONDS * 1000), "-o", folder]
        if case.wire != "extension":
            command += ["--spec-version", case.wire]
        # The suite's own copy of the exit code goes by its summary: the client writes its own.
        code_file = Path(folder, "exit-code")
        environment = {**os.environ, "REMIT_CONFORMANCE_EXIT": str(code_file)}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=SECONDS + 30,
            env=environment,
            check=False,
        )
        checks: Counter[str] = Counter()
        said = done.stdout + done.stderr
        for found in Path(folder).rglob("checks.json"):
            checks.update(check["status"] for check in json.loads(found.read_text()))
        for found in Path(folder).rglob("std*.txt"):
            said += found.read_text()
        code = int(code_file.read_text()) if code_file.exists() else -1
        return Outcome(case=case, checks=checks, exit_code=code, output=said)


def report(outcomes: Sequence[Outcome]) -> None:
    """Print one line a case, what the failed ones said, and the totals."""
    print(f"{'scenario':45} {'wire':11} {'pass':>4} {'fail':>4} {'warn':>4} {'skip':>4} exit")
    for one in outcomes:
        count = one.checks
        print(
            f"{one.case.scenario:45} {one.case.wire:11} {count['SUCCESS']:4} {count['FAILURE']:4} "
            f"{count['WARNING']:4} {count['SKIPPED']:4} {one.exit_code:4} "
            f"{'ok' if one.passed else 'NOT PASSED'}"
        )
    for wire in sorted({one.case.wire for one in outcomes}):
        of_wire = [one for one in outcomes if one.case.wire == wire]
        print(f"{wire}: {sum(one.passed for one in of_wire)} of {len(of_wire)} scenarios")
    passed = sum(one.passed for one in outcomes)
    checks = sum((one.checks for one in outcomes), Counter[str]())
    print(f"checks: {dict(checks)}")
    print(f"{passed} passed, {len(outcomes) - passed} failed")


def main() -> int:
    """Run what was asked for; 0 if all of it passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="scenarios whose name has this in it")
    parser.add_argument("--with-authorization", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print what failed cases said")
    default = Path(tempfile.gettempdir(), "remit-conformance")
    parser.add_argument("--folder", type=Path, default=default, help="where the suite is installed")
    options = parser.parse_args()
    node, suite = install(options.folder)
    outcomes: list[Outcome] = []
    for case in cases(node, suite, options.only, authorization=options.with_authorization):
        outcome = run(case, node, suite)
        outcomes.append(outcome)
        if options.verbose and not outcome.passed:
            print(outcome.output, file=sys.stderr)
    report(outcomes)
    return 0 if outcomes and all(one.passed for one in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
