"""Where the reference servers come from: pinned packages of two registries, installed once.

They lie in a cache folder outside of the repository, each set of packages in an environment of its
own. `REMIT_INTEROP_CACHE` names another folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = [
    "ACP",
    "ALL",
    "FASTMCP_SKILLS",
    "FASTMCP_TASKS",
    "NODE",
    "OTLP",
    "PYTHON",
    "InstallError",
    "PackageSet",
    "cache_folder",
    "install",
    "version_of",
]

SECONDS: Final = 420
"""For one set of packages."""

_STAMP: Final = "installed.txt"


class InstallError(Exception):
    """A set of packages could not be installed. Nothing is skipped for it: the tests fail."""


@dataclass(frozen=True, slots=True)
class PackageSet:
    """Packages that live together, by their exact versions."""

    name: str
    pins: tuple[str, ...]
    is_node: bool = False


NODE: Final = PackageSet(
    "node",
    tuple(
        f"@modelcontextprotocol/server-{name}@2026.8.31"
        for name in ("everything", "filesystem", "memory", "sequential-thinking")
    ),
    is_node=True,
)
PYTHON: Final = PackageSet(
    "python",
    (
        "mcp==2.3.0",
        "mcp-server-fetch==2026.10.24",
        "mcp-server-git==2026.10.19",
        "mcp-server-time==2026.10.19",
    ),
)
# these two do not go together: the tasks extension wants the older FastMCP
FASTMCP_TASKS: Final = PackageSet("fastmcp-tasks", ("fastmcp==4.1.4", "fastmcp-tasks==4.1.4"))
FASTMCP_SKILLS: Final = PackageSet("fastmcp-skills", ("fastmcp==4.2.3",))

ACP: Final = PackageSet("acp", ("@agentclientprotocol/sdk@2.4.0", "acpx@0.19.1"), is_node=True)
OTLP: Final = PackageSet("otlp", ("opentelemetry-exporter-otlp-proto-http==1.45.2",))

ALL: Final = (NODE, PYTHON, FASTMCP_TASKS, FASTMCP_SKILLS, ACP, OTLP)


def cache_folder() -> Path:
    """Return the folder of all sets."""
    named = os.environ.get("REMIT_INTEROP_CACHE", "")
    return Path(named) if named else Path(tempfile.gettempdir(), "remit-interop")


def install(packages: PackageSet) -> Path:
    """Return the folder of a set's programs; install it if it is not there as it is pinned.

    Raises InstallError if that fails or takes more than `SECONDS`.
    """
    folder = cache_folder() / packages.name
    programs = folder / ("node_modules/.bin" if packages.is_node else "bin")
    stamp, wanted = folder / _STAMP, "\n".join(packages.pins)
    if stamp.exists() and stamp.read_text() == wanted:
        return programs
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if packages.is_node:
        (folder / "package.json").write_text('{"name": "interop", "private": true}')
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
        _run(packages, ["npm", "install", "--prefix", str(folder), *options, *packages.pins])
    else:
        _run(packages, [sys.executable, "-m", "venv", str(folder)])
        _run(packages, [str(folder / "bin/pip"), "install", "--quiet", *packages.pins])
    stamp.write_text(wanted)
    return programs


def version_of(packages: PackageSet, package: str) -> str:
    """Return the version that a package is pinned to."""
    pins = (pin.replace("==", "@").rpartition("@") for pin in packages.pins)
    return next(version for name, _, version in pins if name.rpartition("/")[2] == package)


def _run(packages: PackageSet, command: Sequence[str]) -> None:
    why = ""
    try:
        done = subprocess.run(
            command,
            cwd=cache_folder() / packages.name,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            why = done.stderr[-2000:]
    except FileNotFoundError:
        why = f"{command[0]} is not installed"
    except subprocess.TimeoutExpired:
        why = f"it took more than {SECONDS} seconds"
    if why:
        raise InstallError(
            f"{', '.join(packages.pins)} could not be installed. These tests need the package"
            f" registries of Python and Node.js, and what they bring has to be in"
            f" {cache_folder()}: {why}"
        )
