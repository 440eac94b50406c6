"""The agent of first.toml as a recipe: a generator that yields calls and receives results."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from orchestrator import AgentTask, Call, Note

Steps = Generator[Any, Any, object]


def guide(task: AgentTask) -> Steps:
    """Return what this agent may call, as its own view of it says."""
    listed = yield Call("remit", "list_capabilities")
    yield Note("asked what may be called here")
    return listed.unwrap().text
