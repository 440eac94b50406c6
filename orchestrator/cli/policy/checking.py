"""What `remit policy` does: reads policy files, and holds them against the servers there are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from orchestrator.core.capability import BUILTIN_SERVER
from orchestrator.core.documents import read_json
from orchestrator.core.errors import ConfigError
from orchestrator.core.limits import OrchestratorLimits
from orchestrator.sessions.approvals import Origin
from orchestrator.sessions.configuration import ServersSource, load_servers
from orchestrator.sessions.entries import ServerEntry
from orchestrator.sessions.pinning import PinKeeper
from orchestrator.sessions.policy_files import PolicyFileReader
from orchestrator.sessions.projects import project_of
from orchestrator.sessions.state import StatePaths
from policies import (
    Catalogue,
    Finding,
    PolicyError,
    PolicyFile,
    PolicyLimits,
    PolicySet,
    Severity,
    Source,
    load,
    parse,
    validate,
)
from policies.analysis.findings import findings_of
from policies.evaluation import set_of, tests_of
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
from policies.parsing import Gathered, gather

__all__ = [
    "CheckReport",
    "check_files",
    "load_assuming",
    "load_files",
    "read_argument",
    "read_sources",
]


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
                    "fix": finding.fix,
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

    What they include is checked with them. Raises ConfigError for a file that cannot be read.
    """
    reader = PolicyFileReader()
    sources = [reader.given(path) for path in files]
    try:
        found = gather(sources, read=reader.included)
        assumed = _parameter_names(found.files) - set(parameters)
        loaded = _loaded(found, assumed, parameters)
        findings = validate(loaded, _catalogue(servers, loaded), roles or None)
        return CheckReport(
            files=len(found.files),
            rules=len(loaded.rules),
            findings=findings + findings_of(loaded),
            assumed=tuple(sorted(assumed)),
        )
    except PolicyError as first:
        # in each of the other files the first thing as well, so that they are mended in one go
        wrong = [first, *(error for source in sources for error in _refusals(source))]
        at = {(error.place, error.message): error for error in wrong}
        known = sorted(at.values(), key=lambda each: _order(each, sources))
        findings = tuple(map(_finding, known))
        return CheckReport(files=len(reader.texts), rules=0, findings=findings)


def read_sources(files: Iterable[Path]) -> tuple[Source, ...]:
    """Read these policy files alone, and nothing that they include.

    Raises ConfigError for one that is missing, too large or not UTF-8.
    """
    reader = PolicyFileReader()
    return tuple(dict.fromkeys(reader.given(path) for path in files))


def load_files(files: Iterable[Path], parameters: Mapping[str, str]) -> PolicySet:
    """Load files, and those that they include; each parameter needs a value.

    Raises ConfigError for a file that cannot be read, PolicyError for what is wrong in one.
    """
    reader = PolicyFileReader()
    return load([reader.given(path) for path in files], parameters, read=reader.included)


def load_assuming(files: Iterable[Path], parameters: Mapping[str, str]) -> PolicySet:
    """Load files, as `load_files`; a parameter without a value stands for its own name."""
    reader = PolicyFileReader()
    found = gather([reader.given(path) for path in files], read=reader.included)
    return _loaded(found, _parameter_names(found.files), parameters)


def read_argument(text: str) -> object:
    """Return the JSON value that `text` is, else the text itself."""
    try:
        read = read_json(f'{{"value": {text}\n}}', "--arg").root
    except ConfigError:
        return text
    return read["value"] if len(read) == 1 else text


def _loaded(found: Gathered, assumed: Iterable[str], parameters: Mapping[str, str]) -> PolicySet:
    values = {**{name: name for name in assumed}, **parameters}
    return set_of(found.files, found.sources, values, PolicyLimits())


def _refusals(source: Source) -> Iterator[PolicyError]:
    try:
        parse(source.text, source.path)
    except PolicyError as error:
        yield error


def _order(error: PolicyError, sources: Sequence[Source]) -> tuple[int, int, int]:
    """Files as they were given, then those included; in each by line."""
    paths = [source.path for source in sources]
    path = error.place.path
    at = paths.index(path) if path in paths else len(paths)
    return at, error.place.line, error.place.column


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
        ServersSource(
            origin=Origin.PROJECT,
            minimum=None,  # for their names alone
            project=project,
            home=Path.home(),
            environ=os.environ,
        ),
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


def _parameter_names(files: Iterable[PolicyFile]) -> set[str]:
    return {
        part.name
        for file in files
        for policy in file.policies
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
