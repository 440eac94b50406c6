"""The agent of first.toml as a recipe: a generator that yields calls and receives results."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

from orchestrator import AgentTask, Call

Steps = Generator[Any, Any, object]


def guide(task: AgentTask) -> Steps:
    """Return, in words, what this agent may call."""
    listed = yield Call("remit", "list_capabilities")
    rows = json.loads(listed.text)
    return [f"{row['server']}/{row['tool']}: {' or '.join(row['effects'])}" for row in rows]
