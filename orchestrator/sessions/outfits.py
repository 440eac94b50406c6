"""What all agents of one table begin with, worked out once: what a model is shown, and how their record reads.

Nothing in it is a right: what may be done is in the table.
"""

from __future__ import annotations

from typing import Final

from orchestrator.audit.forms import FilledRecord, RecordForm
from orchestrator.authority.snapshot import CapabilityTable
from orchestrator.catalog.toolbox import Toolbox
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.ids import AgentId
from orchestrator.sessions.discovering import SEARCH_TOOLS

__all__ = ["READ_RESULT", "Outfit"]

READ_RESULT: Final = "read_result"
"""The built-in tool by which an agent reads on where a result was cut."""


class Outfit:
    """One table with what comes with it. Shared: a session of many agents has few of them.

    Attributes:
        table: what its agents may reach.
        reads_on: whether they may read on where a result was cut.
    """

    __slots__ = ("_admitted", "_first", "_searches", "reads_on", "table")

    def __init__(self, table: CapabilityTable) -> None:
        self.table: Final = table
        self.reads_on: Final = table.find(BUILTIN_SERVER, READ_RESULT) is not None
        self._searches = any(table.find(BUILTIN_SERVER, tool) for tool in SEARCH_TOOLS)
        self._first = Toolbox(spec for spec in table.specs if spec.server == BUILTIN_SERVER)
        if not self._searches:
            self._first.load(spec for spec in table.specs if spec.server != BUILTIN_SERVER)
        self._admitted = RecordForm(
            "snapshot_admitted",
            {
                "agent": None,
                "role": table.principal.role,
                "snapshot": table.digest,
                "policy": table.policy.digest,
                "capabilities": len(table),
                "interactive": table.principal.interactive,
            },
        )

    @property
    def toolbox(self) -> Toolbox:
        """What a model is shown at the start: the built-in tools, if it can search for the rest.

        If it cannot, all that there is room for; and one that can load nothing needs none of its own.
        """
        return self._first.copy() if self._searches else self._first

    def admitted(self, agent: AgentId) -> FilledRecord:
        """Return the record that an agent was admitted with this."""
        return FilledRecord(self._admitted, (agent,))
