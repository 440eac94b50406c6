"""A pipeline as its file describes it: frozen values, each with its place. Reads and runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from orchestrator.agents.budget import Budget
from orchestrator.authority.admission import Grant
from orchestrator.core.errors import Where
from orchestrator.pipelines.files import ProjectFile

__all__ = [
    "AgentSpec",
    "GrantEntry",
    "GrantSpec",
    "InputSpec",
    "InputType",
    "InputValue",
    "PipelineSpec",
]

InputValue = str | int | bool
"""What an input holds once it is bound; a path is an absolute one, as text."""


class InputType(Enum):
    """What an input may be."""

    TEXT = "text"
    PATH = "path"
    INTEGER = "integer"
    BOOLEAN = "boolean"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """One agent. `role` is the policy's; `needs` are the agents whose results it is handed.

    `model` is None where only the command line can name one. `prompt` is as written.
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

    @property
    def authority(self) -> Grant:
        """The grant as admission takes it; without one the policy alone decides."""
        if self.grant is None:
            return Grant()
        return Grant(
            tools=tuple(str(entry) for entry in self.grant.tools),
            delegate=tuple(str(entry) for entry in self.grant.delegate),
        )


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
        policies: the policy files.
        recipes: the recipes' files, by the FILE of `recipe:FILE:FUNCTION`.
    """

    name: str
    file: ProjectFile
    inputs: tuple[InputSpec, ...]
    agents: tuple[AgentSpec, ...]
    order: tuple[tuple[str, ...], ...]
    servers: ProjectFile | None = None
    policies: tuple[ProjectFile, ...] = ()
    recipes: Mapping[str, ProjectFile] = field(default_factory=dict[str, ProjectFile])

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
