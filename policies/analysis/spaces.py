"""All requests, cut into spaces: in each of them one thing is asked for. Knows no decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Final, cast

from policies.analysis.axes import Axis, axes_of
from policies.analysis.patience import Patience
from policies.analysis.reading import looked_at
from policies.analysis.words import pattern_of, words_for
from policies.evaluation import MISSING, PolicySet, kind_fits
from policies.evaluation.witnesses import put_argument
from policies.limits import PolicyLimits
from policies.model import (
    Annotations,
    Context,
    Kind,
    Label,
    Names,
    Never,
    Operation,
    Principal,
    Request,
    Resource,
    Rule,
    Target,
)
from policies.patterns import matcher_of

__all__ = ["OTHER_SERVER", "Side", "Space", "spaces", "surely_means"]

OTHER_SERVER: Final = "some_other_server"
"""A server that no rule names."""
_FROM_SERVERS: Final = frozenset({Operation.SAMPLE, Operation.ELICIT, Operation.LIST_ROOTS})


@dataclass(frozen=True, slots=True)
class Side:
    """A set that is asked. `delegating`: asked whether the same may be handed on."""

    policy_set: PolicySet
    delegating: bool = False

    def action(self, action: Operation) -> Operation:
        """Return what this side is asked where the other is asked `action`."""
        return Operation.DELEGATE if self.delegating else action


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Requests for one thing, in every way that the rules about it can tell apart.

    Attributes:
        rules: those about it, by side.
        axes: what its requests differ in.
        complete: False if a request may be missing that the rules see in another way.
    """

    action: Operation
    resource: Resource
    rules: tuple[tuple[Rule | Never, ...], ...]
    axes: tuple[Axis, ...]
    complete: bool

    @property
    def size(self) -> int:
        """How many requests there are at most."""
        return prod(len(axis.values) for axis in self.axes)

    def requests(self) -> Iterator[Request]:
        """Yield its requests."""
        for values in product(*(axis.values for axis in self.axes)):
            request = self.request(values)
            if request is not None:
                yield request

    def request(self, values: Sequence[object]) -> Request | None:
        """Return the request with these values of the axes; None if they do not go together."""
        draft = _Draft()
        for axis, value in zip(self.axes, values, strict=True):
            if not draft.take(axis, value):
                return None
        return draft.request(self.action, self.resource)


@dataclass(slots=True)
class _Draft:
    single: dict[str, object] = field(default_factory=dict[str, object])
    hints: dict[str, bool | None] = field(default_factory=dict[str, bool | None])
    left: dict[str, float] = field(default_factory=dict[str, float])
    arguments: dict[str, object] = field(default_factory=dict[str, object])

    def take(self, axis: Axis, value: object) -> bool:
        match axis.field:
            case "argument":
                return put_argument(self.arguments, axis.key, value)
            case "hint":
                self.hints[axis.key[0]] = cast("bool | None", value)
            case "left":
                if value is not MISSING:
                    self.left[axis.key[0]] = cast("float", value)
            case _:
                self.single[axis.field] = value
        return True

    def request(self, action: Operation, resource: Resource) -> Request:
        single = self.single
        return Request(
            principal=Principal(
                role=cast("str", single.get("role", "some_other")),
                agent=cast("str", single.get("agent", "")),
                depth=cast("int", single.get("depth", 0)),
                interactive=cast("bool", single.get("interactive", False)),
                above=cast("tuple[Principal, ...]", single.get("above", ())),
            ),
            action=action,
            resource=Resource(
                resource.server,
                resource.kind,
                resource.name,
                cast("str", single.get("digest", "")),
                Annotations(**self.hints),
            ),
            context=Context(
                self.arguments,
                frozenset(cast("tuple[Label, ...]", single.get("labels", ()))),
                cast("float | None", single.get("wall")),
                self.left,
            ),
        )


# ------------------------------------------------------------------------------------------- cutting


def spaces(
    sides: Sequence[Side], limits: PolicyLimits, patience: Patience, never: Sequence[Never] = ()
) -> Iterator[Space]:
    """Cut all requests that some rule is about into spaces.

    What no rule of any side is about is denied by all of them, and left out. Ends early where
    `patience` is over: whoever asks says then that something is left.
    """
    about: list[tuple[Rule | Never, ...]] = [side.policy_set.rules for side in sides]
    if never:
        about.append(tuple(never))
    servers = _servers(rule for rules in about for rule in rules)
    for action in Operation:
        if action in _FROM_SERVERS and any(side.delegating for side in sides):
            continue
        asked = [side.action(action) for side in sides] + [action] * bool(never)
        chosen = [
            tuple(rule for rule in rules if wanted in rule.operations)
            for rules, wanted in zip(about, asked, strict=True)
        ]
        cut = [_by_server(rules) for rules in chosen]
        for server in servers:
            here = [[*named.get(server, ()), *anywhere] for named, anywhere in cut]
            for kind in patience.of(Kind, sum(map(len, here))):
                yield from _of_kind(action, server, kind, here, limits)


def _servers(rules: Iterable[Rule | Never]) -> list[str]:
    named = {name for rule in rules for target in rule.targets for name in target.servers or ()}
    return [*sorted(named), OTHER_SERVER]


def _by_server(
    rules: Sequence[Rule | Never],
) -> tuple[dict[str, list[Rule | Never]], list[Rule | Never]]:
    """Return the rules about servers by name, and those about any server."""
    named: dict[str, list[Rule | Never]] = {}
    anywhere: list[Rule | Never] = []
    for rule in rules:
        servers = [target.servers for target in rule.targets]
        if None in servers:
            anywhere.append(rule)
            continue
        for server in {name for each in servers for name in each or ()}:
            named.setdefault(server, []).append(rule)
    return named, anywhere


def _of_kind(
    action: Operation,
    server: str,
    kind: Kind,
    chosen: Sequence[Sequence[Rule | Never]],
    limits: PolicyLimits,
) -> Iterator[Space]:
    targets = {
        id(rule): [target for target in rule.targets if _fits(target, server, kind)]
        for rules in chosen
        for rule in rules
    }
    names, complete = _names([t.names for found in targets.values() for t in found], limits)
    for name in names:
        about = tuple(
            tuple(rule for rule in rules if _means(targets[id(rule)], name)) for rules in chosen
        )
        if any(about):
            axes = axes_of(looked_at(rule for rules in about for rule in rules), limits)
            yield Space(
                action=action,
                resource=Resource(server, kind.value, name),
                rules=about,
                axes=axes,
                complete=complete and all(axis.complete for axis in axes),
            )


def _fits(target: Target, server: str, kind: Kind) -> bool:
    return (target.servers is None or server in target.servers) and kind_fits(
        target.kind, kind.value
    )


def surely_means(rule: Rule, resource: Resource) -> bool:
    """Return True if a rule names this: False as well for a name that cannot be read in one way."""
    return any(
        _fits(target, resource.server, Kind(resource.kind))
        and matcher_of(target.names)(resource.name) is True
        for target in rule.targets
    )


def _means(targets: Iterable[Target], name: str) -> bool:
    return any(matcher_of(target.names)(name) is not False for target in targets)


def _names(patterns: Sequence[Names], limits: PolicyLimits) -> tuple[list[str], bool]:
    """Return names that tell the patterns apart, and whether they are all there are."""
    plain = [each for names in patterns if not names.by_segment for each in names.alternatives]
    found = words_for(map(pattern_of, plain), states_max=limits.analysis_states_max)
    uris = dict.fromkeys(names.text for names in patterns if names.by_segment)
    words = [*found.words]
    for uri in uris:
        filled = _filled(uri)
        words += [filled, filled.replace("*", "x")]
    if uris:
        # one that is something else, and one that cannot be read in one way only
        words += ["other:x", "other:x/../y"]
    complete = found.complete and (not uris or (len(uris) == 1 and set(plain) <= {"*"}))
    return list(dict.fromkeys(words)), complete


def _filled(uri: str) -> str:
    """Return a URI that a pattern matches."""
    inner = uri
    while "{" in inner and "}" in inner:
        head, _, rest = inner.partition("{")
        _, _, tail = rest.partition("}")
        inner = f"{head}x{tail}"
    return inner.replace("**", "x").replace("*", "x")
