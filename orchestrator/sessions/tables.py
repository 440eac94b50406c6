"""What agents of one role and grant may reach, worked out once and shared. Makes no agent.

A table depends on role, depth, grant and ancestors, never on an agent's own name: ten thousand agents
of one grant have one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from orchestrator.authority.admission import Ancestor, Grant, Offer, attenuate
from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import CapabilityTable
from orchestrator.broker import BuiltinTool
from orchestrator.catalog.listing import CatalogTool
from orchestrator.catalog.names import model_names
from orchestrator.core.calls import ToolSpec
from orchestrator.core.ids import AgentId
from orchestrator.sessions.family import depth_of
from orchestrator.sessions.servers import ServerConnection
from policies import PolicySet, Principal

__all__ = ["Tables"]


class Tables:
    """The tables of one session, as long as what they were made of is what there is."""

    def __init__(
        self,
        *,
        shown: Callable[[], Iterable[tuple[ServerConnection, CatalogTool]]],
        builtins: Mapping[str, BuiltinTool],
        builtin_cell: Cell,
        policy: PolicySet,
        interactive: bool,
    ) -> None:
        self._shown = shown
        self._builtins = builtins
        self._builtin_cell = builtin_cell
        self._policy = policy
        self._interactive = interactive
        self._tables: dict[tuple[Principal, Grant, tuple[Ancestor, ...]], CapabilityTable] = {}

    @property
    def policy(self) -> PolicySet:
        """The policy by which tables are made now."""
        return self._policy

    def decide_by(self, policy: PolicySet) -> None:
        """Make tables by another policy from now on."""
        self._policy = policy
        self._tables.clear()

    def clear(self) -> None:
        """Forget all tables: something else is on offer now. Who has one keeps it."""
        self._tables.clear()

    def of(
        self, agent: AgentId, role: str, grant: Grant, above: tuple[Ancestor, ...]
    ) -> CapabilityTable:
        """Return the table of a child of the session, or of a child of those `above`."""
        return self.at(depth_of(agent), role or agent, grant, above)

    def at(
        self, depth: int, role: str, grant: Grant, above: tuple[Ancestor, ...] = ()
    ) -> CapabilityTable:
        """Return the table of a role at a depth; 0 is the parent's own."""
        principal = Principal(role=role, depth=depth, interactive=self._interactive)
        key = (principal, grant, above)
        table = self._tables.get(key)
        if table is None:
            table = attenuate(
                self._offers(), principal=principal, policy=self._policy, grant=grant, above=above
            )
            self._tables[key] = table
        return table

    def _offers(self) -> Iterable[Offer]:
        tools = list(self._shown())
        names = model_names((tool.key for _, tool in tools), builtins=self._builtins)
        for connection, tool in tools:
            yield Offer(
                ref=tool.ref,
                target=connection.definitions[tool.name][1],
                link=connection.cell,
                login=connection.login.cell if connection.login is not None else None,
                spec=ToolSpec(
                    model_name=names[tool.key],
                    server=tool.server,
                    tool=tool.name,
                    description=tool.description,
                    input_schema=tool.input_schema,
                ),
            )
        for builtin in self._builtins.values():
            yield Offer(
                ref=builtin.ref,
                target=self._builtin_cell,
                link=self._builtin_cell,
                spec=ToolSpec(
                    model_name=builtin.name,
                    server=builtin.ref.server,
                    tool=builtin.name,
                    description=builtin.description,
                    input_schema=builtin.input_schema,
                ),
            )
