"""What `remit policy` does: reads policy files, and holds them against the servers there are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError, Where
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, load_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.pinning import PinKeeper
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.reading import TooLargeError, read_regular
from orchestrator.sessions.state import StatePaths
from policies import (
    Catalogue,
    Finding,
    Policy,
    PolicyError,
    PolicyLimits,
    PolicySet,
    Severity,
    Source,
    load,
    parse,
    validate,
)
from policies.analysis.findings import findings_of
from policies.evaluation import tests_of
from policies.model import (
    Compare,
    Fact,
    Host,
    Network,
    OneOf,
    Parameter,
    PathLike,
    Scalar,
    Template,
    Test,
    Text,
    Under,
)

__all__ = ["CheckReport", "check_files", "load_assuming", "read_argument", "read_sources"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found. `assumed` are the parameters that no value was given for."""

    files: int
    rules: int
    findings: tuple[Finding, ...]
    assumed: tuple[str, ...] = ()

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(finding.severity is Severity.ERROR for finding in self.findings)

    @property
    def ok(self) -> bool:
        """True if nothing is an error."""
        return not self.errors

    def findings_text(self) -> str:
        """Return every finding for a person: place, what is wrong, the line with a caret."""
        return "\n".join(
            f"{finding.severity.value} {finding.code}: {finding}" for finding in self.findings
        )

    def last_line(self) -> str:
        """Return the line that sums it up."""
        of = f"in {_counted(self.files, 'file')}"
        if not self.ok:
            return f"{_counted(self.errors, 'error')} {of}"
        assumed = f" (no value given for {', '.join(self.assumed)})" if self.assumed else ""
        return f"ok: {_counted(self.rules, 'rule')} {of}{assumed}"

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "ok": self.ok,
            "files": self.files,
            "rules": self.rules,
            "assumed_parameters": list(self.assumed),
            "findings": [
                {
                    "code": finding.code,
                    "severity": finding.severity.value,
                    "message": finding.message,
                    "path": finding.place.path,
                    "line": finding.place.line,
                    "column": finding.place.column,
                    "nearest": finding.nearest,
                    "excerpt": finding.excerpt,
                }
                for finding in self.findings
            ],
        }


def check_files(
    files: Sequence[Path],
    *,
    parameters: Mapping[str, str],
    servers: Path | None,
    roles: Collection[str],
) -> CheckReport:
    """Check files: each by itself, then together, then with the servers of a file, if one is named.

    Raises ConfigError for a file that cannot be read.
    """
    sources = read_sources(files)
    policies: list[Policy] = []
    wrong: list[PolicyError] = []
    for source in sources:
        try:
            policies += parse(source.text, source.path)
        except PolicyError as error:
            wrong.append(error)
    rules = sum(len(policy.rules) for policy in policies)
    names = sorted(_parameter_names(policies) - set(parameters))
    findings: tuple[Finding, ...] = ()
    if not wrong:
        try:
            loaded = load(sources, {**{name: name for name in names}, **parameters})
            findings = validate(loaded, _catalogue(servers, loaded), roles or None)
            findings += findings_of(loaded)
        except PolicyError as error:
            wrong.append(error)
    return CheckReport(
        files=len(sources),
        rules=rules,
        findings=(*map(_finding, wrong), *findings),
        assumed=tuple(names),
    )


def read_sources(files: Iterable[Path]) -> tuple[Source, ...]:
    """Read policy files. Raises ConfigError for one that is missing, too large or not UTF-8."""
    return tuple(Source(str(path), _text(path)) for path in dict.fromkeys(files))


def load_assuming(sources: Sequence[Source], parameters: Mapping[str, str]) -> PolicySet:
    """Load files; a parameter without a value stands for its own name.

    Raises PolicyError for what is wrong in them.
    """
    parsed = [policy for source in sources for policy in parse(source.text, source.path)]
    names = _parameter_names(parsed)
    return load(sources, {**{name: name for name in names}, **parameters})


def read_argument(text: str) -> object:
    """Return the JSON value that `text` is, else the text itself."""
    try:
        read = read_json(f'{{"value": {text}\n}}', "--arg").root
    except ConfigError:
        return text
    return read["value"] if len(read) == 1 else text


def _text(path: Path) -> str:
    bytes_max = PolicyLimits().source_bytes_max
    where = Where(str(path))
    try:
        content = read_regular(path, bytes_max=bytes_max)
    except TooLargeError:
        raise ConfigError(
            f"the policy file {path} has more than {bytes_max} bytes",
            code="E-CONFIG-TOO-LARGE",
            where=where,
        ) from None
    except OSError as error:
        raise ConfigError(
            f"cannot read the policy file {path}: {error.strerror}",
            code="E-POLICY-FILE",
            where=where,
        ) from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"the policy file {path} is not UTF-8",
            code="E-POLICY-FILE",
            where=Where(str(path), content.count(b"\n", 0, error.start) + 1),
        ) from error


def _catalogue(servers: Path | None, loaded: PolicySet) -> Catalogue:
    """Return what there is by a servers file; without one, everything that the policies name."""
    if servers is None:
        named = {
            name
            for rule in loaded.rules
            for target in rule.targets
            for name in target.servers or ()
        }
        named |= {
            name for policy in loaded.policies for each in policy.sets for name in each.servers
        }
        return Catalogue(dict.fromkeys(named))
    project = project_of(servers).resolve()
    read = load_servers(
        servers,
        ServersSource(origin=Origin.PROJECT, project=project, home=Path.home(), environ=os.environ),
    )
    pins = PinKeeper(StatePaths.from_environment(os.environ).pins, limits=OrchestratorLimits())
    return Catalogue(
        {BUILTIN_SERVER: None, **{entry.name: _tools(pins, entry) for entry in read.entries}}
    )


def _tools(pins: PinKeeper, entry: ServerEntry) -> Mapping[str, Mapping[str, object]] | None:
    """Return the tools that were shown of a server, with their input schemas where they were kept."""
    names = pins.known_tools(entry)
    if names is None:
        return None
    shown = pins.texts(entry)
    schemas: dict[str, Mapping[str, object]] = {}
    for name in names:
        definition = None if shown is None else shown.definitions.get(name)
        schema = None if definition is None else definition.get("inputSchema")
        schemas[name] = cast("Mapping[str, object]", schema) if isinstance(schema, Mapping) else {}
    return schemas


def _parameter_names(policies: Iterable[Policy]) -> set[str]:
    return {
        part.name
        for policy in policies
        for rule in policy.rules
        if rule.condition is not None
        for test in tests_of(rule.condition)
        for literal in _literals(test)
        if isinstance(literal, Template)
        for part in literal.parts
        if isinstance(part, Parameter)
    }


def _literals(test: Test | Fact) -> Iterator[Scalar]:
    match test.check if isinstance(test, Test) else None:
        case Compare(literal=literal):
            yield literal
        case OneOf(options=options):
            yield from options
        case Under(prefix=text) | PathLike(pattern=text) | Text(text=text):
            yield text
        case Host(hosts=texts) | Network(networks=texts):
            yield from texts
        case _:
            pass


def _finding(error: PolicyError) -> Finding:
    message = error.message
    if error.expected:
        message += f"; expected {', '.join(error.expected)}"
    return Finding(
        code="syntax",
        severity=Severity.ERROR,
        message=message,
        place=error.place,
        nearest=error.nearest,
        excerpt=error.excerpt,
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
