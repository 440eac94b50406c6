"""Reads pipelines from TOML and checks each within itself. Starts nothing, asks no server.

Every file that a pipeline names is relative to the pipeline's own file and lies in the project.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from types import MappingProxyType
from typing import Final

from orchestrator.agents.model import RECIPE_PROVIDER
from orchestrator.core.display import safe_line
from orchestrator.core.documents import Table, read_toml
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.nearest import did_you_mean, nearest
from orchestrator.pipelines.files import ProjectFile, read_project_file
from orchestrator.pipelines.graph import CycleError, generations
from orchestrator.pipelines.inputs import PromptError, inputs_in
from orchestrator.pipelines.returns import check_schema
from orchestrator.pipelines.rights import read_grant
from orchestrator.pipelines.spec import (
    AgentSpec,
    GrantSpec,
    InputSpec,
    InputType,
    InputValue,
    PipelineSpec,
)
from orchestrator.pipelines.stepping import STEP_KEYS, read_flow
from orchestrator.sessions.settings import read_budget

__all__ = ["AGENTS_MAX", "INPUTS_MAX", "load_pipeline"]

AGENTS_MAX: Final = 100
"""Agents of one pipeline: more are not read by anybody before they run."""
INPUTS_MAX: Final = 100
"""Inputs of one pipeline."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_TITLE_CHARS_MAX: Final = 128
_MAPPED_CHARS_MAX: Final = 56
_PROVIDER: Final = re.compile(r"[a-z][a-z0-9_.-]*")
_PARENT: Final = "parent"
"""What the session's own agent is called; a pipeline's cannot be."""


def load_pipeline(path: Path, *, root: Path | None = None) -> PipelineSpec:
    """Read a pipeline and everything that it names. `root` is the project; else the file's folder.

    Raises ConfigError, with file and line and the nearest right name: for TOML that is none, an
    unknown key or agent or input, a wrong type, a missing file, one outside of the project, a
    circle of needs, and a model that is none.
    """
    if path.is_dir():
        raise ConfigError(
            f"{_shown(str(path))} is a folder",
            code="E-PIPELINE-FILE",
            fix="name the pipeline's file in it",
            where=Where(str(path)),
        )
    project = root if root is not None else path.parent
    file = read_project_file(path.name, folder=path.parent, root=project, where=Where(str(path)))
    return _Reading(file, read_toml(file.content, str(path)).table(), project).pipeline()


class _Reading:
    """One pipeline, being read."""

    def __init__(self, file: ProjectFile, table: Table, root: Path) -> None:
        self._file = file
        self._table = table
        self._root = root
        self._recipes: dict[str, ProjectFile] = {}

    def pipeline(self) -> PipelineSpec:
        table = self._table
        table.only(("remit", "name", "servers", "policy", "grant", "inputs", "agents"))
        if table.integer("remit") != 1:
            raise table.error("a pipeline of another version of remit", "remit", fix="remit = 1")
        name = table.text("name")
        if not 0 < len(name) <= _TITLE_CHARS_MAX:
            raise table.error(f"a name has 1 to {_TITLE_CHARS_MAX} characters", "name")
        inputs = tuple(self._inputs())
        border = read_grant(table)
        agents = self._agents([item.name for item in inputs], border)
        servers = table.text("servers", None)
        return PipelineSpec(
            name=name,
            file=self._file,
            inputs=inputs,
            agents=agents,
            order=self._order(agents),
            servers=None if servers is None else self._named(servers, table.where("servers")),
            policies=tuple(
                self._named(text, table.document.where(("policy", number)))
                for number, text in enumerate(table.strings("policy", ()))
            ),
            recipes=MappingProxyType(dict(self._recipes)),
            grant=border,
        )

    def _named(self, text: str, where: Where) -> ProjectFile:
        return read_project_file(text, folder=self._file.path.parent, root=self._root, where=where)

    def _inputs(self) -> list[InputSpec]:
        tables = self._table.optional("inputs")
        if tables is None:
            return []
        if len(tables) > INPUTS_MAX:
            raise self._table.error(f"more than {INPUTS_MAX} inputs", "inputs")
        found: list[InputSpec] = []
        for name, table in tables.tables():
            if not _INPUT_NAME.fullmatch(name):
                raise tables.error(
                    f"not a name for an input: {_shown(name)}",
                    name,
                    fix="use letters, digits and _, at most 64",
                )
            table.only(("type", "default"))
            kind = InputType(
                table.choice("type", [item.value for item in InputType], InputType.TEXT.value)
            )
            default = _default(table, kind)
            found.append(InputSpec(name=name, type=kind, where=table.where(), default=default))
        return found

    def _agents(self, inputs: Collection[str], border: GrantSpec | None) -> tuple[AgentSpec, ...]:
        tables = self._table.table("agents")
        if not 0 < len(tables) <= AGENTS_MAX:
            raise self._table.error(f"a pipeline has 1 to {AGENTS_MAX} agents", "agents")
        found = tuple(
            self._agent(name, table, tables, inputs, border) for name, table in tables.tables()
        )
        for agent in found:
            if agent.over is not None:
                _refuse_items_name(agent, found)
        return found

    def _agent(
        self,
        name: str,
        table: Table,
        agents: Table,
        inputs: Collection[str],
        border: GrantSpec | None,
    ) -> AgentSpec:
        if not _NAME.fullmatch(name) or name == _PARENT:
            raise agents.error(
                f"not a name for an agent: {_shown(name)}",
                name,
                fix=f"use letters, digits, - and _, at most 64, and not {_PARENT!r}",
            )
        table.only(("role", "model", "prompt", "needs", "grant", "budget", "returns", *STEP_KEYS))
        needs = _needs(name, table, tuple(agents))
        flow = read_flow(table, inputs=inputs, needs=needs)
        return AgentSpec(
            name=name,
            role=table.text("role", name),
            model=self._model(table),
            prompt=_prompt(table, inputs),
            needs=needs,
            grant=read_grant(table, border),
            budget=read_budget(table),
            where=table.where(),
            role_where=table.where("role"),
            join=flow.join,
            when=flow.when,
            over=flow.over,
            parallel=flow.parallel,
            failures=flow.failures,
            idempotent=flow.idempotent,
            retries=flow.retries,
            returns=self._returns(table),
            gate=flow.gate,
        )

    def _returns(self, table: Table) -> ProjectFile | None:
        text = table.text("returns", None)
        if text is None:
            return None
        file = self._named(text, table.where("returns"))
        check_schema(file, table.where("returns"))
        return file

    def _model(self, table: Table) -> str | None:
        text = table.text("model", None)
        if text is None:
            return None
        provider, _, name = text.partition(":")
        if not name or not _PROVIDER.fullmatch(provider):
            near = nearest(provider, (RECIPE_PROVIDER,))
            raise table.error(
                f"{_shown(text)} names no model",
                "model",
                fix=f"did you mean '{near}:FILE.py:FUNCTION'?"
                if near
                else "write recipe:FILE.py:FUNCTION or PROVIDER:NAME",
            )
        if provider == RECIPE_PROVIDER:
            self._add_recipe(name, table)
        elif nearest(provider, (RECIPE_PROVIDER,)) is not None:
            # No provider is called nearly so, and it would fail only once a model is called.
            raise table.error(
                f"{_shown(text)} names no model",
                "model",
                fix=f"did you mean '{RECIPE_PROVIDER}:{safe_line(name)}'?",
            )
        return text

    def _add_recipe(self, name: str, table: Table) -> None:
        file, _, function = name.rpartition(":")
        if not file.endswith(".py") or not function.isidentifier():
            raise table.error(
                f"{_shown(name)} names no recipe", "model", fix="write recipe:FILE.py:FUNCTION"
            )
        if file not in self._recipes:
            self._recipes[file] = self._named(file, table.where("model"))

    def _order(self, agents: tuple[AgentSpec, ...]) -> tuple[tuple[str, ...], ...]:
        try:
            return generations({agent.name: agent.needs for agent in agents})
        except CycleError as error:
            raise ConfigError(
                f"agents wait for one another in a circle: {error}",
                code="E-PIPELINE-CYCLE",
                fix="take one name out of one of the `needs`",
                where=self._table.document.where(("agents", error.names[0], "needs")),
            ) from None


def _default(table: Table, kind: InputType) -> InputValue | None:
    match kind:
        case InputType.TEXT | InputType.PATH:
            return table.text("default", None)
        case InputType.INTEGER:
            return table.integer("default", None)
        case InputType.BOOLEAN:
            return table.flag("default", None)
        case InputType.LIST:
            return table.strings("default", None)


def _refuse_items_name(mapped: AgentSpec, agents: Collection[AgentSpec]) -> None:
    """Raise ConfigError if an agent is called like an item of a mapped one."""
    if len(mapped.name) > _MAPPED_CHARS_MAX:
        raise ConfigError(
            f"the name of a mapped agent has at most {_MAPPED_CHARS_MAX} characters",
            code="E-PIPELINE-MAP",
            why="each item's agent is called after it, with a number",
            where=mapped.where,
        )
    for agent in agents:
        rest = agent.name.removeprefix(f"{mapped.name}-")
        if rest != agent.name and rest.isdecimal():
            raise ConfigError(
                f"{agent.name!r} is also what an item of {mapped.name!r} would be called",
                code="E-PIPELINE-MAP",
                fix="rename one of them",
                where=agent.where,
            )


def _prompt(table: Table, inputs: Collection[str]) -> str:
    text = table.text("prompt", "")
    try:
        used = inputs_in(text)
    except PromptError as error:
        raise table.error(str(error), "prompt", fix=error.fix) from None
    for name in used:
        if name not in inputs:
            raise table.error(
                f"the prompt uses an input that is not declared: {_shown(name)}",
                "prompt",
                fix=did_you_mean(name, inputs) or f"add [inputs.{name}]",
            )
    return text


def _needs(name: str, table: Table, agents: Collection[str]) -> tuple[str, ...]:
    needs = table.strings("needs", ())
    for number, other in enumerate(needs):
        where = table.document.where((*table.keys, "needs", number))
        if other not in agents:
            raise ConfigError(
                f"agent {name!r} needs {_shown(other)}, which is no agent here",
                code="E-PIPELINE-AGENT",
                fix=did_you_mean(other, [agent for agent in agents if agent != name]),
                where=where,
            )
        if other in needs[:number]:
            raise ConfigError(
                f"agent {name!r} needs {other!r} twice", code="E-PIPELINE-AGENT", where=where
            )
    return needs


def _shown(text: str) -> str:
    return f"'{safe_line(text, reveal=True, chars_max=120)}'"
