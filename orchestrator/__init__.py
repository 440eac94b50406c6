"""Subagents over MCP servers, under a policy, with authority that can be taken back.

The public names are resolved on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.agents.budget import Budget, Price
    from orchestrator.agents.events import AgentEvent
    from orchestrator.agents.guest import GUEST
    from orchestrator.agents.lifecycle import AgentState, TaskState
    from orchestrator.agents.model import AgentTask, CallResult, Model, Note
    from orchestrator.agents.recipe import recipe
    from orchestrator.agents.replay import RecordingModel, ReplayModel
    from orchestrator.agents.results import AgentResult
    from orchestrator.authority.admission import Grant
    from orchestrator.authority.snapshot import CapabilitySnapshot
    from orchestrator.broker.revocation import Receipt, Revocation
    from orchestrator.core.calls import Call
    from orchestrator.core.capability import CapabilityRef
    from orchestrator.core.content import UntrustedContent
    from orchestrator.core.errors import (
        AuthorityError,
        CallFailedError,
        Delivery,
        DenyReason,
        RemitError,
    )
    from orchestrator.core.limits import OrchestratorLimits
    from orchestrator.core.ports import ApprovalRequest, Approver
    from orchestrator.pipelines.building import StepGraph
    from orchestrator.pipelines.pipeline import Pipeline
    from orchestrator.sessions.agents import OneOffSubagent, Subagent
    from orchestrator.sessions.approvals import PendingApprovalError
    from orchestrator.sessions.asks import Ask, AskKind
    from orchestrator.sessions.lanes import ServerCap
    from orchestrator.sessions.models import language_model
    from orchestrator.sessions.opening import ParentSession
    from orchestrator.sessions.persistent import PersistentSubagent
    from orchestrator.sessions.tasks import Answer, Task, TaskFailedError
    from orchestrator.surfaces.guests.inviting import invite
    from orchestrator.surfaces.guests.view import SnapshotView

__all__ = [
    "GUEST",
    "AgentEvent",
    "AgentResult",
    "AgentState",
    "AgentTask",
    "Answer",
    "ApprovalRequest",
    "Approver",
    "Ask",
    "AskKind",
    "AuthorityError",
    "Budget",
    "Call",
    "CallFailedError",
    "CallResult",
    "CapabilityRef",
    "CapabilitySnapshot",
    "Delivery",
    "DenyReason",
    "Grant",
    "Model",
    "Note",
    "OneOffSubagent",
    "OrchestratorLimits",
    "ParentSession",
    "PendingApprovalError",
    "PersistentSubagent",
    "Pipeline",
    "Price",
    "Receipt",
    "RecordingModel",
    "RemitError",
    "ReplayModel",
    "Revocation",
    "ServerCap",
    "SnapshotView",
    "StepGraph",
    "Subagent",
    "Task",
    "TaskFailedError",
    "TaskState",
    "UntrustedContent",
    "invite",
    "language_model",
    "recipe",
]

_HOMES = {
    "GUEST": "orchestrator.agents.guest",
    "AgentEvent": "orchestrator.agents.events",
    "AgentResult": "orchestrator.agents.results",
    "AgentState": "orchestrator.agents.lifecycle",
    "AgentTask": "orchestrator.agents.model",
    "Answer": "orchestrator.sessions.tasks",
    "ApprovalRequest": "orchestrator.core.ports",
    "Approver": "orchestrator.core.ports",
    "Ask": "orchestrator.sessions.asks",
    "AskKind": "orchestrator.sessions.asks",
    "AuthorityError": "orchestrator.core.errors",
    "Budget": "orchestrator.agents.budget",
    "Call": "orchestrator.core.calls",
    "CallFailedError": "orchestrator.core.errors",
    "CallResult": "orchestrator.agents.model",
    "CapabilityRef": "orchestrator.core.capability",
    "CapabilitySnapshot": "orchestrator.authority.snapshot",
    "Delivery": "orchestrator.core.errors",
    "DenyReason": "orchestrator.core.errors",
    "Grant": "orchestrator.authority.admission",
    "Model": "orchestrator.agents.model",
    "Note": "orchestrator.agents.model",
    "OneOffSubagent": "orchestrator.sessions.agents",
    "OrchestratorLimits": "orchestrator.core.limits",
    "ParentSession": "orchestrator.sessions.opening",
    "PendingApprovalError": "orchestrator.sessions.approvals",
    "PersistentSubagent": "orchestrator.sessions.persistent",
    "Pipeline": "orchestrator.pipelines.pipeline",
    "Price": "orchestrator.agents.budget",
    "Receipt": "orchestrator.broker.revocation",
    "RecordingModel": "orchestrator.agents.replay",
    "RemitError": "orchestrator.core.errors",
    "ReplayModel": "orchestrator.agents.replay",
    "Revocation": "orchestrator.broker.revocation",
    "ServerCap": "orchestrator.sessions.lanes",
    "SnapshotView": "orchestrator.surfaces.guests.view",
    "StepGraph": "orchestrator.pipelines.building",
    "Subagent": "orchestrator.sessions.agents",
    "Task": "orchestrator.sessions.tasks",
    "TaskFailedError": "orchestrator.sessions.tasks",
    "TaskState": "orchestrator.agents.lifecycle",
    "UntrustedContent": "orchestrator.core.content",
    "invite": "orchestrator.surfaces.guests.inviting",
    "language_model": "orchestrator.sessions.models",
    "recipe": "orchestrator.agents.recipe",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
