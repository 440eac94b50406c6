"""Where an editor's sessions are at home: this person's state folder, settings and policies.

Serves nobody; each session is opened under what is approved, pinned and set at that time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.assembling import forget_records
from orchestrator.sessions.conversations import Conversations
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.layers import SERVERS_FILE
from orchestrator.sessions.ports import SystemClock
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.settings import sandbox_minimum
from orchestrator.sessions.standing import Standing, StandingRequest, open_standing
from orchestrator.sessions.state import StatePaths
from orchestrator.surfaces.acp.plans import Place, SessionPlan
from orchestrator.surfaces.acp.visiting import ComesBack

__all__ = ["place_for"]


class _EditorsPerson:
    """A person is there, and is asked in the editor; whatever is not asked there is a no."""

    interactive = True

    async def approve(self, request: ApprovalRequest) -> bool:
        """Return False: nobody was asked."""
        return False


def place_for(
    request: StandingRequest,
    paths: StatePaths,
    kept: Conversations,
    *,
    environ: Mapping[str, str],
    home: Path,
    version: str,
    loopback: Callable[[ServerEntry], ComesBack],
) -> Place:
    """Return the place whose sessions are opened as `request` says, each in its own folder."""

    def opened(plan: SessionPlan) -> AbstractAsyncContextManager[Standing]:
        wanted = replace(
            request,
            folder=plan.cwd,
            handed=plan.handed,
            modes=plan.modes,
            record=_record(plan.name),
        )
        return open_standing(
            wanted,
            environ=environ,
            home=home,
            approver=_EditorsPerson(),
            login=plan.login,
            on_event=plan.hear,
        )

    return Place(
        open=opened,
        kept=kept,
        project_of=lambda cwd: project_of(cwd / SERVERS_FILE).resolve(),
        forget=lambda project, name: forget_records(paths, Path(project), _record(name)),
        loopback=loopback,
        home=home,
        minimum=partial(sandbox_minimum, paths),
        clock=SystemClock(),
        version=version,
    )


def _record(name: str) -> str:
    return f"acp/{name}"
