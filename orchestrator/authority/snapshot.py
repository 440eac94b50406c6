"""What an agent may reach, frozen when it starts: identities, verdicts and cells. Never a client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import MappingProxyType

from orchestrator.authority.ledger import Cell
from orchestrator.core.calls import ToolSpec
from orchestrator.core.capability import CapabilityRef
from orchestrator.core.errors import DenyReason
from orchestrator.core.ids import AgentId
from policies import Effect, PolicySet, Principal, Verdict

__all__ = ["Capability", "CapabilitySnapshot", "CapabilityTable", "Lost", "Row"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that may be invoked, with the verdict on it and the cells that it depends on.

    `target` is the cell of its definition, `link` that of its server, `login` that of the login
    which it is reached with: an identity, never a token. None where the server has no login.
    """

    ref: CapabilityRef
    verdict: Verdict
    target: Cell
    link: Cell
    spec: ToolSpec
    login: Cell | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table that a person is shown: a capability and what was decided on it.

    `effects` are the effects that are possible for some arguments; `rule` the one that decides
    where it does not depend on them. `granted` is False where the grant leaves it out.
    """

    ref: CapabilityRef
    effects: frozenset[Effect]
    rule: str
    granted: bool = True

    @property
    def visible(self) -> bool:
        """True if the agent sees it: some call of it could be permitted or asked."""
        return self.granted and bool(self.effects & {Effect.PERMIT, Effect.ASK})


@dataclass(frozen=True, slots=True)
class Lost:
    """A capability of a snapshot that is dead, and why."""

    ref: CapabilityRef
    reason: DenyReason


class CapabilityTable:
    """What one role under one grant may reach. Immutable; shared by all agents of that grant."""

    __slots__ = ("_by_name", "digest", "policy", "principal", "rows", "specs")

    def __init__(
        self,
        *,
        principal: Principal,
        policy: PolicySet,
        capabilities: Iterable[Capability],
        rows: Iterable[Row],
    ) -> None:
        self.principal = principal
        self.policy = policy
        self._by_name = MappingProxyType(
            {(item.ref.server, item.ref.name): item for item in capabilities}
        )
        self.rows = tuple(rows)
        self.specs = tuple(item.spec for item in self._by_name.values())
        self.digest = self._digest()

    def find(self, server: str, name: str) -> Capability | None:
        """Return the capability of that exact server and name, if it is in the table."""
        return self._by_name.get((server, name))  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Capability]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def _digest(self) -> str:
        content = {
            "role": self.principal.role,
            "policy": self.policy.digest,
            "capabilities": sorted(
                [
                    str(item.ref.server),
                    item.ref.kind.value,
                    item.ref.name,
                    item.ref.digest,
                    ",".join(sorted(effect.value for effect in item.verdict.possible)),
                ]
                for item in self._by_name.values()
            ),
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilitySnapshot:
    """The frozen view of one agent. Making one is O(1): the table is shared.

    `cell` is the agent's own, in the incarnation that the snapshot was admitted for. Nothing is
    ever added to a snapshot; what is lost from it is told by `changes`.
    """

    agent: AgentId
    cell: Cell
    table: CapabilityTable

    @property
    def digest(self) -> str:
        """SHA-256 over what may be reached and under which policy, in hexadecimal."""
        return self.table.digest

    @property
    def refs(self) -> tuple[CapabilityRef, ...]:
        """What was admitted, dead or alive."""
        return tuple(item.ref for item in self.table)

    def changes(self) -> tuple[Lost, ...]:
        """Return which capabilities are dead, each with its cause."""
        whole = self.cell.reason
        lost: list[Lost] = []
        for item in self.table:
            reason = whole or item.target.reason or item.link.reason
            if reason is not None:
                lost.append(Lost(item.ref, reason))
        return tuple(lost)
