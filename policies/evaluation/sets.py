"""Policies that decide together. What they say is found by index; their order is no matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from policies.errors import Place, PolicyError, excerpt_of
from policies.evaluation.binding import Binder
from policies.evaluation.index import Index, index_of
from policies.evaluation.ready import Maybe, entries_of
from policies.evaluation.verdicts import Verdict, bounded, verdict_of
from policies.limits import PolicyLimits
from policies.model import (
    Assertion,
    Case,
    Decision,
    MaxChildren,
    Names,
    Operation,
    Policy,
    PolicyFile,
    Principal,
    Request,
    Resource,
    Rule,
    RuleWord,
    Source,
    Target,
)

__all__ = ["ASK_ALL", "PolicySet", "decide", "set_of"]


def decide(policy_set: PolicySet, request: Request) -> Decision:
    """Return what `policy_set` says to one request. Never raises for any arguments."""
    return policy_set.decide(request)


def set_of(
    files: Sequence[PolicyFile],
    sources: Sequence[Source],
    parameters: Mapping[str, str],
    limits: PolicyLimits,
) -> PolicySet:
    """Return the set that some files are together. Raises PolicyError as the set does."""
    return PolicySet(
        tuple(policy for file in files for policy in file.policies),
        tuple(sources),
        parameters,
        limits,
        tuple(case for file in files for case in file.tests),
        tuple(assertion for file in files for assertion in file.assertions),
    )


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class PolicySet:
    """Policies that decide together. Immutable.

    Attributes:
        policies: with parameters filled in.
        sources: the texts that they came from.
        tests: what the files say must come of single requests.
        assertions: what the files say of all requests.
        bounds: another set that has a say in everything: the stricter word of both holds, with the
            duties of both, so that a permit of one never widens the other. Its rules and policies
            are not among those of this set.
        digest: SHA-256 in hexadecimal over texts and parameters, not over paths or order.

    Raises:
        PolicyError: an id or a policy's name that is there twice, a parameter that is not there, a
            pattern that is none, too many of something.
    """

    policies: tuple[Policy, ...]
    sources: tuple[Source, ...] = ()
    parameters: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    limits: PolicyLimits = field(default=PolicyLimits(), repr=False)
    tests: tuple[Case, ...] = field(default=(), repr=False)
    assertions: tuple[Assertion, ...] = field(default=(), repr=False)
    bounds: PolicySet | None = field(default=None, repr=False)
    digest: str = field(init=False)
    _index: Index = field(init=False, repr=False)
    _asked: dict[tuple[Principal, Operation, Resource], Verdict] = field(init=False, repr=False)
    _shared: dict[tuple[Maybe, ...], Verdict] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        texts = {source.path: source.text for source in self.sources}
        _check(self.policies, texts, self.limits)
        parameters = dict(self.parameters)

        def binder(place: Place) -> Binder:
            return Binder(parameters, texts.get(place.path, ""), self.limits)

        digest = _digest(self.sources, self.policies, parameters)
        if self.bounds is not None:
            digest = _within(digest, self.bounds.digest)
        bound = tuple(binder(policy.place).policy(policy) for policy in self.policies)
        made = [
            each
            for policy in bound
            for rule in policy.rules
            for each in entries_of(rule, self.limits)
        ]
        # the only way to fill a frozen value that computes what it holds
        for name, value in (
            ("policies", bound),
            ("parameters", parameters),
            ("tests", tuple(binder(case.place).case(case) for case in self.tests)),
            ("assertions", tuple(binder(a.place).assertion(a) for a in self.assertions)),
            ("digest", digest),
            ("_index", index_of(made)),
            ("_asked", {}),
            ("_shared", {}),
        ):
            object.__setattr__(self, name, value)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of every policy."""
        return tuple(rule for policy in self.policies for rule in policy.rules)

    @property
    def names_agents(self) -> bool:
        """True if some rule is about agents by their names."""
        if self.bounds is not None and self.bounds.names_agents:
            return True
        whos = [rule.who for rule in self.rules]
        return any(who.agents is not None or who.below_agents is not None for who in whos)

    @property
    def bounds_children(self) -> bool:
        """True if some rule bounds how many children may be given something."""
        if self.bounds is not None and self.bounds.bounds_children:
            return True
        return any(isinstance(duty, MaxChildren) for rule in self.rules for duty in rule.duties)

    @property
    def layers(self) -> tuple[PolicySet, ...]:
        """This set, and all that it is bounded by: each has to let a request through."""
        return (self,) if self.bounds is None else (self, *self.bounds.layers)

    def bounded_by(self, bounds: PolicySet | None) -> PolicySet:
        """Return this set within another in place of what it is bounded by now."""
        return self if bounds is self.bounds else replace(self, bounds=bounds)

    def rules_about(self, action: Operation, resource: Resource) -> tuple[Rule, ...]:
        """Return the rules about this, whoever asks and whatever their conditions say."""
        return self._index.about(action, resource)

    def decide(self, request: Request) -> Decision:
        """Return what the set says to one request. Never raises for any arguments."""
        verdict = self.verdict(request.principal, request.action, request.resource)
        return verdict.constant or verdict.decide(request.context)

    def verdict(self, principal: Principal, action: Operation, resource: Resource) -> Verdict:
        """Return all that can be said without the context. The same question is answered once."""
        key = (principal, action, resource)
        found = self._asked.get(key)
        if found is None:
            found = self.own_verdict(principal, action, resource)
            if self.bounds is not None:
                found = bounded(found, self.bounds.verdict(principal, action, resource))
            if len(self._asked) >= self.limits.remembered_max:
                self._asked.clear()
            self._asked[key] = found
        return found

    def own_verdict(self, principal: Principal, action: Operation, resource: Resource) -> Verdict:
        """Return what this set's own rules say, whatever it is bounded by."""
        speaking = self._index.speaking(principal, action, resource)
        if any(maybe.ready.reads_resource for maybe in speaking):
            return verdict_of(speaking, resource, self.limits)
        # all names that the same rules are about share what they say
        found = self._shared.get(speaking)
        if found is None:
            found = verdict_of(speaking, resource, self.limits)
            if len(self._shared) >= self.limits.remembered_max:
                self._shared.clear()
            self._shared[speaking] = found
        return found


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


def _within(digest: str, bounds: str) -> str:
    return sha256(f"remit policy set 1 within\n{digest}\n{bounds}\n".encode()).hexdigest()


_NO_FILE: Final = Place("no policy file", 0)

ASK_ALL: Final = PolicySet(
    (
        Policy(
            name="ask-all",
            place=_NO_FILE,
            rules=(
                Rule(
                    id="ask-all",
                    word=RuleWord.ASK,
                    operations=frozenset(Operation),
                    targets=(
                        Target(
                            servers=None,
                            names=Names(text="*", alternatives=("*",)),
                            kind=None,
                            written="any server",
                            place=_NO_FILE,
                        ),
                    ),
                    place=_NO_FILE,
                ),
            ),
        ),
    )
)
"""What holds where there is no policy file: a person is asked about everything, delegating too."""
