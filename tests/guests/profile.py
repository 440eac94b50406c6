"""A profile for `remit gateway` as a process: a server whose tools count as seen, a policy, an agent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.guests.stage import POLICY, SERVER

__all__ = ["AGENT", "GATEWAY", "booked", "environment", "log_of", "make_profile", "started"]

ROOT: Final = Path(__file__).parents[2]
AGENT: Final = "---\nname: scout\ntools: [ledger/book]\nbudget: {calls: 2}\n---\nBook numbers."
GATEWAY: Final = ["-m", "orchestrator.cli", "gateway"]


def make_profile(home: Path) -> Path:
    """Write the profile below a folder, and return the folder."""
    config = home / "config"
    (config / "agents").mkdir(parents=True)
    server = {
        "command": sys.executable,
        "args": [str(SERVER), str(home / "booked.jsonl")],
        "description_trust": "first-use",
    }
    (config / "mcp.json").write_text(json.dumps({"mcpServers": {"ledger": server}}))
    (config / "own.policy").write_text(POLICY)
    (config / "config.toml").write_text('policy = ["own.policy"]\n')
    (config / "agents" / "scout.md").write_text(AGENT)
    return home


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a gateway's process."""
    return {**os.environ, "REMIT_HOME": str(home), "PYTHONPATH": str(ROOT)}


def started(home: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a gateway for the agent."""
    return subprocess.Popen(
        [sys.executable, *GATEWAY, "scout", *words],
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def booked(home: Path) -> int:
    """Count the calls that the server carried out."""
    log = home / "booked.jsonl"
    return len(log.read_text().splitlines()) if log.exists() else 0


def log_of(home: Path) -> Path:
    """Return the audit log of the one run there was."""
    (run,) = (home / "state" / "runs").iterdir()
    return run / "audit.jsonl"
