"""What agents of one role and grant may reach, worked out once and shared. Makes no agent.

A table depends on role, depth, grant and ancestors, and on an agent's own name only where a policy
does: otherwise ten thousand agents of one grant have one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from orchestrator.authority.admission import Ancestor, Grant, Offer, attenuate
from orchestrator.authority.history import PolicyHistory
from orchestrator.authority.ledger import Cell
from orchestrator.broker import BuiltinTool
from orchestrator.catalog.listing import CatalogTool
from orchestrator.catalog.names import model_names
from orchestrator.core.calls import ToolSpec
from orchestrator.core.ids import AgentId
from orchestrator.sessions.family import PARENT, depth_of
from orchestrator.sessions.outfits import Outfit
from orchestrator.sessions.policing import annotations_of
from orchestrator.sessions.servers import ServerConnection
from policies import PolicySet, Principal

__all__ = ["Tables"]

TABLES_MAX: Final = 1_024
"""Tables that are kept at a time. An agent without a role is a role of its own; who has a table keeps it."""


class Tables:
    """The tables of one session, as long as what they were made of is what there is."""

    def __init__(
        self,
        *,
        shown: Callable[[], Iterable[tuple[ServerConnection, CatalogTool]]],
        shown_data: Callable[[], Iterable[Offer]],
        builtins: Mapping[str, BuiltinTool],
        builtin_cell: Cell,
        policies: PolicyHistory,
        interactive: bool,
        children: Callable[[AgentId], int],
    ) -> None:
        self._shown = shown
        self._shown_data = shown_data
        self._builtins = builtins
        self._builtin_cell = builtin_cell
        self._policies = policies
        self._interactive = interactive
        self._children = children
        self._tables: dict[tuple[object, ...], Outfit] = {}
        self._short: dict[tuple[str, bool, Grant], Outfit] = {}
        self._read: tuple[PolicySet, bool, bool] | None = None

    def clear(self) -> None:
        """Forget all tables: something else is on offer now. Who has one keeps it."""
        self._tables.clear()
        self._short.clear()

    def of(self, agent: AgentId, role: str, grant: Grant, above: tuple[Ancestor, ...]) -> Outfit:
        """Return the table of an agent, below those `above`; the parent's own is below nobody."""
        policy = self._policies.present
        # most agents are made by the program: who is of one role and grant is one to the policy
        short = None if above else (role or agent, agent == PARENT, grant)
        if short is not None:
            found = self._short.get(short)
            if found is not None and found.table.policy is policy:
                return found
        names_agents, bounds_children = self._said_by(policy)
        children = 0
        if above and bounds_children:
            children = self._children(AgentId(agent.rpartition("/")[0]))
        principal = Principal(
            role=role or agent,
            agent=agent if names_agents else "",
            depth=depth_of(agent),
            interactive=self._interactive,
            above=tuple(replace(each.principal, above=()) for each in above),
        )
        key = (principal, grant, above, children)
        found = self._tables.get(key)
        if found is None:
            table = attenuate(
                self._offers(),
                principal=principal,
                policy=policy,
                grant=grant,
                above=above,
                since=self._policies.since,
                children=children,
            )
            if len(self._tables) >= TABLES_MAX:
                self.clear()
            found = self._tables[key] = Outfit(table)
        if short is not None and not names_agents:
            self._short[short] = found
        return found

    def _said_by(self, policy: PolicySet) -> tuple[bool, bool]:
        """Return whether it names agents, and bounds children: its rules are gone through once."""
        if self._read is None or self._read[0] is not policy:
            self._read = (policy, policy.names_agents, policy.bounds_children)
        return self._read[1:]

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
                annotations=annotations_of(tool.annotations),
            )
        yield from self._shown_data()
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
