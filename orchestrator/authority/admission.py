"""What a new agent may reach: what is on offer ∩ its policy ∩ its grant ∩ what its parent may delegate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from orchestrator.authority.ledger import Cell
from orchestrator.authority.snapshot import Capability, CapabilityTable, Row
from orchestrator.core.calls import ToolSpec
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from policies import Effect, Operation, PolicySet, Principal, Resource, Verdict
from policies.limits import PolicyLimits
from policies.patterns import Matcher, NamePattern, matcher_of, parse_uri_pattern

__all__ = ["Ancestor", "Grant", "Offer", "attenuate", "still_delegable"]


@dataclass(frozen=True, slots=True)
class Grant:
    """What a parent hands to a child. It only narrows; None leaves the policy alone.

    `tools`, `prompts` and `delegate` are `server/pattern`: exact names, `*`, `{a,b}`, as in the
    policy language. `resources` are patterns of URIs, with `**` across segments. `delegate` is what
    the child may hand on in its turn; None is the same as `tools`. Lists are taken for tuples.
    """

    tools: Sequence[str] | None = None
    delegate: Sequence[str] | None = None
    resources: Sequence[str] | None = None
    prompts: Sequence[str] | None = None

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
                return self.resources is None or _matches_uri(ref.name, self.resources)
            case _:
                assert_never(ref.kind)

    def delegates(self, ref: CapabilityRef) -> bool:
        """True if the grant does not keep this capability from being handed on."""
        return self.admits(ref) if self.delegate is None else _named(ref, self.delegate)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An agent above a new one: whom the policy takes it for, and what it was granted."""

    principal: Principal
    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One capability of a ready server, before anybody decided on it."""

    ref: CapabilityRef
    target: Cell
    link: Cell
    spec: ToolSpec
    login: Cell | None = None


def attenuate(
    offers: Iterable[Offer],
    *,
    principal: Principal,
    policy: PolicySet,
    grant: Grant,
    above: Sequence[Ancestor],
) -> CapabilityTable:
    """Return the table of a new agent. Nothing in it exceeds any of the four sets (I6).

    `above` are the agents that it descends from; without any it is the session's own child, and
    the session's acts are a person's. Each of them may pass on only what its grant names and a
    `delegate` rule permits it without condition: nobody gets by way of a child's child what it
    could not hand on itself.
    """
    capabilities: list[Capability] = []
    rows: list[Row] = []
    for offer in offers:
        resource = Resource(offer.ref.server, offer.ref.kind.value, offer.ref.name)
        verdict = policy.verdict(principal, Operation.CALL, resource)
        granted = grant.admits(offer.ref) and all(
            ancestor.grant.delegates(offer.ref)
            and _delegable(policy.verdict(ancestor.principal, Operation.DELEGATE, resource))
            for ancestor in above
        )
        row = Row(
            ref=offer.ref,
            effects=verdict.possible,
            rule=_deciding_rule(verdict),
            granted=granted,
        )
        rows.append(row)
        if row.visible:
            capabilities.append(
                Capability(
                    ref=offer.ref,
                    verdict=verdict,
                    target=offer.target,
                    link=offer.link,
                    spec=offer.spec,
                    login=offer.login,
                )
            )
    return CapabilityTable(
        principal=principal,
        policy=policy,
        capabilities=capabilities,
        rows=rows,
        above=tuple(ancestor.principal for ancestor in above),
    )


def still_delegable(policy: PolicySet, above: Iterable[Principal], ref: CapabilityRef) -> bool:
    """Tell whether all agents above may still hand something on, under another policy (I6).

    What an agent could not hand on today its children do not keep from yesterday.
    """
    resource = Resource(ref.server, ref.kind.value, ref.name)
    return all(
        _delegable(policy.verdict(principal, Operation.DELEGATE, resource)) for principal in above
    )


def _named(ref: CapabilityRef, entries: Iterable[str]) -> bool:
    for entry in entries:
        server, _, pattern = entry.partition("/")
        if server == ref.server and NamePattern.parse(pattern).matches(ref.name):
            return True
    return False


def _matches_uri(uri: str, patterns: Iterable[str]) -> bool:
    # a URI that two programs could read differently has no value, and so is never meant
    return any(_uri_matcher(pattern)(uri) is True for pattern in patterns)


@lru_cache(maxsize=1024)  # of patterns in grants; each is compiled once
def _uri_matcher(pattern: str) -> Matcher:
    return matcher_of(parse_uri_pattern(pattern, PolicyLimits()))


def _delegable(verdict: Verdict) -> bool:
    return verdict.constant is not None and verdict.constant.effect is Effect.PERMIT


def _deciding_rule(verdict: Verdict) -> str:
    constant = verdict.constant
    return str(constant.reasons[0]) if constant is not None and constant.reasons else ""
