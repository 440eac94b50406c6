"""remit: a recipe as a model; audit log on disk, policy, gate and budgets as always."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[3]))

from driving import One, main

import policies
from orchestrator import AgentTask, Call, ParentSession, recipe

VERSION_OF = ("remit",)
POLICY = 'policy p v1 { permit "server" call on s/* }'


def steps(task: AgentTask) -> Generator[object, object, object]:
    got = yield Call("s", task.prompt)
    return got is not None


@asynccontextmanager
async def agents(command: list[str]) -> AsyncGenerator[One]:
    async def yes(_) -> bool:
        return True

    model = recipe(steps)
    with tempfile.TemporaryDirectory(prefix="spawning.remit.") as name:
        folder = Path(name)
        servers = folder / "project" / ".mcp.json"
        servers.parent.mkdir()
        entry = {"command": command[0], "args": command[1:]}
        servers.write_text(json.dumps({"mcpServers": {"s": entry}}))
        async with ParentSession.open(
            servers=servers,
            policy=policies.load([policies.Source("p.policy", POLICY)]),
            confirm=yes,
            environ={"REMIT_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"},
        ) as session:

            async def one(number: int, tool: str) -> bool:
                agent = session.subagent(f"a{number}", role="worker", model=model)
                return (await agent.run(tool)).answer is True

            yield one


if __name__ == "__main__":
    main(sys.modules[__name__])
