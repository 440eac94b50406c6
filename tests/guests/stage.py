"""A session for guests to stand before: a server whose log says what reached it, and one agent.

Needs nothing but remit, so that it runs in the environment of any framework.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from orchestrator import ApprovalRequest, Budget, ParentSession
from orchestrator.audit.read import read_records
from orchestrator.sessions.approvals import Item
from orchestrator.surfaces.guests.inviting import invite
from orchestrator.surfaces.guests.view import SnapshotView
from policies import Source, load

__all__ = ["ALLOWED", "BOOK", "DENIED", "POLICY", "WORTH", "Stage", "open_stage"]

SERVER: Final = Path(__file__).parents[1] / "servers" / "ledgered.py"
POLICY: Final = 'policy p v1 { role scout permit "book" call on ledger/book for role scout when arg(/step) < 10 }'
BOOK: Final = "mcp_ledger_book"
ALLOWED: Final = {"step": 1, "turn": 2}
DENIED: Final = {"step": 99, "turn": 2}
WORTH: Final = str((1 * 7919 + 2 * 104729) % 1000)


@dataclass(frozen=True, slots=True)
class Stage:
    """One agent's view, and what the server behind it has carried out."""

    session: ParentSession
    view: SnapshotView
    log: Path
    audit: Path

    @property
    def booked(self) -> list[dict[str, Any]]:
        """Every call that the server carried out, as its own log has it."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    @property
    def kinds(self) -> list[str]:
        """The kinds of all records so far."""
        return [record.kind for record in read_records(self.audit)]

    def revoke(self) -> None:
        """Take the agent's authority back."""
        self.session.cancel_agent("scout")


class Yes:
    """A person who says yes to every call."""

    interactive = True

    async def approve(self, request: ApprovalRequest) -> bool:
        return True


async def yes(items: Sequence[Item]) -> bool:
    return True


@asynccontextmanager
async def open_stage(
    folder: Path, *, budget: Budget | None = None, policy: str = POLICY
) -> AsyncGenerator[Stage]:
    """Open the session below `folder`, and invite the guest `scout`."""
    project = folder / "project"
    project.mkdir()
    log, audit = folder / "booked.jsonl", folder / "audit.jsonl"
    entry = {"command": sys.executable, "args": [str(SERVER), str(log)]}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"ledger": entry}}))
    async with (
        ParentSession.open(
            servers=project / ".mcp.json",
            policy=load([Source("program.policy", policy)], {}),
            confirm=yes,
            audit=audit,
            environ={"REMIT_HOME": str(folder / "home"), "PATH": "/usr/bin:/bin"},
        ) as session,
        invite(session, "scout", budget=budget) as view,
    ):
        yield Stage(session, view, log, audit)
