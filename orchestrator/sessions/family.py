"""The delegation tree of a session: who descends from whom, within which caps. Starts nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Generic, Protocol, TypeVar

from orchestrator.authority.ledger import Cell
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.core.nearest import did_you_mean

__all__ = ["PARENT", "Family", "Member", "depth_of"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
PARENT: Final = AgentId("parent")
"""The parent's own agent, and the role that a policy calls it by."""
_BELOW_PARENT: Final = f"{PARENT}/"
_SWEEP_MIN: Final = 64


def depth_of(agent: AgentId) -> int:
    """Return how far an agent stands below the session: the parent's own is at 0."""
    below = agent.count("/")
    return below if agent == PARENT or agent.startswith(_BELOW_PARENT) else below + 1


class Member(Protocol):
    """An agent, as far as the tree knows it."""

    @property
    def id(self) -> AgentId:
        """Its path."""
        ...

    @property
    def cell(self) -> Cell:
        """What it lives by."""
        ...


M = TypeVar("M", bound=Member)


class Family(Generic[M]):
    """The agents of one session. A dead one gives its name and its place free."""

    def __init__(self, limits: OrchestratorLimits) -> None:
        self._limits = limits
        self._members: dict[AgentId, M] = {}
        self._children: dict[AgentId, set[AgentId]] = {}
        self._descendants: dict[AgentId, int] = {}
        self._sweep_at = _SWEEP_MIN

    @property
    def living(self) -> Mapping[AgentId, M]:
        """The agents whose authority has not ended."""
        self._sweep()
        return dict(self._members)

    def find(self, agent: str) -> M:
        """Return a living agent. Raises ConfigError if there is none of this path."""
        found = self._members.get(AgentId(agent))
        if found is None or found.cell.reason is not None:
            raise ConfigError(
                f"there is no agent {agent!r} at work",
                code="E-AGENT-UNKNOWN",
                fix=did_you_mean(agent, self.living),
            )
        return found

    def place(self, name: str, parent: M | None, *, own: bool = False) -> AgentId:
        """Return the path of a new agent. Raises ConfigError where a cap leaves no room for it.

        Only the parent's own agent has the parent's name, and only with `own`.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                f"{name!r} is no name for an agent",
                code="E-AGENT-NAME",
                fix="use letters, digits, - and _, at most 64",
            )
        agent = AgentId(f"{parent.id}/{name}" if parent is not None else name)
        taken = self._members.get(agent)
        if (agent == PARENT) is not own or (taken is not None and taken.cell.reason is None):
            raise ConfigError(f"there is an agent {agent!r} already", code="E-AGENT-NAME")
        if len(self._members) >= min(self._limits.agents_max, self._sweep_at):
            self._sweep()
        if len(self._members) >= self._limits.agents_max:
            raise ConfigError(
                f"a session has at most {self._limits.agents_max} live agents",
                code="E-AGENT-LIMIT",
                fix="close some, or raise agents_max",
            )
        if depth_of(agent) > self._limits.depth_max:
            raise ConfigError(
                f"agents stand at most {self._limits.depth_max} below one another",
                code="E-AGENT-DEPTH",
            )
        if parent is not None:
            self._check_tree(parent.id)
        return agent

    def add(self, member: M) -> None:
        """Take in a new agent, in the place that `place` gave it."""
        agent = member.id
        self._members[agent] = member
        if "/" in agent:
            self._children.setdefault(_above(agent), set()).add(agent)
            root = AgentId(agent.partition("/")[0])
            self._descendants[root] = self._descendants.get(root, 0) + 1
        else:
            # another incarnation of the name has a tree of its own
            self._descendants.pop(agent, None)

    def below(self, agent: AgentId) -> Iterator[M]:
        """Go through the living agents below one, in no order."""
        for item in self.living.values():
            if item.id.startswith(f"{agent}/"):
                yield item

    def _check_tree(self, parent: AgentId) -> None:
        live = self.children(parent)
        if live >= self._limits.children_max:
            raise ConfigError(
                f"agent {parent!r} has {live} live children, the most there may be",
                code="E-AGENT-WIDTH",
                fix="wait until some have ended, or raise children_max",
            )
        root = AgentId(parent.partition("/")[0])
        if self._descendants.get(root, 0) >= self._limits.descendants_max:
            raise ConfigError(
                f"{self._limits.descendants_max} agents were made below {root!r}, "
                "the most there may ever be",
                code="E-AGENT-TOTAL",
                fix="give the task to fewer agents, or raise descendants_max",
            )

    def children(self, agent: AgentId) -> int:
        """Count the living children of an agent."""
        return sum(self._lives(name) for name in self._children.get(agent, set()))

    def _lives(self, agent: AgentId) -> bool:
        member = self._members.get(agent)
        return member is not None and member.cell.reason is None

    def _sweep(self) -> None:
        """Forget the dead: often enough to stay small, seldom enough to cost nothing."""
        self._members = {
            key: item for key, item in self._members.items() if item.cell.reason is None
        }
        self._children = {
            key: live
            for key, names in self._children.items()
            if key in self._members and (live := {name for name in names if self._lives(name)})
        }
        self._descendants = {
            key: made for key, made in self._descendants.items() if key in self._members
        }
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._members))


def _above(agent: AgentId) -> AgentId:
    return AgentId(agent.rpartition("/")[0])
