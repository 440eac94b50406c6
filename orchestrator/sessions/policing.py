"""Policy files of a project: read, made into items to approve, held against the servers there are.

Decides nothing, and starts nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import policies
from orchestrator.catalog.listing import Catalog
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.policy_files import PolicyFileReader, PolicyText
from policies import Annotations, PolicySet
from policies.model import Keep

__all__ = [
    "PolicyFiles",
    "annotations_of",
    "check_policy",
    "read_policies",
    "refuse_keeping",
    "tested_policy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFiles:
    """Policies as they were read, and what of them a person approves."""

    policy: PolicySet
    items: tuple[Item, ...]


def read_policies(
    paths: Sequence[Path], *, project: Path, parameters: Mapping[str, str]
) -> PolicyFiles:
    """Read policy files, and those that they include, to be used together.

    `parameters` are what `${NAME}` stands for. There is an item for each file that was read, named by
    its path below the project, as in a pipeline: one approval holds for both. Raises ConfigError for a file that cannot be read, PolicyError for what it holds.
    """
    reader = PolicyFileReader()
    sources = [reader.given(path) for path in paths]
    policy = policies.load(sources, dict(parameters), read=reader.included)
    root = project.resolve()
    return PolicyFiles(policy=policy, items=tuple(_item(text, root) for text in reader.texts))


def _item(text: PolicyText, root: Path) -> Item:
    path = text.path
    return Item(
        name=path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix(),
        kind=ItemKind.POLICY,
        digest=text.digest,
        origin=Origin.PROJECT,
        description_lines=("decides what agents may do",),
        text=text.source.text,
    )


def refuse_keeping(policy: PolicySet) -> None:
    """Raise ConfigError if a rule keeps argument values on record: a project has no say in that.

    What a project's files say may narrow what agents do. To keep values is to give them away to whoever
    reads the log: only who owns the log, by the profile or in a program, decides so.
    """
    for rule in policy.rules:
        if any(isinstance(duty, Keep) for duty in rule.duties):
            raise ConfigError(
                "a policy of a project keeps no argument values in the audit log",
                code="E-POLICY-KEEP",
                why="it may only narrow, and this gives values away that the log otherwise has as digests",
                fix="move the rule to a policy of your profile, if it is what you want",
                where=Where(rule.place.path, rule.place.line, rule.place.column),
            )


def check_policy(
    policy: PolicySet,
    servers: Mapping[str, Mapping[str, Mapping[str, object]] | None],
    roles: Collection[str] | None,
) -> None:
    """Raise ConfigError for the first thing in the policies that does not fit what there is.

    `servers` has the tools of each server with their input schemas; None where they are not known.
    `roles` are those that agents have; None where that is not known.
    """
    known = policies.Catalogue(servers)
    for finding in (f for each in policy.layers for f in policies.validate(each, known, roles)):
        if finding.severity is policies.Severity.ERROR:
            place = finding.place
            raise ConfigError(
                finding.message,
                code="E-POLICY-" + finding.code.upper(),
                fix=f"did you mean {finding.nearest!r}?" if finding.nearest else "",
                where=Where(place.path, place.line, place.column),
            )


def tested_policy(
    sources: Iterable[policies.Source],
    parameters: Mapping[str, str],
    catalog: Catalog,
    servers: Collection[ServerName],
) -> PolicySet:
    """Return policies that fit the servers there are and pass their own tests.

    Raises PolicyError for what cannot be read, ConfigError for what does not fit or pass.
    """
    policy = policies.load(sources, parameters)
    known: dict[str, Mapping[str, Mapping[str, object]] | None] = {BUILTIN_SERVER: None}
    for name in servers:
        listing = catalog.listing(name)
        tools = None if listing is None else listing.tools
        known[name] = None if tools is None else {tool.name: tool.input_schema for tool in tools}
    check_policy(policy, known, None)
    for outcome in policies.run_tests(policy):
        if not outcome.passed:
            place = outcome.case.place
            raise ConfigError(
                f"the policy does not pass its own test: {outcome.why}",
                code="E-POLICY-TEST",
                fix="change the rule, or the test if it is what is wrong",
                where=Where(place.path, place.line, place.column),
            )
    return policy


def annotations_of(written: Mapping[str, object]) -> Annotations:
    """Return a server's hints about a tool, as it gave them; what is no boolean was not said."""

    def said(name: str) -> bool | None:
        value = written.get(name)
        return value if isinstance(value, bool) else None

    return Annotations(
        read_only=said("readOnlyHint"),
        destructive=said("destructiveHint"),
        idempotent=said("idempotentHint"),
        open_world=said("openWorldHint"),
    )
