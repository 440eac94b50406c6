"""What an agent may reach, frozen when it starts: identities, verdicts and cells. Never a client."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from orchestrator.authority.ceilings import Ceiling, Pin
from orchestrator.authority.ledger import Cell
from orchestrator.core.calls import Call, CallMethod, PromptSpec, ResourceSpec, ToolSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.denials import DENIALS, Denial, DenyReason
from orchestrator.core.display import safe_line
from orchestrator.core.ids import AgentId
from policies import Decision, Effect, Operation, PolicySet, Principal, Resource, Verdict

__all__ = [
    "OPERATIONS",
    "Capability",
    "CapabilitySnapshot",
    "CapabilityTable",
    "DataCapability",
    "Lost",
    "Row",
    "TableDiff",
    "ToolCapability",
]

OPERATIONS: Final[Mapping[CallMethod, Operation]] = {
    CallMethod.TOOL: Operation.CALL,
    CallMethod.READ: Operation.READ,
    CallMethod.PROMPT: Operation.GET_PROMPT,
    CallMethod.COMPLETE: Operation.COMPLETE,
}
"""What a policy calls each of the things that may be asked of a server."""

MATCHED_CHARS_MAX: Final = 100_000
"""Of one URI held against templates, its characters once for each part of each template: 50 ms. A server
writes the templates, and can have a model ask for any URI; what is beyond is not found."""
TEMPLATE_CHARS: Final = 300
"""What a template costs besides: the reading of it."""

_TOOL: Final = CallMethod.TOOL
_Key = tuple[str, CallMethod, CapabilityKind, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One thing that may be invoked, with the verdict on it and the cells that it depends on.

    `target` is the cell of its definition, `link` that of its server, `login` that of the login
    which it is reached with: an identity, never a token. None where the server has no login.
    `resource` is what the policy was asked about. `ceilings` are what each agent above may hand on,
    `pins` the arguments that a spawn above has fixed: a call keeps within all of them. `method` is
    what may be asked: a prompt that may be got and completed is two capabilities. `constant` is the
    decision under the policy of the start, if nothing in a call can change it.
    """

    ref: CapabilityRef
    verdict: Verdict
    target: Cell
    link: Cell
    resource: Resource
    method: CallMethod = CallMethod.TOOL
    login: Cell | None = None
    ceilings: tuple[Ceiling, ...] = ()
    pins: tuple[Pin, ...] = ()
    constant: Decision | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # found once for all calls: each asks for it twice
        free = not (self.ceilings or self.pins)
        object.__setattr__(self, "constant", self.verdict.constant if free else None)

    @property
    def operation(self) -> Operation:
        """What a policy calls it."""
        return OPERATIONS[self.method]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCapability(Capability):
    """A tool, with what a model is shown of it."""

    spec: ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCapability(Capability):
    """A resource, a template of resources, or a prompt, with what an agent is shown of it.

    `at` returns what a template comes to at one URI: None where it does not mean that URI, or
    nobody may read it there. Decided by the same policy and grants as the table.
    """

    spec: ResourceSpec | PromptSpec
    at: Callable[[str], Capability | None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table that a person is shown: a capability and what was decided on it.

    `effects` are the effects that are possible for some arguments; `rule` the one that decides
    where it does not depend on them. `granted` is False where the grant leaves it out. `method` is
    what may be asked: a prompt that may be got and completed has two rows.
    """

    ref: CapabilityRef
    effects: frozenset[Effect]
    rule: str
    granted: bool
    method: CallMethod = CallMethod.TOOL

    @property
    def operation(self) -> Operation:
        """What a policy calls it."""
        return OPERATIONS[self.method]

    @property
    def visible(self) -> bool:
        """True if the agent sees it: some call of it could be permitted or asked."""
        return self.granted and bool(self.effects & {Effect.PERMIT, Effect.ASK})


@dataclass(frozen=True, slots=True)
class Lost:
    """A capability of a snapshot that is dead, and why."""

    ref: CapabilityRef
    reason: DenyReason

    @property
    def denial(self) -> Denial:
        """What that took away, and how to get it back."""
        return DENIALS[self.reason]

    def __str__(self) -> str:
        why = self.reason.value.replace("_", " ")
        return f"{self.ref}: {why}; lost: {self.denial.lost}; {self.denial.regain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDiff:
    """How one table stands to another: what only the later has, only the earlier, and both otherwise.

    `changed` are capabilities of one name with another definition or other possible effects.
    """

    added: tuple[CapabilityRef, ...]
    removed: tuple[CapabilityRef, ...]
    changed: tuple[CapabilityRef, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


class CapabilityTable:
    """What one role under one grant may reach. Immutable; shared by all agents of that grant.

    `above` are the agents that could hand it on, from the session down.
    """

    __slots__ = (
        "__weakref__",
        "_by_name",
        "_data",
        "_templates",
        "digest",
        "policy",
        "principal",
        "rows",
        "specs",
    )

    def __init__(
        self,
        *,
        principal: Principal,
        policy: PolicySet,
        capabilities: Iterable[ToolCapability],
        rows: Iterable[Row],
        data: Iterable[DataCapability] = (),
    ) -> None:
        self.principal = principal
        self.policy = policy
        self._data: Mapping[_Key, DataCapability] = MappingProxyType(
            {(item.ref.server, item.method, item.ref.kind, item.ref.name): item for item in data}
        )
        self._by_name = MappingProxyType(
            {(item.ref.server, item.ref.name): item for item in capabilities}
        )
        self._templates = tuple(
            (item.ref, item.at)
            for item in self._data.values()
            if item.at is not None and item.method is CallMethod.READ
        )
        self.rows = tuple(rows)
        self.specs = tuple(item.spec for item in self._by_name.values())
        self.digest = hashlib.sha256(self.canonical()).hexdigest()

    def find(self, server: str, name: str) -> ToolCapability | None:
        """Return the tool of that exact server and name, if it is in the table."""
        return self._by_name.get((server, name))  # type: ignore[arg-type]

    def find_call(self, call: Call) -> Capability | None:
        """Return what a call is about, if it is in the table; a URI may be a template's."""
        if call.method is _TOOL:
            return self._by_name.get((call.server, call.tool))  # type: ignore[arg-type]
        found = self._data.get((call.server, call.method, call.kind, call.tool))
        if found is not None or call.method is not CallMethod.READ:
            return found
        return self._meant(call.server, call.tool)

    def _meant(self, server: str, uri: str) -> Capability | None:
        """Return what the first template that means a URI comes to there."""
        left = MATCHED_CHARS_MAX
        for ref, at in self._templates:
            template = ref.name
            # what stands before the first expression stands in each URI
            if ref.server != server or not uri.startswith(template.partition("{")[0]):
                continue
            left -= TEMPLATE_CHARS + len(uri) * (1 + 2 * template.count("{"))
            if left < 0:
                return None
            meant = at(uri)
            if meant is not None:
                return meant
        return None

    def __iter__(self) -> Iterator[ToolCapability]:
        """Go through the tools."""
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name) + len(self._data)

    @property
    def data(self) -> Iterable[DataCapability]:
        """Resources, templates and prompts, each once for each thing that may be asked of it."""
        return self._data.values()

    @property
    def everything(self) -> Iterator[Capability]:
        """Go through all of it: the tools, then the rest."""
        yield from self._by_name.values()
        yield from self._data.values()

    def attenuate(self, keep: Callable[[CapabilityRef], bool]) -> CapabilityTable:
        """Return a table without what `keep` turns down. It never has more than this one (I6)."""
        return CapabilityTable(
            principal=self.principal,
            policy=self.policy,
            capabilities=[item for item in self._by_name.values() if keep(item.ref)],
            data=[item for item in self._data.values() if keep(item.ref)],
            rows=[row if keep(row.ref) else replace(row, granted=False) for row in self.rows],
        )

    def diff(self, earlier: CapabilityTable) -> TableDiff:
        """Return what has changed since `earlier`, for whoever is to be given this one instead."""
        mine, theirs = self._signatures(), earlier._signatures()
        return TableDiff(
            added=tuple(ref for key, (ref, _) in mine.items() if key not in theirs),
            removed=tuple(ref for key, (ref, _) in theirs.items() if key not in mine),
            changed=tuple(
                ref
                for key, (ref, effects) in mine.items()
                if key in theirs and (ref, effects) != theirs[key]
            ),
        )

    def _signatures(
        self,
    ) -> dict[_Key, tuple[CapabilityRef, frozenset[Effect]]]:
        return {
            (item.ref.server, item.method, item.ref.kind, item.ref.name): (
                item.ref,
                item.verdict.possible,
            )
            for item in self.everything
        }

    def canonical(self) -> bytes:
        """Return what `digest` is over: ASCII JSON without blanks, in an order of its own."""
        content = {
            "capabilities": sorted(
                [
                    str(item.ref.server),
                    item.ref.kind.value,
                    item.ref.name,
                    item.ref.digest,
                    item.method.value,
                    ",".join(sorted(effect.value for effect in item.verdict.possible)),
                    *sorted(f"{pin.tool} {pin.pointer} {pin.value!r}" for pin in item.pins),
                ]
                for item in self.everything
            ),
            "policy": self.policy.digest,
            "role": self.principal.role,
        }
        return json.dumps(content, separators=(",", ":")).encode("ascii")


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
        return tuple(dict.fromkeys(item.ref for item in self.table.everything))

    def lines(self) -> tuple[str, ...]:
        """Return the table for a person: each capability, what would be decided, and whether it lives.

        Names are a server's own words: made safe for a terminal.
        """
        lost = {item.ref: item.reason.value for item in self.changes()}
        return tuple(
            f"{safe_line(str(row.ref), reveal=True)}  "
            f"{'/'.join(sorted(effect.value for effect in row.effects))}  "
            f"{safe_line(row.rule) or '-'}  "
            f"{'lost: ' + lost[row.ref] if row.ref in lost else 'in force'}"
            for row in self.table.rows
            if row.visible
        )

    def changes(self) -> tuple[Lost, ...]:
        """Return which capabilities are dead, each with its cause."""
        whole = self.cell.reason
        lost: list[Lost] = []
        for item in self.table.everything:
            login = None if item.login is None else item.login.reason
            reason = whole or login or item.target.reason or item.link.reason
            if reason is not None:
                lost.append(Lost(item.ref, reason))
        return tuple(dict.fromkeys(lost))
