"""A pipeline beside what there is: roles of the policy, servers, their tools. Also what to approve.

`--dry-run` and a run go through the same checks; both come before anything of a pipeline starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from orchestrator.catalog.listing import Catalog
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import ServerName
from orchestrator.core.nearest import did_you_mean
from orchestrator.pipelines.files import ProjectFile
from orchestrator.pipelines.spec import AgentSpec, GrantEntry, PipelineSpec
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from policies import PolicySet
from policies.limits import PolicyLimits
from policies.patterns import NamePattern, expand_braces

__all__ = ["check_models", "check_pipeline", "check_tools", "pipeline_items"]

_POLICY_LIMITS: Final = PolicyLimits()


def check_pipeline(spec: PipelineSpec, *, policy: PolicySet, servers: Collection[str]) -> None:
    """Raise ConfigError, with place and nearest name, for a role or a server that there is not.

    Roles are those that the policies declare; if they declare none, any role is as good. Needs no
    server to run: call it before one is started.
    """
    roles = {role.name for item in policy.policies for role in item.roles}
    for agent in spec.agents:
        if roles and agent.role not in roles:
            raise ConfigError(
                f"agent {agent.name!r} has a role that no policy declares: {_shown(agent.role)}",
                code="E-PIPELINE-ROLE",
                fix=did_you_mean(agent.role, roles),
                where=agent.role_where,
            )
        for entry in agent.grant.entries if agent.grant else ():
            if entry.server != BUILTIN_SERVER and entry.server not in servers:
                raise ConfigError(
                    f"the grant of agent {agent.name!r} names a server that there is not: "
                    f"{_shown(entry.server)}",
                    code="E-PIPELINE-SERVER",
                    fix=did_you_mean(entry.server, (*servers, BUILTIN_SERVER)),
                    where=entry.where,
                )


def check_models(spec: PipelineSpec) -> None:
    """Raise ConfigError for an agent without a model: for where the command line names none."""
    for agent in spec.agents:
        if agent.model is None:
            raise ConfigError(
                f"agent {agent.name!r} has no model",
                code="E-PIPELINE-MODEL",
                fix='add model = "…" to it, or give --model PROVIDER:NAME',
                where=agent.where,
            )


def check_tools(spec: PipelineSpec, *, catalog: Catalog, builtins: Collection[str] = ()) -> None:
    """Raise ConfigError for a granted tool that its server does not offer: no agent has started yet.

    A server that listed nothing, since it is down, is passed over. A pattern has to match one tool.
    """
    for agent in spec.agents:
        if agent.grant is None:
            continue
        for entry in (*agent.grant.tools, *agent.grant.delegate):
            if entry.server == BUILTIN_SERVER:
                _check_tool(agent, entry, builtins, {})
                continue
            listing = catalog.listing(ServerName(entry.server))
            if listing is not None:
                quarantined = {item.name: item.reason for item in listing.quarantined}
                _check_tool(agent, entry, [tool.name for tool in listing.tools], quarantined)


def pipeline_items(spec: PipelineSpec, origin: Origin) -> tuple[Item, ...]:
    """Return what of a pipeline needs an approval: its file, its recipes (code), its policies.

    Servers have items of their own. What is approved is the content that `spec` holds.
    """
    lines = (
        *(
            f"agent {agent.name} ({agent.role}): {agent.model or 'no model'}"
            for agent in spec.agents
        ),
        *(
            f"input {item.name} ({item.type.value}), if you give none: {item.default}"
            for item in spec.inputs
            if item.default is not None
        ),
    )
    return (
        _item(spec.file, ItemKind.PIPELINE, origin, lines),
        *(
            _item(file, ItemKind.RECIPE, origin, ("runs as code in this process",))
            for file in _once(spec.recipes.values())
        ),
        *(
            _item(file, ItemKind.POLICY, origin, ("decides what agents may do",))
            for file in _once(spec.policies)
        ),
        *(
            _item(file, ItemKind.SETTINGS, origin, ("says what answers must look like",))
            for file in _once(agent.returns for agent in spec.agents if agent.returns)
        ),
    )


def _check_tool(
    agent: AgentSpec, entry: GrantEntry, names: Collection[str], quarantined: dict[str, str]
) -> None:
    for alternative in expand_braces(entry.pattern, _POLICY_LIMITS):
        pattern = NamePattern.parse(alternative)
        if any(pattern.matches(name) for name in names):
            continue
        raise ConfigError(
            f"the grant of agent {agent.name!r} names a tool that {entry.server} does not offer: "
            f"{_shown(alternative)}",
            code="E-PIPELINE-TOOL",
            why=quarantined.get(alternative, ""),
            fix=safe_line(did_you_mean(alternative, names), reveal=True, chars_max=2_000),
            where=entry.where,
        )


def _item(file: ProjectFile, kind: ItemKind, origin: Origin, lines: tuple[str, ...]) -> Item:
    return Item(
        name=file.name,
        kind=kind,
        digest=file.digest,
        origin=origin,
        description_lines=lines,
        text=file.content.decode("utf-8", "backslashreplace"),
    )


def _once(files: Iterable[ProjectFile]) -> tuple[ProjectFile, ...]:
    return tuple({file.name: file for file in files}.values())


def _shown(text: str) -> str:
    return f"'{safe_line(text, reveal=True, chars_max=120)}'"
