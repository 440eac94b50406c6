"""A pipeline as its file describes it: frozen values, each with its place. Reads and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from orchestrator.agents.budget import Budget
from orchestrator.authority.admission import Grant
from orchestrator.core.errors import Where
from orchestrator.pipelines.conditions import Condition
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.references import Reference

__all__ = [
    "PARALLEL",
    "AgentSpec",
    "GrantEntry",
    "GrantSpec",
    "InputSpec",
    "InputType",
    "InputValue",
    "Join",
    "PipelineSpec",
]

InputValue = str | int | bool | tuple[str, ...]
"""What an input holds once it is bound; a path is an absolute one, as text."""

PARALLEL: Final = 8
"""Items of one map at work at the same time, where the file says nothing."""


class InputType(Enum):
    """What an input may be."""

    TEXT = "text"
    PATH = "path"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    LIST = "list"
    """Texts; on a command line a JSON list."""


class Join(Enum):
    """Which of its needs an agent waits for to have ended well."""

    ALL = "all"
    ANY = "any"
    """All have ended, and at least one well; the answers of the others are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """One input. Without a default it must be given."""

    name: str
    type: InputType
    where: Where
    default: InputValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantEntry:
    """One `server/pattern` of a grant, and its place."""

    server: str
    pattern: str
    where: Where

    def __str__(self) -> str:
        return f"{self.server}/{self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantSpec:
    """What is left of an agent's rights. A kind that the file does not name leaves nothing of it."""

    tools: tuple[GrantEntry, ...] = ()
    resources: tuple[GrantEntry, ...] = ()
    prompts: tuple[GrantEntry, ...] = ()
    delegate: tuple[GrantEntry, ...] = ()

    @property
    def entries(self) -> tuple[GrantEntry, ...]:
        """All of them."""
        return (*self.tools, *self.resources, *self.prompts, *self.delegate)

    @property
    def authority(self) -> Grant:
        """The grant as admission takes it."""
        return Grant(
            tools=tuple(str(entry) for entry in self.tools),
            delegate=tuple(str(entry) for entry in self.delegate),
            resources=tuple(str(entry) for entry in self.resources),
            prompts=tuple(str(entry) for entry in self.prompts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One step: an agent, or with `over` one agent for each item of a list.

    Attributes:
        name: its own; an item's is `NAME-1` and so on.
        role: the policy's word for it.
        model: None where only the command line can name one.
        prompt: as written.
        needs: the agents whose answers it is handed.
        grant: what is left of its rights; None leaves the policy alone.
        budget: what each attempt of it may spend.
        join: which of its needs must have ended well.
        when: it runs only if this holds.
        over: where the list stands that it is mapped over.
        parallel: how many items are at work at the same time.
        failures: how many items may end badly without the step doing so.
        idempotent: its calls may be made again without harm: the file's own word.
        retries: further attempts after one that failed; only if it is idempotent.
        returns: the JSON Schema that its answer, or each item's, must fit.
        gate: what a person is asked before it starts; empty for nothing.
    """

    name: str
    role: str
    model: str | None
    prompt: str
    needs: tuple[str, ...]
    grant: GrantSpec | None
    budget: Budget
    where: Where
    role_where: Where
    join: Join = Join.ALL
    when: Condition | None = None
    over: Reference | None = None
    parallel: int = PARALLEL
    failures: int = 0
    idempotent: bool = False
    retries: int = 0
    returns: ProjectFile | None = None
    gate: str = ""

    @property
    def authority(self) -> Grant:
        """The grant as admission takes it; without one the policy alone decides."""
        return Grant() if self.grant is None else self.grant.authority


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    """One pipeline, checked within itself: every name resolves, every file is there, no circle.

    Attributes:
        name: for people.
        file: the pipeline's own file.
        inputs: in the file's order.
        agents: in the file's order.
        order: the names of the agents in generations: each needs only agents of earlier ones.
        servers: the servers file, if one is named.
        policies: the policy files that it names; once policies are loaded, what they include as well.
        recipes: the recipes' files, by the FILE of `recipe:FILE:FUNCTION`.
        grant: what no agent of it exceeds; None sets no such border.
    """

    name: str
    file: ProjectFile
    inputs: tuple[InputSpec, ...]
    agents: tuple[AgentSpec, ...]
    order: tuple[tuple[str, ...], ...]
    servers: ProjectFile | None = None
    policies: tuple[ProjectFile, ...] = ()
    recipes: Mapping[str, ProjectFile] = field(default_factory=dict[str, ProjectFile])
    grant: GrantSpec | None = None

    @property
    def last(self) -> tuple[str, ...]:
        """The names of the agents whose results no other agent needs."""
        needed = {name for agent in self.agents for name in agent.needs}
        return tuple(agent.name for agent in self.agents if agent.name not in needed)

    def agent(self, name: str) -> AgentSpec:
        """Return the agent of that name. Raises KeyError if there is none."""
        for agent in self.agents:
            if agent.name == name:
                return agent
        raise KeyError(name)
