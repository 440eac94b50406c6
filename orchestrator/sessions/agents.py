"""A subagent that is started once: its cell, its snapshot, its run, its end. It decides nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import anyio

from orchestrator.agents.budget import Budget, Price
from orchestrator.agents.loop import run_agent
from orchestrator.agents.model import AgentTask, Model
from orchestrator.agents.results import AgentResult
from orchestrator.authority.admission import Ancestor
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.authority.snapshot import CapabilitySnapshot, CapabilityTable
from orchestrator.broker import AgentView, Broker
from orchestrator.core.errors import AuthorityError, ConfigError, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.outcomes import RunStatus
from orchestrator.sessions.ports import SessionPorts

__all__ = ["AgentFlight", "OneOffSubagent"]


class AgentFlight:
    """An agent at work: when its cell dies, its task is cancelled, model request and all."""

    __slots__ = ("_cell", "_scope")

    def __init__(self, *, cell: Cell, scope: anyio.CancelScope) -> None:
        self._cell = cell
        self._scope = scope

    def lapsed(self) -> DenyReason | None:
        """Return why the agent may not go on; None if it may."""
        return self._cell.reason

    def interrupt(self, reason: DenyReason) -> None:
        """Cancel the agent's task."""
        self._scope.cancel()


@dataclass(kw_only=True)
class OneOffSubagent:
    """A child that works once. Made by `ParentSession.subagent`; holds no client.

    Its view is admitted when it is made: what is added later is never in it (I7). `lineage` are the
    agents that its own children would descend from, itself the last.
    """

    id: AgentId
    model: Model
    budget: Budget
    table: CapabilityTable | None
    cell: Cell
    ledger: Ledger
    broker: Broker
    ports: SessionPorts
    limits: OrchestratorLimits
    lineage: tuple[Ancestor, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    _started: bool = False

    @property
    def snapshot(self) -> CapabilitySnapshot | None:
        """The agent's frozen view; None if none was admitted, and then it reaches nothing."""
        if self.table is None:
            return None
        return CapabilitySnapshot(agent=self.id, cell=self.cell, table=self.table)

    @property
    def view(self) -> AgentView:
        """The agent's side of the broker."""
        return AgentView(
            agent=self.id, cell=self.cell, snapshot=self.snapshot, road=self.broker.call
        )

    async def run(self, prompt: str, inputs: Mapping[str, object] | None = None) -> AgentResult:
        """Work until there is an answer, and return what became of it. Then its authority ends.

        `inputs` are handed over as untrusted. An agent that is cancelled, or whose parent ends,
        returns a result with status CANCELLED and the true cause.

        Raises:
            ConfigError: it was started before, or its budget cannot be kept.
        """
        if self._started:
            raise ConfigError(
                f"agent {self.id!r} works once, and has", code="E-AGENT-STARTED", fix="make another"
            )
        self._started = True
        result: AgentResult | None = None
        reason: DenyReason | None = None
        with anyio.CancelScope() as scope:
            flight = AgentFlight(cell=self.cell, scope=scope)
            self.ledger.depart(flight)
            left = self.cell.lease_until - self.ports.clock.now()
            scope.deadline = anyio.current_time() + max(left, 0.0)
            reason = flight.lapsed()
            if reason is not None:  # it ended before it began
                scope.cancel()
            try:
                view = self.view
                result = await run_agent(
                    self.model,
                    view,
                    AgentTask(agent=self.id, prompt=prompt, inputs=inputs or {}),
                    self.budget,
                    clock=self.ports.clock,
                    telemetry=self.ports.telemetry,
                    audit=self.ports.audit,
                    emit=self.ports.emit,
                    gate=view.require,
                    limits=self.limits,
                    prices=self.prices,
                )
            finally:
                if self.ports.clock.now() >= self.cell.lease_until:
                    self.ledger.revoke(self.cell, DenyReason.LEASE_OVER)
                reason = self.cell.reason
                self.ledger.arrive(flight)
                self.close()
        if result is not None:
            return result
        cause = reason or DenyReason.AGENT_CANCELLED
        error = AuthorityError(
            f"agent {self.id!r} was stopped: {cause.value.replace('_', ' ')}", reason=cause
        )
        return AgentResult(agent=self.id, status=RunStatus.CANCELLED, error=error)

    def cancel(self) -> None:
        """Take the agent's authority back and stop it, and all below it."""
        self.ledger.revoke(self.cell, DenyReason.AGENT_CANCELLED)

    def close(self) -> None:
        """End its authority; what it started ends with it. Idempotent."""
        self.ledger.revoke(self.cell, DenyReason.AGENT_CLOSED)


def agent_cell(ledger: Ledger, agent: AgentId, under: Cell, lease_until: float = math.inf) -> Cell:
    """Open the cell of an agent. Raises AuthorityError if what it stands under has ended."""
    return ledger.open(CellKind.AGENT, agent, under=under, lease_until=lease_until)
