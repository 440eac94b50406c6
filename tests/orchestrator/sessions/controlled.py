"""A session over scripted servers with a control socket, in a state folder of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio

from mcp_client.testing import ScriptedServer
from orchestrator.core.ids import RunId
from orchestrator.sessions.always import NEVER_ALWAYS, StandingYes
from orchestrator.sessions.control.calling import ControlClient, connected
from orchestrator.sessions.control.listening import listening
from orchestrator.sessions.control.operations import ControlDesk
from orchestrator.sessions.state import StatePaths
from tests.orchestrator.broker.stage import OPEN, Stage, staged

__all__ = ["RUN", "Controlled", "controlled", "state_below"]

RUN: Final = "20261201-101500-a1b2c3"


@dataclass(frozen=True, slots=True)
class Controlled:
    """A session, where it can be reached, and one who speaks with it."""

    stage: Stage
    paths: StatePaths
    client: ControlClient

    async def first_ask(self) -> dict[str, Any]:
        """Return the first ask, once there is one."""
        async with connected(self.paths, RUN) as other:
            async for event in await other.follow():
                if event["event"] == "AsksChanged" and event["open"]:
                    break
        told: Any = (await self.client.do("asks"))["asks"]
        return told[0]


def state_below(folder: Path) -> StatePaths:
    return StatePaths(config=folder / "config", state=folder / "state", cache=folder / "cache")


@asynccontextmanager
async def controlled(
    folder: Path,
    policy: str = OPEN,
    *,
    run: str = RUN,
    servers: Iterable[ScriptedServer] | None = None,
    own_tools: bool = False,
    answer_seconds: float = 600.0,
    always: StandingYes = NEVER_ALWAYS,
) -> AsyncGenerator[Controlled]:
    """Run a session with a socket, and connect to it."""
    paths = state_below(folder)
    paths.prepare()
    place = paths.new_run(RunId(run)).folder
    async with staged(policy, servers=servers, own_tools=own_tools, always=always) as stage:
        desk = ControlDesk(
            session=stage.session,
            run=RunId(run),
            watch=stage.watch,
            audit=stage.audit,
            clock=stage.clock,
            answer_seconds=answer_seconds,
        )
        with anyio.fail_after(10):
            async with listening(desk, place), connected(paths, run) as client:
                yield Controlled(stage, paths, client)
