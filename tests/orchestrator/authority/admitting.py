"""Offers, policies and tables for the tests of what an agent may reach. Asserts nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import policies
from orchestrator.authority.admission import Ancestor, Grant, Offer, attenuate
from orchestrator.authority.ledger import Cell, CellKind, Ledger
from orchestrator.authority.snapshot import Capability, CapabilitySnapshot, CapabilityTable
from orchestrator.core.calls import ToolSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import AgentId, ServerName
from policies import PolicySet, Principal

WORKER = Principal(role="worker", agent="worker", depth=1)
OPEN = 'policy open v1 { permit "all" call on any server/* }'


def policy(text: str) -> PolicySet:
    return policies.load([policies.Source("test.policy", text)])


@dataclass
class Shop:
    """Servers with tools, each with a cell of its own."""

    names: Sequence[tuple[str, str]] = (("git", "log"), ("git", "push"), ("files", "read"))
    digest: str = "d1"
    ledger: Ledger = field(default_factory=lambda: Ledger(thread=lambda: 1))
    servers: dict[str, Cell] = field(default_factory=dict[str, Cell])
    tools: dict[tuple[str, str], Cell] = field(default_factory=dict[tuple[str, str], Cell])

    def __post_init__(self) -> None:
        self.policy_cell = self.ledger.open(CellKind.POLICY, "policy")
        self.session = self.ledger.open(CellKind.SESSION, "session")
        for server, tool in self.names:
            if server not in self.servers:
                self.servers[server] = self.ledger.open(CellKind.SERVER, server, under=self.session)
            self.tools[server, tool] = self.ledger.open(
                CellKind.DEFINITION, f"{server}/{tool}", under=self.servers[server]
            )

    def offers(self) -> list[Offer]:
        return [
            Offer(
                ref=CapabilityRef(ServerName(server), CapabilityKind.TOOL, tool, self.digest),
                target=self.tools[server, tool],
                link=self.servers[server],
                spec=ToolSpec(
                    model_name=f"mcp_{server}_{tool}",
                    server=server,
                    tool=tool,
                    description="",
                    input_schema={},
                ),
            )
            for server, tool in self.names
        ]

    def table(
        self,
        text: str = OPEN,
        *,
        grant: Grant | None = None,
        principal: Principal = WORKER,
        above: Sequence[Ancestor] = (),
        offers: Iterable[Offer] | None = None,
        since: Callable[[PolicySet], Sequence[PolicySet]] = lambda policy: (policy,),
        children: int = 0,
    ) -> CapabilityTable:
        return attenuate(
            self.offers() if offers is None else offers,
            principal=principal,
            policy=policy(text),
            grant=grant or Grant(),
            above=above,
            since=since,
            children=children,
        )

    def snapshot(
        self, table: CapabilityTable, agent: str = "worker", *, lease_until: float = math.inf
    ) -> CapabilitySnapshot:
        cell = self.ledger.open(CellKind.AGENT, agent, under=self.session, lease_until=lease_until)
        return CapabilitySnapshot(agent=AgentId(agent), cell=cell, table=table)


def names(table: CapabilityTable) -> list[str]:
    return [str(item.ref) for item in table]


def found(table: CapabilityTable, server: str, name: str) -> Capability:
    capability = table.find(server, name)
    assert capability is not None
    return capability
