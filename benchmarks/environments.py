"""Environments of the frameworks that benchmarks play beside remit: made below a folder. Plays nothing."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

__all__ = ["FRAMEWORKS", "python_for"]

INSTALL_SECONDS_MAX = 900
FRAMEWORKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "remit": ("remit_", ()),
    "openai-agents": ("openai_agents", ("openai-agents",)),
    "pydantic-ai": ("pydantic_ai_", ("pydantic-ai-slim[mcp]",)),
    "google-adk": ("google_adk", ("google-adk", "mcp")),
    "strands-agents": ("strands_agents", ("strands-agents",)),
    "agent-framework": ("agent_framework_", ("agent-framework-core", "mcp", "tenacity")),
    "deepagents": ("deepagents_", ("deepagents", "langchain-mcp-adapters")),
    "langchain": ("langchain_", ("langchain", "langchain-mcp-adapters")),
}
"""Each one's driver among the `peers` of a benchmark, and what is installed for it."""


def python_for(name: str, folder: Path) -> Path:
    """Return the interpreter of a framework's environment; one that stands is taken, and brought up to date.

    remit has the one that runs this. Raises OSError, SubprocessError if it cannot be had.
    """
    packages = FRAMEWORKS[name][1]
    if not packages:
        return Path(sys.executable)
    python = folder / name / "bin" / "python"
    if not python.exists():
        venv.create(folder / name, with_pip=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    subprocess.run(pip, check=True, timeout=INSTALL_SECONDS_MAX, stdout=subprocess.DEVNULL)
    return python
