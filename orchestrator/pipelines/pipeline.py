"""A pipeline with everything that it names, read and checked. Nothing of it has started yet."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

import policies
from orchestrator.agents.model import Model
from orchestrator.agents.recipe import RecipeSource
from orchestrator.agents.resolve import check_model_name, resolve_model
from orchestrator.catalog.listing import Catalog
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.documents import canonical_digest, read_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import IdSource
from orchestrator.pipelines.checking import (
    check_models,
    check_pipeline,
    check_tools,
    pipeline_items,
)
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.inputs import bind_inputs
from orchestrator.pipelines.loading import load_pipeline
from orchestrator.pipelines.spec import InputSpec, InputType, InputValue, PipelineSpec
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.configuration import ServersSource, load_servers, read_servers
from orchestrator.sessions.entries import (
    ConfigWarning,
    EntryState,
    ServerEntry,
    ServersFile,
    merge_servers,
    server_item,
)
from orchestrator.sessions.layers import SERVERS_FILE
from orchestrator.sessions.policing import check_policy
from orchestrator.sessions.policy_files import PolicyFileReader
from orchestrator.sessions.projects import output_folder, project_of
from orchestrator.sessions.sandbox import SandboxMinimum
from policies import PolicySet

__all__ = ["OUT_INPUT", "Pipeline", "PipelineRequest"]

OUT_INPUT: Final = "out"
"""The input of type path that is given the run's output folder, where it is given nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRequest:
    """What somebody wants to run, and with what.

    Attributes:
        path: the pipeline's file.
        origin: whose word the pipeline and all that it names is.
        project: the folder that its files may not leave; what `${workspaceFolder}` stands for.
        inputs: values by name, as text.
        folder: what path inputs are relative to.
        out: the run's output folder.
        environ: the variables that a servers file may use.
        home: what `${userHome}` stands for.
        minimum: what the person's settings confine servers to; None for nothing.
        allow_variables: the variables that a project's servers file may see.
        model: takes the place of every agent's model, if not empty.
        profile: the user's own servers file, which need not exist; None leaves it out of account.
    """

    path: Path
    origin: Origin
    project: Path
    folder: Path
    out: Path
    environ: Mapping[str, str]
    home: Path
    minimum: SandboxMinimum | None
    inputs: Mapping[str, str]
    allow_variables: frozenset[str] = frozenset()
    model: str = ""
    profile: Path | None = None

    @property
    def projects(self) -> tuple[Path, ...]:
        """The folders whose links decide nothing: the pipeline's, and the one that we stand in."""
        return self.project, project_of(self.folder / "here")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A pipeline that could start: every name in it means something.

    Attributes:
        spec: its file.
        values: its inputs, bound.
        policy: its policies, together; without any, each call is asked about (S-48).
        servers: the servers that its agents may be granted.
        labels: every label that a policy may name: those of the whole file, of the project's and the
            user's own, and ours. One policy may serve several pipelines.
        warnings: what was left out of account, one line each.
        origin: whose word it is.
        model: takes the place of every agent's model, if not empty.
    """

    spec: PipelineSpec
    values: Mapping[str, InputValue]
    policy: PolicySet
    servers: tuple[ServerEntry, ...]
    labels: tuple[str, ...]
    warnings: tuple[str, ...]
    origin: Origin
    model: str = ""

    @classmethod
    def load(cls, request: PipelineRequest) -> Pipeline:
        """Read a pipeline, its servers file and its policies, and check them against one another.

        Raises ConfigError or PolicyError, with file, line and the nearest right name, for anything
        that is misspelt, missing or of a wrong type. Nothing is started.
        """
        request = replace(request, out=output_folder(request.out, projects=request.projects))
        spec = load_pipeline(request.path, root=request.project)
        values = _bound(spec, request)
        file = _servers(spec, request, values)
        servers = _needed(spec, file)
        names = [entry.name for entry in file.entries]
        policy, files = _policy(spec, values, request)
        spec = replace(spec, policies=files)
        check_pipeline(spec, policy=policy, servers=names)
        if request.model:
            check_model_name(request.model)
        else:
            check_models(spec)
        labels = (*dict.fromkeys((*names, *_elsewhere(request), BUILTIN_SERVER)),)
        check_policy(policy, dict.fromkeys(labels), _roles(spec, policy))
        return cls(
            spec=spec,
            values=values,
            policy=policy,
            servers=servers,
            labels=labels,
            warnings=tuple(_told(item) for item in file.warnings),
            origin=request.origin,
            model=request.model,
        )

    def items(self) -> tuple[Item, ...]:
        """Return everything that takes effect only if a person has approved it."""
        return (
            *pipeline_items(self.spec, self.origin),
            *(server_item(entry) for entry in self.servers),
            *self._lent(),
        )

    def _lent(self) -> Iterator[Item]:
        """Yield the user's own servers that a project's agents would use: that is for the user to say."""
        for entry in self.servers:
            if entry.origin is Origin.PROFILE and self.origin is Origin.PROJECT:
                yield Item(
                    name=entry.name,
                    kind=ItemKind.SERVER,
                    digest=canonical_digest(["lent", entry.digest, self.spec.file.digest]),
                    origin=Origin.PROJECT,
                    description_lines=(
                        "your own server, from your profile",
                        "this pipeline's agents would use it, under the project's policy",
                    ),
                )

    def models(self, ids: IdSource) -> Mapping[str, Model]:
        """Return each agent's model by the agent's name. Runs the code of recipes: approve first.

        Raises ConfigError for a model that there is not.
        """
        return MappingProxyType(
            {
                agent.name: resolve_model(
                    self.model or agent.model or "", recipes=self._recipe, ids=ids
                )
                for agent in self.spec.agents
            }
        )

    def check_catalog(self, catalog: Catalog, builtins: Collection[str]) -> None:
        """Check grants and policies against what the servers offer; no agent has started yet.

        Raises ConfigError, with file, line and the nearest right name.
        """
        check_tools(self.spec, catalog=catalog, builtins=builtins)
        known: dict[str, Mapping[str, Mapping[str, object]] | None] = dict.fromkeys(self.labels)
        known[BUILTIN_SERVER] = {name: {} for name in builtins}
        for entry in self.servers:
            listing = catalog.listing(entry.name)
            known[entry.name] = (
                {tool.name: tool.input_schema for tool in listing.tools} if listing else None
            )
        check_policy(self.policy, known, _roles(self.spec, self.policy))

    def _recipe(self, name: str) -> RecipeSource:
        file = self.spec.recipes[name]
        return RecipeSource(
            path=str(file.path), module=f"remit_recipe_{file.digest[:16]}", content=file.content
        )


def _told(warning: ConfigWarning) -> str:
    advice = f"; {warning.fix}" if warning.fix else ""
    return f"{warning.where}: {warning.message}{advice}"


def _roles(spec: PipelineSpec, policy: PolicySet) -> set[str] | None:
    """Return the roles in use; None where no policy declares any, and each is as good."""
    if not any(item.roles for item in policy.policies):
        return None
    return {agent.role for agent in spec.agents}


def _bound(spec: PipelineSpec, request: PipelineRequest) -> Mapping[str, InputValue]:
    given = dict(request.inputs)
    for item in spec.inputs:
        if item.name == OUT_INPUT:
            _refuse_other_out(item)
            given[OUT_INPUT] = _output(given.get(OUT_INPUT), request)
        if any(agent.name == item.name for agent in spec.agents):
            raise ConfigError(
                f"{item.name!r} is an input and an agent",
                code="E-PIPELINE-INPUT",
                why="both would be handed over under that name",
                fix="rename one of them",
                where=item.where,
            )
    return bind_inputs(spec, given, folder=request.folder)


def _output(text: str | None, request: PipelineRequest) -> str:
    """Return the output folder that was given as an input, else the run's own."""
    if text is None:
        return str(request.out)
    try:
        place = request.folder / Path(text).expanduser()
        return str(output_folder(place, projects=request.projects)) if text else text
    except (ValueError, RuntimeError):  # no path; binding it says so
        return text


def _refuse_other_out(item: InputSpec) -> None:
    """Raise ConfigError if a file would decide where agents write: that is for who starts it."""
    if item.type is InputType.PATH and item.default is None:
        return
    raise ConfigError(
        f"the input {OUT_INPUT!r} is the run's output folder: a path, without a default",
        code="E-PIPELINE-INPUT",
        why="a pipeline's file cannot choose where agents write",
        fix='write type = "path" and no default, or give the input another name',
        where=item.where,
    )


def _servers(
    spec: PipelineSpec, request: PipelineRequest, values: Mapping[str, InputValue]
) -> ServersFile:
    """Return the profile's servers and the pipeline's; the profile has a label first (S-20)."""
    out = values.get(OUT_INPUT)
    source = ServersSource(
        origin=request.origin,
        minimum=request.minimum,
        project=request.project.resolve(),
        home=request.home,
        environ=request.environ,
        allow_variables=request.allow_variables,
        out=str(request.out if out is None else out),
    )
    own = (
        ServersFile()
        if spec.servers is None
        else read_servers(read_json(spec.servers.content, str(spec.servers.path)), source)
    )
    profile = request.profile
    if request.origin is not Origin.PROJECT or profile is None or not profile.exists():
        return own
    return merge_servers(load_servers(profile, replace(source, origin=Origin.PROFILE)), own)


def _elsewhere(request: PipelineRequest) -> Iterator[str]:
    """Yield the labels of servers that are configured here, whether or not this pipeline has them.

    A file that cannot be read names none: whoever uses it is told.
    """
    for path, origin in (
        (request.project / SERVERS_FILE, Origin.PROJECT),
        (request.profile, Origin.PROFILE),
    ):
        if path is None or not path.is_file():
            continue
        source = ServersSource(
            origin=origin,
            minimum=None,  # for their names alone
            project=request.project.resolve(),
            home=request.home,
            environ={},
        )
        with suppress(ConfigError):
            yield from (entry.name for entry in load_servers(path, source).entries)


def _needed(spec: PipelineSpec, file: ServersFile) -> tuple[ServerEntry, ...]:
    """Return the servers that an agent could be granted; the others are not even started.

    A server of the profile has to be named by a grant, and then no agent may be without one: what a
    project does not name, it cannot reach. Raises the problem of a server that a grant names and
    that cannot be used.
    """
    named = {entry.server for agent in spec.agents if agent.grant for entry in agent.grant.entries}
    anything = any(agent.grant is None for agent in spec.agents)
    needed: list[ServerEntry] = []
    for entry in file.entries:
        if entry.name in named and entry.problem is not None:
            raise entry.problem
        if entry.origin is Origin.PROFILE:
            if entry.name not in named:
                continue
            _refuse_open(spec, entry)
        if entry.state is EntryState.READY and (anything or entry.name in named):
            needed.append(entry)
    return tuple(needed)


def _refuse_open(spec: PipelineSpec, entry: ServerEntry) -> None:
    """Raise ConfigError if an agent without a grant could reach a server of the user's own."""
    for agent in spec.agents:
        if agent.grant is None:
            raise ConfigError(
                f"agent {agent.name!r} has no grant, and could reach your own server {entry.name}",
                code="E-PIPELINE-GRANT",
                why="a server of the profile is for the agents that name it",
                fix=f"give {agent.name} a grant, or the pipeline one at the top",
                where=agent.where,
            )


def _policy(
    spec: PipelineSpec, values: Mapping[str, InputValue], request: PipelineRequest
) -> tuple[PolicySet, tuple[ProjectFile, ...]]:
    """Return the policies, and their files: those that the pipeline names, and what these include."""
    if not spec.policies:
        return policies.ASK_ALL, ()
    reader = PolicyFileReader()
    sources = [
        reader.taken(file.path, file.content, shown=_shown(file, request)) for file in spec.policies
    ]
    parameters = {
        name: str(value) for name, value in values.items() if not isinstance(value, tuple)
    }
    policy = policies.load(sources, parameters, read=reader.included)
    root = request.project.resolve()
    files = tuple(
        ProjectFile(
            # what is included lies beside a file of the project, or below
            name=text.path.relative_to(root).as_posix(),
            path=text.path,
            content=text.content,
            digest=text.digest,
        )
        for text in reader.texts
    )
    return policy, files


def _shown(file: ProjectFile, request: PipelineRequest) -> str:
    """Return a file's name for messages and records: one that leads there from where we are."""
    if request.origin is Origin.BUILTIN:
        return file.name
    folder = request.folder.resolve()
    return str(file.path.relative_to(folder) if file.path.is_relative_to(folder) else file.path)
