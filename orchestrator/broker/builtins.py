"""Tools of our own. They take the same road as any server's: decided, admitted, recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.broker.view import AgentView
from orchestrator.core.calls import CallMethod
from orchestrator.core.capability import BUILTIN_SERVER, CapabilityKind, CapabilityRef

__all__ = ["BuiltinTool", "list_capabilities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinTool:
    """A tool that the orchestrator itself answers, under the server label `remit`.

    `run` gets the view of the agent that calls and the decoded arguments, and returns text. `ref` is
    its identity, with the digest of its definition.
    """

    name: str
    description: str
    run: Callable[[AgentView, Mapping[str, object]], Awaitable[str]]
    input_schema: Mapping[str, object] = field(default_factory=lambda: {"type": "object"})
    ref: CapabilityRef = field(init=False)

    def __post_init__(self) -> None:
        definition = json.dumps(
            [self.name, self.description, self.input_schema], sort_keys=True, ensure_ascii=False
        )
        digest = hashlib.sha256(definition.encode()).hexdigest()
        ref = CapabilityRef(BUILTIN_SERVER, CapabilityKind.TOOL, self.name, digest)
        object.__setattr__(self, "ref", ref)


async def _list_capabilities(view: AgentView, arguments: Mapping[str, object]) -> str:
    lost = {item.ref: item for item in view.snapshot.changes()} if view.snapshot else {}
    rows = [
        {
            "server": item.ref.server,
            "tool": item.ref.name,
            "effects": sorted(effect.value for effect in item.verdict.possible),
            "lost": lost[item.ref].reason.value if item.ref in lost else None,
            "regain": lost[item.ref].denial.regain if item.ref in lost else None,
        }
        for item in (view.snapshot.table if view.snapshot else ())
    ]
    rows += [
        {
            "server": item.ref.server,
            item.ref.kind.value: item.ref.name,
            "effects": sorted(effect.value for effect in item.verdict.possible),
            "lost": lost[item.ref].reason.value if item.ref in lost else None,
            "regain": lost[item.ref].denial.regain if item.ref in lost else None,
        }
        for item in (view.snapshot.table.data if view.snapshot else ())
        if item.method is not CallMethod.COMPLETE
    ]
    return json.dumps(rows, ensure_ascii=False)


list_capabilities = BuiltinTool(
    name="list_capabilities",
    description="List what this agent may call, what needs a person's consent, and what was lost.",
    run=_list_capabilities,
)
"""An agent's own view: no name in it that the policy denies."""
