"""What is said to one principal about one thing, whatever the context: forbid over ask over permit.

An ask whose condition has no value only restricts: what a permit lets through, it asks about. By itself
it lets nothing through, so that an argument made to be mistaken gets no further than an honest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import inf
from typing import Final, TypeAlias

from policies.evaluation.ready import Maybe
from policies.evaluation.witnesses import witnesses
from policies.limits import PolicyLimits
from policies.model import (
    Budget,
    Context,
    Deadline,
    Decision,
    Duty,
    Effect,
    Expiry,
    MaxChildren,
    MaxDepth,
    Reason,
    Resource,
    Rule,
)

__all__ = ["NO_PERMIT", "Verdict", "bounded", "verdict_of"]

NO_PERMIT: Final = Decision(effect=Effect.FORBID)
"""What holds where no rule speaks."""

_STRONGEST_FIRST: Final = (Effect.FORBID, Effect.ASK, Effect.PERMIT)
_STRICTNESS: Final = {effect: -at for at, effect in enumerate(_STRONGEST_FIRST)}
_Stage: TypeAlias = tuple[tuple[Maybe, ...], Decision | None]
"""What may speak, and what speaks anyway."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """All that a set says to one principal, operation and resource, whatever the context is.

    Attributes:
        constant: the decision, if nothing in the context can change it.
    """

    constant: Decision | None
    _resource: Resource = field(repr=False)
    _limits: PolicyLimits = field(repr=False)
    _stages: tuple[_Stage, ...] = field(repr=False)
    _duties: _Stage = field(repr=False)
    _speaking: tuple[Maybe, ...] = field(repr=False)
    _known: dict[str, frozenset[Effect]] = field(default_factory=dict[str, frozenset[Effect]])
    _bounds: Verdict | None = field(default=None, repr=False)

    @property
    def possible(self) -> frozenset[Effect]:
        """The effects that some context leads to. Permit and ask are found by trying.

        Where the contexts to try are more than a bound, everything not excluded counts.
        """
        found = self._known.get("possible")
        if found is None:
            found = self._known["possible"] = self._tried()
        return found

    @property
    def visible(self) -> bool:
        """True if a call with some arguments could be permitted or asked about."""
        return bool(self.possible - {Effect.FORBID})

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules whose word depends on the context; limits and obligations left aside."""
        own = tuple(maybe.ready.rule for maybes, _ in self._stages for maybe in maybes)
        return own if self._bounds is None else own + self._bounds.rules

    @property
    def upper(self) -> frozenset[Effect]:
        """The effects that the rules name, whether or not any context leads to them."""
        if self._bounds is None:
            return self._named
        pairs = product(self._named, self._bounds.upper)
        return frozenset(max(pair, key=_STRICTNESS.__getitem__) for pair in pairs)

    @property
    def _named(self) -> frozenset[Effect]:
        (forbids, forbidden), (asks, asked), (permits, permitted) = self._stages
        effects: set[Effect] = set()
        if forbids or forbidden is not None:
            effects.add(Effect.FORBID)
        if forbidden is not None:
            return frozenset(effects)
        surely = asked is not None and not _without_value((asked,))
        lets = bool(permits) or permitted is not None
        if surely or any(maybe.name_known for maybe in asks) or (lets and (asks or asked)):
            effects.add(Effect.ASK)
        if surely:
            return frozenset(effects)
        if lets and asked is None:
            effects.add(Effect.PERMIT)
        if permitted is None:
            effects.add(Effect.FORBID)
        return frozenset(effects)

    def decide(self, context: Context) -> Decision:
        """Return the decision in this context; the same as the set's own `decide`. Never raises."""
        if self.constant is not None:
            return self.constant
        decision = self._decided(context)
        if decision.effect is not Effect.FORBID:
            decision = self._burdened(decision, context)
        return (
            decision if self._bounds is None else _stricter(decision, self._bounds.decide(context))
        )

    def _burdened(self, decision: Decision, context: Context) -> Decision:
        maybes, certain = self._duties
        duties = certain.duties if certain is not None else ()
        for maybe in maybes:
            found = maybe.answer(context, self._resource)
            if found is not None:
                duties += found.duties
        return _with(decision, duties) if duties else decision

    def spoken(self, context: Context) -> tuple[Reason, ...]:
        """Return every rule that permits, asks or forbids in this context, by file and line.

        An ask without a value is none of them where nothing else lets the request through.
        """
        found = [
            reason
            for maybe in self._speaking
            if (answer := maybe.answer(context, self._resource)) is not None
            for reason in answer.reasons
        ]
        for reason in found:
            if not reason.errored and reason.effect is not Effect.FORBID:
                break
        else:
            found = [reason for reason in found if reason.effect is Effect.FORBID]
        if self._bounds is not None:
            found += self._bounds.spoken(context)
        return tuple(sorted(found, key=_position))

    def _decided(self, context: Context) -> Decision:
        resource = self._resource
        unsure: list[Decision] | None = None
        for maybes, certain in self._stages:
            spoken = [] if certain is None else [certain]
            for maybe in maybes:
                found = maybe.answer(context, resource)
                if found is not None:
                    spoken.append(found)
            if not spoken:
                continue
            if spoken[0].effect is not Effect.ASK or not _without_value(spoken):
                return _joined(unsure or spoken)
            unsure = spoken
        return NO_PERMIT

    def _tried(self) -> frozenset[Effect]:
        if self.constant is not None:
            return frozenset((self.constant.effect,))
        upper = self.upper
        conditions = [rule.condition for rule in self.rules if rule.condition is not None]
        trials, complete = witnesses(conditions, self._limits)
        found: set[Effect] = set()
        for context in trials:
            found.add(self.effect(context))
            if found >= upper:
                break
        # what was not found may still be there
        return frozenset(found) if complete else upper

    def effect(self, context: Context) -> Effect:
        """Return the word of `decide` alone."""
        own = self._decided(context).effect
        if self._bounds is None:
            return own
        return max(own, self._bounds.effect(context), key=_STRICTNESS.__getitem__)


def bounded(verdict: Verdict, bounds: Verdict) -> Verdict:
    """Return what both say together: the stricter word, with the duties of both."""
    either = (verdict.constant, bounds.constant)
    constant = None
    if None not in either or Effect.FORBID in (each.effect for each in either if each is not None):
        constant = reduce(_stricter, (each for each in either if each is not None))
    return replace(verdict, constant=constant, _known={}, _bounds=bounds)


def _stricter(one: Decision, other: Decision) -> Decision:
    effect = max(one.effect, other.effect, key=_STRICTNESS.__getitem__)
    said = [each for each in (one, other) if each.effect is effect]
    reasons = sorted((reason for each in said for reason in each.reasons), key=_position)
    duties = () if effect is Effect.FORBID else _merged((*one.duties, *other.duties))
    return Decision(effect=effect, reasons=tuple(reasons), duties=duties)


def verdict_of(speaking: Sequence[Maybe], resource: Resource, limits: PolicyLimits) -> Verdict:
    """Sort the rules about something into what they can still say."""
    stages = tuple(_stage(speaking, effect) for effect in _STRONGEST_FIRST)
    duties = _stage(speaking, None)
    constant = _constant(stages)
    if constant is not None and constant.effect is not Effect.FORBID:
        if duties[0]:
            constant = None
        elif duties[1] is not None:
            constant = _with(constant, duties[1].duties)
    return Verdict(constant, resource, limits, stages, duties, tuple(speaking))


def _constant(stages: Iterable[_Stage]) -> Decision | None:
    """Return what the stages come to, duties aside, if no context can change it."""
    unsure: Decision | None = None
    for maybes, certain in stages:
        if maybes:
            return None
        if certain is None:
            continue
        if certain.effect is not Effect.ASK or not _without_value((certain,)):
            return unsure or certain
        unsure = certain
    return NO_PERMIT


def _without_value(spoken: Sequence[Decision]) -> bool:
    """Return True if no rule of these had a value: asks then only restrict."""
    for decision in spoken:
        for reason in decision.reasons:
            if not reason.errored:
                return False
    return True


def _stage(speaking: Iterable[Maybe], effect: Effect | None) -> _Stage:
    certain: list[Decision] = []
    maybes: list[Maybe] = []
    burdened = effect is None
    for each in speaking:
        ready = each.ready
        if ready.effect is not effect:
            continue
        burdened = burdened or bool(ready.rule.duties)
        if ready.holds is not None:
            maybes.append(each)
        elif each.name_known:
            certain.append(ready.spoken)
        elif effect is not Effect.PERMIT:
            certain.append(ready.errored)
    spoken = _joined(certain) if certain else None
    # a rule that speaks anyway makes those of its own effect that only may speak irrelevant,
    # unless one of them brings a duty, or lifts one, or lets through what this one would not
    restricts = effect is Effect.ASK and _without_value(certain)
    idle = spoken is not None and not burdened and not restricts
    return ((), spoken) if idle else (tuple(maybes), spoken)


def _joined(decisions: Sequence[Decision]) -> Decision:
    first, *others = decisions
    if not others:
        return first
    reasons = [reason for decision in decisions for reason in decision.reasons]
    reasons.sort(key=_position)
    duties = [decision.duties for decision in decisions]
    effect = first.effect
    # permits are alternatives: one that bounds less is one permit more, never one less
    kept = _widest(duties) if effect is Effect.PERMIT and reasons else _merged(sum(duties, ()))
    return Decision(effect=effect, reasons=tuple(reasons), duties=kept)


def _position(reason: Reason) -> tuple[str, int, int, str]:
    return reason.place.path, reason.place.line, reason.place.column, reason.rule


def _with(decision: Decision, duties: tuple[Duty, ...]) -> Decision:
    return replace(decision, duties=_merged((*decision.duties, *duties)))


def _merged(duties: Iterable[Duty]) -> tuple[Duty, ...]:
    """Return all duties: of those that bound the same the least, of others each once, in one order."""
    least: dict[object, Duty] = {}
    for duty in duties:
        key = _key(duty)
        known = least.get(key)
        if known is None or _amount(duty) < _amount(known):
            least[key] = duty
    return tuple(sorted(least.values(), key=repr))


def _widest(alternatives: Sequence[tuple[Duty, ...]]) -> tuple[Duty, ...]:
    """Return the bounds that every alternative has, each at its most."""
    if not all(alternatives):
        return ()
    by_key = [{_key(duty): duty for duty in duties} for duties in alternatives]
    shared = set[object].intersection(*map(set[object], by_key))
    found = [max((known[key] for known in by_key), key=_amount) for key in shared]
    return tuple(sorted(found, key=repr))


def _key(duty: Duty) -> object:
    match duty:
        case Budget():
            return (Budget, duty.metered, duty.scope, duty.rule)
        case Deadline() | Expiry() | MaxDepth() | MaxChildren():
            return type(duty)
        case _:
            return duty


def _amount(duty: Duty) -> float:
    match duty:
        case Budget():
            return duty.amount
        case Deadline() | Expiry():
            return duty.seconds
        case MaxDepth():
            return duty.depth
        case MaxChildren():
            return duty.children
        case _:
            return inf
