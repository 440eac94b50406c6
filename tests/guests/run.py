"""Drives each framework's adapter against its newest version, each in an environment of its own.

    python tests/guests/run.py [--folder FOLDER] [--only NAME]... [PYTEST ARGUMENT]...

The modules are none that pytest finds by itself: they import what is there only in its own environment. An environment is made once, below FOLDER, and kept. What cannot be installed in time is named and counts as
a failure; nothing is skipped for it. It ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = 600
"""For one environment, and for the tests in it."""
NODE: Final = "typescript"
NODE_FOLDER: Final = "REMIT_GUESTS_NODE"
"""Where its tests look for the TypeScript SDK."""


@dataclass(frozen=True, slots=True)
class Framework:
    """One framework: the extra that has it, its distribution, its tests."""

    extra: str
    distribution: str
    tests: str


FRAMEWORKS: Final = (
    Framework("openai-agents", "openai-agents", "drives_openai_agents.py"),
    Framework("langchain", "langchain-core", "drives_langchain.py"),
    Framework("claude-agent-sdk", "claude-agent-sdk", "drives_claude_agent_sdk.py"),
    Framework("google-adk", "google-adk", "drives_google_adk.py"),
    Framework("strands", "strands-agents", "drives_strands.py"),
    Framework("agent-framework", "agent-framework-core", "drives_agent_framework.py"),
)


class NotHadError(Exception):
    """Something could not be installed: what, and why."""


def run(command: Sequence[str], *, cwd: Path = ROOT, quiet: bool = False) -> str:
    """Run one command and return its output. Raises NotHadError if it fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            timeout=SECONDS,
            check=False,
            text=True,
            stdout=subprocess.PIPE if quiet else None,
            stderr=subprocess.STDOUT if quiet else None,
        )
    except FileNotFoundError:
        raise NotHadError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise NotHadError(f"{command[0]} took more than {SECONDS} seconds") from None
    if done.returncode:
        raise NotHadError((done.stdout or f"exit code {done.returncode}")[-2000:])
    return done.stdout or ""


def installed(framework: Framework, folder: Path) -> str:
    """Return the Python of a framework's environment; make it, or bring the framework up to date."""
    python = folder / framework.extra / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", str(folder / framework.extra)], quiet=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(
        [*pip, "--upgrade", f"{ROOT}[{framework.extra}]", framework.distribution, "pytest>=9"],
        quiet=True,
    )
    return str(python)


def drive(framework: Framework, folder: Path, rest: Sequence[str]) -> str:
    """Run a framework's tests and return the version that they ran against."""
    python = installed(framework, folder)
    test = str(Path("tests", "guests", framework.tests))
    run([python, "-m", "pytest", "-q", "-m", "guests", test, *rest])
    code = f"from importlib.metadata import version; print(version({framework.distribution!r}))"
    return run([python, "-c", code], quiet=True).strip()


def drive_node(folder: Path, rest: Sequence[str]) -> str:
    """Run the tests of the gateway before the official TypeScript client; return its version."""
    place = folder / NODE
    place.mkdir(parents=True, exist_ok=True)
    (place / "package.json").write_text('{"name": "guests", "private": true}')
    options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]
    run(["npm", "install", *options, "@modelcontextprotocol/sdk"], cwd=place, quiet=True)
    test = str(Path("tests", "guests", "drives_typescript_client.py"))
    run(
        [
            "env",
            f"{NODE_FOLDER}={place}",
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "guests",
            test,
            *rest,
        ]
    )
    manifest = place / "node_modules/@modelcontextprotocol/sdk/package.json"
    return str(json.loads(manifest.read_text())["version"])


def main(words: Sequence[str]) -> int:
    """Drive all, or those that are named; return the exit code."""
    parser = argparse.ArgumentParser(description="Drives the adapters of guests.")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "remit-guests"))
    names = [*(framework.extra for framework in FRAMEWORKS), NODE]
    parser.add_argument("--only", action="append", choices=names)
    found, rest = parser.parse_known_args(words)
    folder: Path = found.folder
    folder.mkdir(parents=True, exist_ok=True)
    told: list[str] = []
    failed = 0
    for name in found.only or names:
        try:
            if name == NODE:
                version = drive_node(folder, rest)
            else:
                (framework,) = (each for each in FRAMEWORKS if each.extra == name)
                version = drive(framework, folder, rest)
            told.append(f"{name:18} {version:10} passed")
        except NotHadError as error:
            failed += 1
            told.append(f"{name:18} {'':10} failed: {error}")
    sys.stdout.write("\n".join(["", *told, ""]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
