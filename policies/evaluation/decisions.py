"""Decides: forbid over ask over permit, whatever their order, and no without a permit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, TypeAlias

from policies.errors import Place, PolicyError, excerpt_of
from policies.evaluation.binding import bind
from policies.evaluation.conditions import Predicate, compile_condition
from policies.evaluation.witnesses import witnesses
from policies.limits import PolicyLimits
from policies.model import (
    Decision,
    DepthBound,
    Effect,
    Kind,
    Names,
    Operation,
    Policy,
    Principal,
    Reason,
    Request,
    Resource,
    Rule,
    Source,
    Target,
)
from policies.patterns import Matcher, matcher_of

__all__ = ["ASK_ALL", "PolicySet", "Verdict", "decide", "depth_fits", "kind_fits"]

_NO_PERMIT: Final = Decision(effect=Effect.FORBID)
_KINDS: Final = {
    Kind.TOOL: frozenset({"tool"}),
    Kind.RESOURCE: frozenset({"resource", "resource_template"}),
    Kind.PROMPT: frozenset({"prompt"}),
}
_STRONGEST_FIRST: Final = (Effect.FORBID, Effect.ASK, Effect.PERMIT)


def decide(policy_set: PolicySet, request: Request) -> Decision:
    """Return what `policy_set` says to one request. Never raises for any arguments."""
    return policy_set.decide(request)


def kind_fits(wanted: Kind | None, kind: str) -> bool:
    """Return True if a target of this kind speaks about something of MCP's `kind`."""
    return wanted is None or kind in _KINDS[wanted]


def depth_fits(bound: DepthBound | None, depth: int) -> bool:
    """Return True if an agent at this depth is within the bound."""
    return bound is None or (
        (bound.low is None or depth >= bound.low) and (bound.high is None or depth <= bound.high)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Ready:
    """A rule made ready: its tests as functions, its answers made."""

    rule: Rule
    names: Matcher
    holds: Predicate | None
    spoken: Decision
    errored: Decision
    narrowed: bool
    """True if depth or kind must be looked at."""


@dataclass(frozen=True, slots=True)
class _Maybe:
    """A rule about what is asked; whether it speaks may depend on the arguments."""

    ready: _Ready
    name_known: bool

    def answer(self, arguments: Mapping[str, object]) -> Decision | None:
        """Return the rule's decision, or None if it does not speak."""
        ready = self.ready
        holds = ready.holds is None or ready.holds(arguments)
        if holds is False:
            return None
        if holds is True and self.name_known:
            return ready.spoken
        # no value: a permit does not speak, a forbid or an ask does
        return None if ready.rule.effect is Effect.PERMIT else ready.errored


_Entry: TypeAlias = tuple[frozenset[str] | None, Matcher, _Ready]
"""A rule with what is asked of it first beside it."""


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Rules for one operation and server: by exact name, and those that must be tried."""

    exact: Mapping[str, tuple[_Entry, ...]]
    tried: tuple[_Entry, ...]


_Stage: TypeAlias = tuple[tuple[_Maybe, ...], Decision | None]
"""What may speak, and what speaks anyway."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """All that a set says to one principal, operation and resource, whatever the arguments are.

    Attributes:
        constant: the decision, if no argument can change it.
    """

    constant: Decision | None
    _owner: PolicySet = field(repr=False)
    _stages: tuple[_Stage, ...] = field(repr=False)

    @property
    def possible(self) -> frozenset[Effect]:
        """The effects that some arguments lead to. Permit and ask are found by trying.

        Where the arguments to try are more than a bound, everything not excluded counts.
        """
        if self.constant is not None:
            return frozenset((self.constant.effect,))
        return self._owner.remembered(self._stages, lambda: _tried(self, self._owner.limits))

    @property
    def visible(self) -> bool:
        """True if a call with some arguments could be permitted or asked about."""
        return bool(self.possible - {Effect.FORBID})

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules whose word depends on the arguments."""
        return tuple(maybe.ready.rule for maybes, _ in self._stages for maybe in maybes)

    @property
    def upper(self) -> frozenset[Effect]:
        """The effects that the rules name, whether or not any arguments lead to them."""
        effects: set[Effect] = set()
        for effect, (maybes, certain) in zip(_STRONGEST_FIRST, self._stages, strict=True):
            if maybes or certain is not None:
                effects.add(effect)
            if certain is not None:
                return frozenset(effects)
        return frozenset(effects | {Effect.FORBID})

    def decide(self, arguments: Mapping[str, object]) -> Decision:
        """Return the decision for these arguments; the same as the set's own `decide`."""
        if self.constant is not None:
            return self.constant
        for maybes, certain in self._stages:
            if certain is not None:
                return certain
            spoken = [found for maybe in maybes if (found := maybe.answer(arguments)) is not None]
            if spoken:
                return _joined(spoken)
        return _NO_PERMIT


@dataclass(frozen=True, slots=True, eq=False)
class PolicySet:
    """Policies that decide together. Immutable; their order and that of their rules is no matter.

    Attributes:
        policies: with parameters filled in.
        sources: the texts that they came from.
        digest: SHA-256 in hexadecimal over texts and parameters, not over paths or order.

    Raises:
        PolicyError: an id or a policy's name that is there twice, a parameter that is not there, a
            path that is none, too many of something.
    """

    policies: tuple[Policy, ...]
    sources: tuple[Source, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    limits: PolicyLimits = field(default=PolicyLimits(), repr=False)
    digest: str = field(init=False)
    _named: Mapping[tuple[Operation, str], _Shelf] = field(init=False, repr=False)
    _anywhere: Mapping[Operation, _Shelf] = field(init=False, repr=False)
    _remembered: dict[tuple[_Stage, ...], frozenset[Effect]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        texts = {source.path: source.text for source in self.sources}
        _check(self.policies, texts, self.limits)
        parameters = dict(self.parameters)
        bound = tuple(
            bind(
                policy,
                parameters=parameters,
                text=texts.get(policy.place.path, ""),
                limits=self.limits,
            )
            for policy in self.policies
        )
        ready = [_made_ready(rule, self.limits) for policy in bound for rule in policy.rules]
        named, anywhere = _shelved(ready)
        # the only way to fill a frozen value that computes what it holds
        for name, value in (
            ("policies", bound),
            ("parameters", parameters),
            ("digest", _digest(self.sources, self.policies, parameters)),
            ("_named", named),
            ("_anywhere", anywhere),
            ("_remembered", {}),
        ):
            object.__setattr__(self, name, value)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of every policy."""
        return tuple(rule for policy in self.policies for rule in policy.rules)

    def decide(self, request: Request) -> Decision:
        """Return what the set says to one request. Never raises for any arguments."""
        speaking = self._speaking(request.principal, request.action, request.resource)
        if not speaking:
            return _NO_PERMIT
        return _verdict(self, speaking).decide(request.context.arguments)

    def verdict(self, principal: Principal, action: Operation, resource: Resource) -> Verdict:
        """Return all that can be said without the arguments."""
        return _verdict(self, self._speaking(principal, action, resource))

    def _speaking(
        self, principal: Principal, action: Operation, resource: Resource
    ) -> list[_Maybe]:
        """Return the rules about this, whatever their conditions say."""
        name, role = resource.name, principal.role
        found: list[_Maybe] = []
        for shelf in (self._named.get((action, resource.server)), self._anywhere.get(action)):
            if shelf is None:
                continue
            # the hot loop: the cheapest question first
            for roles, matches, ready in (*shelf.exact.get(name, ()), *shelf.tried):
                if roles is not None and role not in roles:
                    continue
                match = matches(name)
                if match is False:
                    continue
                if not ready.narrowed or _concerns(ready.rule, principal, resource):
                    found.append(_Maybe(ready, match is True))
        return found

    def remembered(
        self, key: tuple[_Stage, ...], work_out: Callable[[], frozenset[Effect]]
    ) -> frozenset[Effect]:
        """Return `work_out()`, once for the same key: all names under one pattern share it."""
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= self.limits.remembered_max:
                self._remembered.clear()
            found = self._remembered[key] = work_out()
        return found


def _concerns(rule: Rule, principal: Principal, resource: Resource) -> bool:
    return depth_fits(rule.depth, principal.depth) and kind_fits(rule.target.kind, resource.kind)


def _verdict(owner: PolicySet, speaking: Sequence[_Maybe]) -> Verdict:
    stages: list[_Stage] = []
    constant: Decision | None = None
    depends = False
    for effect in _STRONGEST_FIRST:
        certain: list[Decision] = []
        maybes: list[_Maybe] = []
        for each in speaking:
            ready = each.ready
            if ready.rule.effect is not effect:
                continue
            if ready.holds is not None:
                maybes.append(each)
            elif each.name_known:
                certain.append(ready.spoken)
            elif effect is not Effect.PERMIT:
                certain.append(ready.errored)
        # a rule that speaks anyway makes those of its own effect that only may speak irrelevant
        spoken = _joined(certain) if certain else None
        stages.append(((), spoken) if spoken is not None else (tuple(maybes), None))
        if constant is None and not depends:
            constant = spoken
            depends = spoken is None and bool(maybes)
    if constant is None and not depends:
        constant = _NO_PERMIT
    return Verdict(constant, owner, tuple(stages))


def _joined(decisions: Sequence[Decision]) -> Decision:
    if len(decisions) == 1:
        return decisions[0]
    reasons = [reason for decision in decisions for reason in decision.reasons]
    reasons.sort(key=lambda r: (r.place.path, r.place.line, r.place.column, r.rule))
    return Decision(effect=decisions[0].effect, reasons=tuple(reasons))


def _tried(verdict: Verdict, limits: PolicyLimits) -> frozenset[Effect]:
    upper = verdict.upper
    conditions = [rule.condition for rule in verdict.rules if rule.condition is not None]
    trials = witnesses(conditions, limits)
    if trials is None:
        return upper
    found = set(upper & {Effect.FORBID})
    for arguments in trials:
        found.add(verdict.decide(arguments).effect)
        if found >= upper:
            break
    return frozenset(found)


# ---------------------------------------------------------------------------------------- compilation


def _check(policies: Sequence[Policy], texts: Mapping[str, str], limits: PolicyLimits) -> None:
    def refuse(message: str, place: Place) -> PolicyError:
        return PolicyError(
            message, place=place, excerpt=excerpt_of(texts.get(place.path, ""), place)
        )

    names: dict[str, Place] = {}
    ids: dict[str, Place] = {}
    for policy in policies:
        if policy.name in names:
            first = names[policy.name]
            raise refuse(f"policy `{policy.name}` is there already, at {first}", policy.place)
        names[policy.name] = policy.place
        if len(names) > limits.policies_max:
            raise refuse(f"a set has at most {limits.policies_max} policies", policy.place)
        for rule in policy.rules:
            if rule.id in ids:
                raise refuse(f'rule "{rule.id}" is there already, at {ids[rule.id]}', rule.place)
            ids[rule.id] = rule.place
            if len(ids) > limits.rules_max:
                raise refuse(f"a set has at most {limits.rules_max} rules", rule.place)


def _made_ready(rule: Rule, limits: PolicyLimits) -> _Ready:
    def decision(*, errored: bool) -> Decision:
        reason = Reason(rule=rule.id, place=rule.place, effect=rule.effect, errored=errored)
        return Decision(effect=rule.effect, reasons=(reason,))

    return _Ready(
        rule,
        matcher_of(rule.target.names),
        None if rule.condition is None else compile_condition(rule.condition, limits),
        decision(errored=False),
        decision(errored=True),
        rule.depth is not None or rule.target.kind is not None,
    )


def _shelved(
    rules: Iterable[_Ready],
) -> tuple[Mapping[tuple[Operation, str], _Shelf], Mapping[Operation, _Shelf]]:
    named: dict[tuple[Operation, str], list[_Ready]] = {}
    anywhere: dict[Operation, list[_Ready]] = {}
    for ready in rules:
        for operation in ready.rule.operations:
            if ready.rule.target.servers is None:
                anywhere.setdefault(operation, []).append(ready)
                continue
            for server in ready.rule.target.servers:
                named.setdefault((operation, server), []).append(ready)
    return (
        {key: _shelf(found) for key, found in named.items()},
        {key: _shelf(found) for key, found in anywhere.items()},
    )


def _shelf(rules: Sequence[_Ready]) -> _Shelf:
    exact: dict[str, tuple[_Entry, ...]] = {}
    tried: list[_Entry] = []
    for ready in rules:
        names = ready.rule.target.names
        entry = (ready.rule.roles, ready.names, ready)
        if names.by_segment or any("*" in name for name in names.alternatives):
            tried.append(entry)
            continue
        for name in names.alternatives:
            exact[name] = (*exact.get(name, ()), entry)
    return _Shelf(exact, tuple(tried))


def _digest(
    sources: Sequence[Source], policies: Sequence[Policy], parameters: Mapping[str, str]
) -> str:
    # a set without a source is one that is built in: what it says is what it is called
    texts = [source.text for source in sources] or [policy.name for policy in policies]
    digests = sorted(sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    whole = sha256(b"remit policy set 1\n")
    for digest in digests:
        whole.update(digest)
    for name, value in sorted(parameters.items()):
        for piece in (name, value):
            raw = piece.encode("utf-8", "surrogatepass")
            whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()


_NO_FILE: Final = Place("no policy file", 0)

ASK_ALL: Final = PolicySet(
    (
        Policy(
            name="ask-all",
            place=_NO_FILE,
            rules=(
                Rule(
                    id="ask-all",
                    effect=Effect.ASK,
                    operations=frozenset(Operation),
                    target=Target(
                        servers=None,
                        names=Names(text="*", alternatives=("*",)),
                        kind=None,
                        written="any server",
                        place=_NO_FILE,
                    ),
                    place=_NO_FILE,
                ),
            ),
        ),
    )
)
"""What holds where there is no policy file: a person is asked about everything, delegating too."""
