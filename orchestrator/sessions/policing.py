"""Policy files of a project: read, made into items to approve, held against the servers there are.

Decides nothing, and starts nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import policies
from orchestrator.catalog.listing import Catalog
from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.ids import ServerName
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.reading import TooLargeError, read_regular
from policies import Annotations, PolicySet

__all__ = ["PolicyFiles", "annotations_of", "check_policy", "read_policies", "tested_policy"]

_BYTES_MAX: Final = OrchestratorLimits().document_bytes_max


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFiles:
    """Policies as they were read, and what of them a person approves."""

    policy: PolicySet
    items: tuple[Item, ...]


def read_policies(
    paths: Sequence[Path], *, project: Path, parameters: Mapping[str, str]
) -> PolicyFiles:
    """Read policy files, to be used together; `parameters` are what `${NAME}` stands for.

    An item is named by the file's path below the project, as in a pipeline: one approval holds for
    both. Raises ConfigError for a file that cannot be read, PolicyError for what it holds.
    """
    sources: list[policies.Source] = []
    items: list[Item] = []
    for path in paths:
        content = _content(path)
        real = path.resolve()
        root = project.resolve()
        name = real.relative_to(root).as_posix() if real.is_relative_to(root) else real.as_posix()
        items.append(
            Item(
                name=name,
                kind=ItemKind.POLICY,
                digest=hashlib.sha256(content).hexdigest(),
                origin=Origin.PROJECT,
                description_lines=("decides what agents may do",),
            )
        )
        try:
            sources.append(policies.Source(str(path), content.decode()))
        except UnicodeDecodeError as error:
            raise ConfigError(
                f"policy file {path} is not UTF-8",
                code="E-POLICY-FILE",
                where=Where(str(path), content.count(b"\n", 0, error.start) + 1),
            ) from None
    return PolicyFiles(policy=policies.load(sources, dict(parameters)), items=tuple(items))


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


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, bytes_max=_BYTES_MAX)
    except TooLargeError:
        raise ConfigError(
            f"{path} is larger than {_BYTES_MAX} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=Where(str(path)),
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the policy file {path}: {error.strerror}",
            code="E-POLICY-FILE",
            where=Where(str(path)),
        ) from error
