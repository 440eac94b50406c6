"""What an agent for editors is handed: where it is at home, and how a session is opened there. Values only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from mcp_client.auth.settings import AuthorizationStep
from orchestrator.agents.events import AgentEvent
from orchestrator.core.ports import Clock
from orchestrator.sessions.conversations import Conversations
from orchestrator.sessions.elicitations import ElicitationMode
from orchestrator.sessions.entries import ServerEntry, ServersFile
from orchestrator.sessions.sandbox import SandboxMinimum
from orchestrator.sessions.standing import Standing
from orchestrator.surfaces.acp.visiting import ComesBack

__all__ = ["Place", "SessionPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """A session to open: its name, where, the editor's servers, and who is told what agents do.

    `modes` are the ways in which the editor can ask a person for a server, `login` returns who has
    them log in to one.
    """

    name: str
    cwd: Path
    handed: ServersFile
    modes: frozenset[ElicitationMode]
    hear: Callable[[AgentEvent], None]
    login: Callable[[ServerEntry], AuthorizationStep | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the agent is at home.

    Attributes:
        open: opens the session behind a plan.
        kept: the list of sessions.
        project_of: whose a folder's records are.
        forget: removes the records of a session of a project.
        loopback: hears a browser come back from the login to a server.
        home: the person's home folder.
        minimum: reads what the person's settings confine servers to; None for nothing.
        clock: what time it is.
        version: of this program.
    """

    open: Callable[[SessionPlan], AbstractAsyncContextManager[Standing]]
    kept: Conversations
    project_of: Callable[[Path], Path]
    forget: Callable[[str, str], None]
    loopback: Callable[[ServerEntry], ComesBack]
    home: Path
    minimum: Callable[[], SandboxMinimum | None]
    clock: Clock
    version: str
