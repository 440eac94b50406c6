"""What a new agent may reach: what is on offer ∩ its policy ∩ its grant ∩ what its parent may delegate."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Final, TypedDict, assert_never

from orchestrator.authority.ceilings import Ceiling, Pin
from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import (
    OPERATIONS,
    Capability,
    CapabilityTable,
    DataCapability,
    Row,
    ToolCapability,
)
from orchestrator.core.calls import CallMethod, Spec, ToolSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from policies import Annotations, Operation, PolicySet, Principal, Resource, Verdict
from policies.limits import PolicyLimits
from policies.patterns import Matcher, NamePattern, matcher_of, parse_uri_pattern

__all__ = ["Ancestor", "Grant", "Offer", "attenuate", "resource_of"]

_LABEL: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a parent hands to a child. It only narrows; None leaves the policy alone.

    `tools`, `prompts` and `delegate` are `server/pattern`: exact names, `*`, `{a,b}`, as in the
    policy language. `resources` are patterns of URIs, with `**` across segments, of any server or,
    as `server/pattern`, of one. `delegate` is what the child may hand on in its turn; None is the
    same as `tools`. `pins` fix arguments. Lists are taken for tuples.
    """

    tools: Sequence[str] | None = None
    delegate: Sequence[str] | None = None
    resources: Sequence[str] | None = None
    prompts: Sequence[str] | None = None
    pins: tuple[Pin, ...] = ()

    def __post_init__(self) -> None:
        for name in ("tools", "delegate", "resources", "prompts"):
            given: Sequence[str] | None = getattr(self, name)
            if isinstance(given, str):
                message = f"{name} of a grant is a list of patterns, not a text"
                raise TypeError(message)
            if given is not None:
                object.__setattr__(self, name, tuple(given))

    def admits(self, ref: CapabilityRef) -> bool:
        """True if the grant does not leave this capability out."""
        match ref.kind:
            case CapabilityKind.TOOL:
                return self.tools is None or _named(ref, self.tools)
            case CapabilityKind.PROMPT:
                return self.prompts is None or _named(ref, self.prompts)
            case CapabilityKind.RESOURCE | CapabilityKind.RESOURCE_TEMPLATE:
                return self.resources is None or _means(self.resources, ref)
            case _:
                assert_never(ref.kind)

    def delegates(self, ref: CapabilityRef) -> bool:
        """True if the grant does not keep this capability from being handed on."""
        return self.admits(ref) if self.delegate is None else _named(ref, self.delegate)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An agent above a new one: whom the policy takes it for, what it was granted, and when.

    `policy` is the one that it started under; None is the present one.
    """

    principal: Principal
    grant: Grant
    policy: PolicySet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One capability of a ready server, before anybody decided on it.

    Of a template `means` says whether it means a URI, and `sample` is one that it means.
    """

    ref: CapabilityRef
    target: Cell
    link: Cell
    spec: Spec
    login: Cell | None = None
    annotations: Annotations = field(default=Annotations())
    method: CallMethod = CallMethod.TOOL
    means: Callable[[str], bool] | None = None
    sample: str = ""


def attenuate(
    offers: Iterable[Offer],
    *,
    principal: Principal,
    policy: PolicySet,
    grant: Grant,
    above: Sequence[Ancestor],
    since: Callable[[PolicySet], Sequence[PolicySet]] = lambda policy: (policy,),
    children: int = 0,
) -> CapabilityTable:
    """Return the table of a new agent. Nothing in it exceeds any of the four sets (I6).

    `above` are the agents that it descends from; without any it is the session's own child, and
    the session's acts are a person's. Each of them may pass on only what its grant names and a
    `delegate` rule permits it, under each policy since it started: nobody gets by way of a child's
    child what it could not hand on itself. What is delegated under a condition is held against it
    at each call. `children` is how many live children the parent has already.
    """
    judge = _Judge(
        principal=principal,
        policy=policy,
        grant=grant,
        above=tuple(above),
        since=since,
        children=children,
    )
    tools: list[ToolCapability] = []
    data: list[DataCapability] = []
    rows: list[Row] = []
    for offer in offers:
        row, parts = judge.look_at(offer)
        rows.append(row)
        if not row.visible:
            continue
        if isinstance(offer.spec, ToolSpec):
            tools.append(ToolCapability(spec=offer.spec, **parts))
        else:
            at = partial(judge.at, offer) if offer.means is not None else None
            data.append(DataCapability(spec=offer.spec, at=at, **parts))
    return CapabilityTable(
        principal=principal, policy=policy, capabilities=tools, rows=rows, data=data
    )


class _Parts(TypedDict):
    ref: CapabilityRef
    verdict: Verdict
    target: Cell
    link: Cell
    resource: Resource
    method: CallMethod
    login: Cell | None
    ceilings: tuple[Ceiling, ...]
    pins: tuple[Pin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """What one agent's table is decided by. Kept by templates, which are decided URI by URI."""

    principal: Principal
    policy: PolicySet
    grant: Grant
    above: tuple[Ancestor, ...]
    since: Callable[[PolicySet], Sequence[PolicySet]]
    children: int

    def look_at(self, offer: Offer) -> tuple[Row, _Parts]:
        """Decide on one offer. A template is seen if it could be used at its sample."""
        judged = offer.ref
        if offer.means is not None:
            judged = replace(offer.ref, kind=CapabilityKind.RESOURCE, name=offer.sample)
        row, parts = self._decide(offer, judged)
        return replace(row, ref=offer.ref), {**parts, "ref": offer.ref}

    def at(self, offer: Offer, uri: str) -> Capability | None:
        """Return what a template comes to at one URI; None if it may not be read there."""
        if offer.means is None or not offer.means(uri):
            return None
        ref = replace(offer.ref, kind=CapabilityKind.RESOURCE, name=uri)
        row, parts = self._decide(offer, ref)
        return Capability(**parts) if row.visible else None

    def _decide(self, offer: Offer, ref: CapabilityRef) -> tuple[Row, _Parts]:
        resource = resource_of(ref, offer.annotations)
        verdict = self.policy.verdict(self.principal, OPERATIONS[offer.method], resource)
        ceilings = _ceilings(
            self.above, resource, self.policy, self.since, self.principal.depth, self.children
        )
        granted = (
            self.grant.admits(ref)
            and all(ancestor.grant.delegates(ref) for ancestor in self.above)
            and ceilings is not None
            and all(ceiling.reachable for ceiling in ceilings)
        )
        pins = (*self.grant.pins, *(pin for ancestor in self.above for pin in ancestor.grant.pins))
        row = Row(
            ref=ref,
            effects=verdict.possible,
            rule=_deciding_rule(verdict),
            granted=granted,
            method=offer.method,
        )
        parts = _Parts(
            ref=ref,
            verdict=verdict,
            target=offer.target,
            link=offer.link,
            resource=resource,
            method=offer.method,
            login=offer.login,
            # one that no context can change was asked just now
            ceilings=tuple(each for each in ceilings or () if each.verdict.constant is None),
            pins=tuple(pin for pin in pins if pin.is_about(ref)),
        )
        return row, parts


def resource_of(ref: CapabilityRef, annotations: Annotations) -> Resource:
    """Return what a policy is asked about."""
    return Resource(ref.server, ref.kind.value, ref.name, ref.digest, annotations)


def _ceilings(
    above: Sequence[Ancestor],
    resource: Resource,
    policy: PolicySet,
    since: Callable[[PolicySet], Sequence[PolicySet]],
    depth: int,
    children: int,
) -> tuple[Ceiling, ...] | None:
    """Return what bounds a new agent from above; None if that is not known any more."""
    found: list[Ceiling] = []
    for nearness, ancestor in enumerate(reversed(above)):
        held = since(ancestor.policy) if ancestor.policy is not None else (policy,)
        if not held:
            return None
        for each in held:
            verdict = each.verdict(ancestor.principal, Operation.DELEGATE, resource)
            # only the parent itself counts its children
            siblings = children if nearness == 0 else 0
            found.append(Ceiling(verdict=verdict, depth=depth, children=siblings))
    return tuple(found)


def _named(ref: CapabilityRef, entries: Iterable[str]) -> bool:
    for entry in entries:
        server, _, pattern = entry.partition("/")
        if server == ref.server and NamePattern.parse(pattern).matches(ref.name):
            return True
    return False


def _means(patterns: Iterable[str], ref: CapabilityRef) -> bool:
    for pattern in patterns:
        server, matches = _uri_matcher(pattern)
        # a URI that two programs could read differently has no value, and so is never meant
        if server in ("", ref.server) and matches(ref.name) is True:
            return True
    return False


@lru_cache(maxsize=1024)  # of patterns in grants; each is compiled once
def _uri_matcher(pattern: str) -> tuple[str, Matcher]:
    """Return whose resources a pattern means, empty for anybody's, and what matches their URIs."""
    server, slash, uri = pattern.partition("/")
    if not slash or not _LABEL.fullmatch(server):  # a URI has its colon before its first slash
        server, uri = "", pattern
    return server, matcher_of(parse_uri_pattern(uri, PolicyLimits()))


def _deciding_rule(verdict: Verdict) -> str:
    constant = verdict.constant
    return str(constant.reasons[0]) if constant is not None and constant.reasons else ""
