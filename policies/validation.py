"""Whether policies can be used: together (`load`), and with the servers there are (`validate`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, TypeAlias, cast

from policies.errors import Place, PolicyError, excerpt_of, nearest_word
from policies.evaluation import PolicySet, set_of, tests_of
from policies.limits import PolicyLimits
from policies.model import (
    Argument,
    Effect,
    Elements,
    Kind,
    Operation,
    Pointer,
    Policy,
    Rule,
    RuleWord,
    Source,
    Target,
    Test,
    Who,
)
from policies.parsing import IncludeReader, gather
from policies.patterns import covers, matcher_of, outline

__all__ = ["Catalogue", "Finding", "Severity", "load", "validate"]

Schema: TypeAlias = Mapping[str, object]


class Severity(Enum):
    """How grave a finding is."""

    ERROR = "error"
    """Something is named that is not there: a rule cannot mean what it says."""
    WARNING = "warning"
    """Something has no effect."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What there is: servers, their tools, each tool's input schema.

    None for a server whose tools are not known yet: nothing is said about them.
    """

    servers: Mapping[str, Mapping[str, Schema] | None] = field(
        default_factory=dict[str, Mapping[str, Schema] | None]
    )


_NAMES_SHOWN_MAX: Final = 12
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_./-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a policy says and that does not fit what there is.

    Attributes:
        code: stable: `unknown-server`, `unknown-tool`, `unknown-pointer`, `undeclared-role`,
            `unused-role`, `ambiguous-set`, `ambiguous-name`, `shadowed-permit`.
        nearest: the right name that the wrong one looks most like; may be empty.
        fix: what mends it, where that is no other name; may be empty.
        excerpt: the line of the source with a caret; may be empty.
    """

    code: str
    severity: Severity
    message: str
    place: Place
    nearest: str = ""
    fix: str = ""
    excerpt: str = ""

    def __str__(self) -> str:
        error = PolicyError(self.message, place=self.place, nearest=self.nearest)
        advice = f"; {self.fix}" if self.fix else ""
        return f"{error}{advice}\n{self.excerpt}" if self.excerpt else f"{error}{advice}"


def load(
    sources: Iterable[Source],
    parameters: Mapping[str, str] | None = None,
    *,
    read: IncludeReader | None = None,
    limits: PolicyLimits | None = None,
) -> PolicySet:
    """Parse files, fill in `parameters`, and return the set that they are together.

    The same file twice counts once. No file at all is a set that permits nothing. `read` returns a
    file that another includes; without it, included files must be among those given.

    Raises:
        PolicyError: the first thing that is wrong in a file, or between files.
    """
    bounds = limits or PolicyLimits()
    found = gather(sources, read=read, limits=bounds)
    return set_of(found.files, found.sources, parameters or {}, bounds)


def validate(
    policy_set: PolicySet, catalogue: Catalogue, roles_in_use: Collection[str] | None = None
) -> tuple[Finding, ...]:
    """Return what in the policies does not fit, in the order of files and lines.

    `roles_in_use` are the roles that agents have; None says nothing about roles.
    """
    checker = _Checker(policy_set, catalogue)
    found = [finding for rule in policy_set.rules for finding in checker.rule(rule)]
    for policy in policy_set.policies:
        found += checker.sets(policy)
    if roles_in_use is not None:
        found += checker.roles(roles_in_use)
    found += checker.shadowed()
    found += checker.alike()
    found.sort(key=lambda each: (each.place.path, each.place.line, each.place.column, each.code))
    return tuple(found)


class _Checker:
    def __init__(self, policy_set: PolicySet, catalogue: Catalogue) -> None:
        self._set = policy_set
        self._servers = catalogue.servers
        self._texts = {source.path: source.text for source in policy_set.sources}
        self._set_names = [each.name for policy in policy_set.policies for each in policy.sets]

    def rule(self, rule: Rule) -> Iterator[Finding]:
        """Check the names that one rule uses."""
        schemas: list[Schema] | None = []
        for target in rule.targets:
            yield from self._servers_of(target)
            tools = self._tools_of(rule, target)
            if tools is None:
                schemas = None
                continue
            for alternative in target.names.alternatives:
                yield from self._alternative(target, alternative, tools)
            if schemas is not None:
                schemas += self._matched(target, tools)
        if schemas:
            yield from self._pointers(rule, schemas)

    def _servers_of(self, target: Target) -> Iterator[Finding]:
        for server in sorted(target.servers or ()):
            # a set's servers are reported where the set is declared
            if server not in self._servers and target.written == server:
                nearest = nearest_word(server, [*self._servers, *self._set_names])
                yield self._error(
                    "unknown-server", f"unknown server `{server}`", target.place, nearest
                )

    def _tools_of(self, rule: Rule, target: Target) -> dict[str, Schema] | None:
        """Return the tools that a target can mean; None if it is about more, or not all are known."""
        if not rule.operations <= {Operation.CALL} or target.kind not in (None, Kind.TOOL):
            return None
        listed = self._servers if target.servers is None else sorted(target.servers)
        known = [self._servers.get(server) for server in listed]
        if not known or any(tools is None for tools in known):
            return None
        return {name: schema for each in known if each is not None for name, schema in each.items()}

    def sets(self, policy: Policy) -> Iterator[Finding]:
        """Check the sets that one policy declares."""
        for each in policy.sets:
            for server in sorted(each.servers - set(self._servers)):
                yield self._error(
                    "unknown-server",
                    f"set `{each.name}` names the unknown server `{server}`",
                    each.place,
                    nearest_word(server, self._servers),
                )
            if each.name in self._servers:
                yield self._warning(
                    "ambiguous-set",
                    f"set `{each.name}` has the name of a server, which it hides",
                    each.place,
                    fix="give the set another name",
                )

    def roles(self, in_use: Collection[str]) -> Iterator[Finding]:
        """Check roles both ways: agents' roles that no policy declares, and roles of no agent."""
        declared = {role.name: role for policy in self._set.policies for role in policy.roles}
        for role in sorted(set(in_use) - set(declared)):
            for policy in self._set.policies[:1]:
                yield self._error(
                    "undeclared-role",
                    f"an agent has the role `{role}`, which no policy declares",
                    policy.place,
                    nearest_word(role, declared),
                    fix=f"declare it: `role {role}`",
                )
        for name in sorted(set(declared) - set(in_use)):
            yield self._warning(
                "unused-role",
                f"no agent has the role `{name}`",
                declared[name].place,
                nearest_word(name, set(in_use) - set(declared)),
                fix="take it out, or give it to an agent",
            )

    def shadowed(self) -> Iterator[Finding]:
        """Find permits that can never speak, because one forbid always overrules them."""
        rules = self._set.rules
        forbids = [rule for rule in rules if rule.word is RuleWord.FORBID]
        for rule in rules:
            if rule.effect is Effect.PERMIT:
                over = next((forbid for forbid in forbids if _overrules(forbid, rule)), None)
                if over is not None:
                    yield self._warning(
                        "shadowed-permit",
                        f'permit "{rule.id}" never speaks: forbid "{over.id}" ({over.place}) '
                        "covers it",
                        rule.place,
                        fix="take one of the two out, or have the forbid cover less",
                    )

    def alike(self) -> Iterator[Finding]:
        """Find names that a person takes for one another: each is told at its second spelling."""
        for what, names in self._named():
            seen: dict[str, str] = {}
            told: set[str] = set()
            for name, place in names:
                first = seen.setdefault(outline(name), name)
                if first != name and name not in told:
                    told.add(name)
                    yield self._warning(
                        "ambiguous-name",
                        f"{what} `{name}` is easily taken for `{first}`, which is another one",
                        place,
                        fix="spell the two alike if one is meant, or rename one",
                    )

    def _named(self) -> Iterator[tuple[str, list[tuple[str, Place]]]]:
        """Yield what is named, in the order of the files: rules, roles, servers, names of theirs."""
        policies, rules = self._set.policies, self._set.rules
        targets = [target for rule in rules for target in rule.targets]
        yield "rule", [(rule.id, rule.place) for rule in rules]
        yield "role", [(role.name, role.place) for policy in policies for role in policy.roles]
        yield "set", [(each.name, each.place) for policy in policies for each in policy.sets]
        servers = [
            (server, target.place) for target in targets for server in sorted(target.servers or ())
        ]
        yield "server", servers
        for written in dict.fromkeys(target.written for target in targets):
            names = [
                (alternative, target.place)
                for target in targets
                if target.written == written
                for alternative in target.names.alternatives
            ]
            yield f"`{written}`: the name", names

    def _matched(self, target: Target, tools: Mapping[str, Schema]) -> list[Schema]:
        match = matcher_of(target.names)
        return [schema for name, schema in tools.items() if match(name) is True]

    def _alternative(
        self, target: Target, alternative: str, tools: Mapping[str, Schema]
    ) -> Iterator[Finding]:
        """Check that one name of a rule means a tool: a misspelt one among others forbids nothing."""
        one = matcher_of(replace(target.names, text=alternative, alternatives=(alternative,)))
        if any(one(name) is True for name in tools):
            return
        # `any server/delete_*` is about whatever may come, and a server's name alone as well
        if "*" in alternative and (target.servers is None or alternative == "*"):
            return
        nearest = nearest_word(alternative, tools)
        yield self._error(
            "unknown-tool",
            f"no tool of {target.written} matches `{alternative}`"
            + ("" if nearest else _there_are(tools)),
            target.place,
            nearest,
        )

    def _pointers(self, rule: Rule, schemas: Sequence[Schema]) -> Iterator[Finding]:
        for test in tests_of(rule.condition) if rule.condition is not None else ():
            if not isinstance(test, Test) or not isinstance(test.operand, Argument | Elements):
                continue
            pointer = test.operand.pointer
            places = [_search(pointer, schema) for schema in schemas]
            # one tool that may know it is enough
            if all(siblings is not None for siblings in places):
                names = sorted({name for siblings in places for name in siblings or ()})
                near = nearest_word(pointer.keys[-1], names)
                yield self._error(
                    "unknown-pointer",
                    f"no tool that this rule is about has an argument `{pointer.text}`"
                    + ("" if near else _there_are(names)),
                    test.place,
                    near,
                )

    def _error(
        self, code: str, message: str, place: Place, nearest: str = "", fix: str = ""
    ) -> Finding:
        return self._finding(Severity.ERROR, code, message, place, nearest, fix)

    def _warning(
        self, code: str, message: str, place: Place, nearest: str = "", fix: str = ""
    ) -> Finding:
        return self._finding(Severity.WARNING, code, message, place, nearest, fix)

    def _finding(
        self, severity: Severity, code: str, message: str, place: Place, nearest: str, fix: str
    ) -> Finding:
        return Finding(
            code=code,
            severity=severity,
            message=message,
            place=place,
            nearest=nearest,
            fix=fix,
            excerpt=excerpt_of(self._texts.get(place.path, ""), place),
        )


def _search(pointer: Pointer, schema: Schema) -> tuple[str, ...] | None:
    """Return the names that stand where the pointer goes wrong; None if it may be right.

    Only plain `properties` are followed. A schema that says itself that it allows more than it
    lists may know the pointer; one that says nothing is taken at its word, since most leave
    `additionalProperties` out.
    """
    here: Schema = schema
    for key in pointer.keys:
        properties = here.get("properties")
        if not isinstance(properties, Mapping) or _open(here):
            return None
        listed = cast("Mapping[str, object]", properties)
        if key not in listed:
            return tuple(name for name in listed)
        inner = listed[key]
        if not isinstance(inner, Mapping):
            return None
        here = cast("Schema", inner)
    return None


def _open(schema: Schema) -> bool:
    """Return True for a schema whose keys are not all in its `properties`."""
    if schema.get("additionalProperties", False) is not False:
        return True
    combined = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas")
    return any(word in schema for word in combined)


def _there_are(names: Iterable[str]) -> str:
    """Return the first plain ones of names that a server gave; empty if there is none."""
    plain = sorted(name for name in names if _PLAIN_NAME.fullmatch(name))
    more = ", …" if len(plain) > _NAMES_SHOWN_MAX else ""
    return f"; there are {', '.join(plain[:_NAMES_SHOWN_MAX])}{more}" if plain else ""


def _overrules(forbid: Rule, permit: Rule) -> bool:
    return (
        forbid.word is RuleWord.FORBID
        and forbid.condition is None
        and permit.operations <= forbid.operations
        and _everybody_of(forbid.who, permit.who)
        and all(any(_covers(wide, narrow) for wide in forbid.targets) for narrow in permit.targets)
    )


def _everybody_of(wide: Who, narrow: Who) -> bool:
    if wide == Who() or wide == narrow:
        return True
    roles = wide.roles is not None and narrow.roles is not None and narrow.roles <= wide.roles
    return roles and wide == Who(roles=wide.roles)


def _covers(wide: Target, narrow: Target) -> bool:
    return (
        (wide.servers is None or (narrow.servers is not None and narrow.servers <= wide.servers))
        and (wide.kind is None or wide.kind is narrow.kind)
        and covers(wide.names, narrow.names)
    )
