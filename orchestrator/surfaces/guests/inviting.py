"""Makes the agent that a guest acts for: by its definition, or by the policy's word on a role."""

from __future__ import annotations

from typing import Final

from orchestrator.agents.budget import Budget
from orchestrator.agents.guest import GUEST
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.sessions.agents import OneOffSubagent
from orchestrator.sessions.opening import ParentSession
from orchestrator.surfaces.guests.view import SnapshotView

__all__ = ["GATEWAY_BUDGET", "invite"]

GATEWAY_BUDGET: Final = Budget(calls=10_000, bytes=1024 * 1024 * 1024, seconds=86_400.0)
"""A host that is left open for a day, and not for ever; what a definition or an option says goes first."""


def invite(session: ParentSession, name: str, *, budget: Budget | None = None) -> SnapshotView:
    """Return the view of a new agent: `name` is a definition, or a role that the policy permits something.

    A definition that waits for its approval is not passed over for a role of the same name. What
    `budget` leaves open is as the definition says.

    Raises:
        ConfigError: nothing of this name, nothing that it may use, or a budget that nobody can keep.
        AuthorityError: the session has ended, or has nothing left to spend.
    """
    wanted = budget or Budget()
    definitions = session.definitions
    if name in definitions.agents or definitions.waits(name):
        said = definitions.agent(name).budget
        agent = session.defined(
            name, model=GUEST, budget=wanted.or_else(said).or_else(GATEWAY_BUDGET)
        )
    else:
        agent = session.subagent(name, model=GUEST, budget=wanted.or_else(GATEWAY_BUDGET))
    view = SnapshotView(agent)
    if not _may_anything(agent):
        view.close()
        raise _nothing(session, name)
    return view


def _may_anything(agent: OneOffSubagent) -> bool:
    view = agent.view
    tools = any(spec.server != BUILTIN_SERVER for spec in view.tools)
    return tools or bool(view.resources) or bool(view.prompts)


def _nothing(session: ParentSession, name: str) -> ConfigError:
    known = ", ".join(sorted(session.definitions.agents)) or "none"
    return ConfigError(
        f"a guest {safe_line(name)!r} may use nothing of any server",
        code="E-GUEST-NOTHING",
        why="no rule of the policy permits it anything that the servers offer, within its definition",
        fix=f"name a definition ({known}) or a role that the policy has a permit for",
    )
