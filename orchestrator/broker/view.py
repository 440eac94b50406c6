"""What an agent holds: its tools as it is shown them, and one way to call them. It carries no right."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import CoroutineType
from typing import Any

from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import CapabilitySnapshot
from orchestrator.authority.standing import Standing
from orchestrator.catalog.toolbox import Toolbox
from orchestrator.core.calls import Call, CallMethod, PromptSpec, ResourceSpec, Spec, ToolSpec
from orchestrator.core.content import UntrustedContent
from orchestrator.core.errors import AuthorityError
from orchestrator.core.ids import AgentId

__all__ = ["AgentView"]


class AgentView:
    """One agent's side of the broker.

    Without an admitted snapshot the lists are empty and every call is refused; it never falls
    back to the parent's view (I28). `standing` is what it carries and has used. `owner` is the agent's
    own cell, where it acts under one of a task: what is opened for the agent alone ends with it.
    """

    __slots__ = ("_road", "agent", "cell", "owner", "snapshot", "standing", "toolbox")

    # by place: for a class, keywords cost as much again as all that it does
    def __init__(
        self,
        agent: AgentId,
        cell: Cell,
        snapshot: CapabilitySnapshot | None,
        road: Callable[[AgentView, Call], CoroutineType[Any, Any, UntrustedContent]],
        standing: Standing | None = None,
        toolbox: Toolbox | None = None,
        owner: Cell | None = None,
    ) -> None:
        self.agent = agent
        self.cell = cell
        self.owner = cell if owner is None else owner
        self.snapshot = snapshot
        self.standing = standing or Standing()
        self.toolbox = toolbox
        self._road = road

    @property
    def tools(self) -> Sequence[ToolSpec]:
        """What the agent is shown: of what was admitted, what is loaded where there is a toolbox."""
        if self.toolbox is not None:
            return self.toolbox
        return self.snapshot.table.specs if self.snapshot is not None else ()

    @property
    def resources(self) -> Sequence[ResourceSpec]:
        """The resources and templates that it may read, as it is shown them. None is read by that."""
        return [spec for spec in self._data(CallMethod.READ) if isinstance(spec, ResourceSpec)]

    @property
    def prompts(self) -> Sequence[PromptSpec]:
        """The prompts that it may get."""
        return [spec for spec in self._data(CallMethod.PROMPT) if isinstance(spec, PromptSpec)]

    def _data(self, method: CallMethod) -> Iterable[Spec]:
        if self.snapshot is None:
            return ()
        return (item.spec for item in self.snapshot.table.data if item.method is method)

    def call(self, call: Call) -> CoroutineType[Any, Any, UntrustedContent]:
        """Make one call: of a tool, or as `Call.read`, `Call.prompt` and `Call.completion` make it.

        Awaiting it raises AuthorityError or CallFailedError.
        """
        return self._road(self, call)

    def require(self) -> None:
        """Raise AuthorityError if the agent's authority has ended; asked before model requests."""
        reason = self.cell.reason
        if reason is not None:
            raise AuthorityError(
                f"agent {self.agent!r} has ended: {reason.value.replace('_', ' ')}", reason=reason
            )
