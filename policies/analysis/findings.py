"""What analysis finds in a set: claims that do not hold, rules that never decide, trust in hints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, assert_never

from policies.analysis.comparing import Claim, Proof, breaks, subset
from policies.analysis.patience import Patience
from policies.analysis.spaces import Side, spaces
from policies.errors import Place, excerpt_of, nearest_word
from policies.evaluation import PolicySet, tests_of
from policies.limits import PolicyLimits
from policies.model import Assertion, ChildSubset, Hint, Never, Rule, RuleWord
from policies.parsing import repeats_in
from policies.validation import Finding, Severity

__all__ = ["findings_of"]

_DECIDING = frozenset({RuleWord.PERMIT, RuleWord.ASK, RuleWord.FORBID, RuleWord.REQUIRE})

_FIXES: Final = {
    "broken-claim": "have the rule cover less, or change the claim if it is what is wrong",
    "unknown-policy": "",
    "unproved-claim": "the extra `prove` lets a solver look further; a simpler condition helps as well",
    "unreachable-rule": "take it out, or have the rules that cover it cover less",
    "repeated-word": "say it once; if another one was meant, name that one",
    "hint-permit": "permit the tools by name instead, or add `and digest pinned`",
}
"""What mends each kind of finding."""


def findings_of(
    policy_set: PolicySet, *, limits: PolicyLimits | None = None
) -> tuple[Finding, ...]:
    """Return what is found, in the order of files and lines.

    Codes: `broken-claim` and `unknown-policy` (errors), `unproved-claim`, `unreachable-rule`,
    `hint-permit` and `repeated-word` (warnings).
    """
    bounds = limits or policy_set.limits
    # one for all claims: a file may make hundreds of them
    patience = Patience(bounds)
    texts = {source.path: source.text for source in policy_set.sources}
    found = [
        *(
            each
            for claim in policy_set.assertions
            for each in _claim(policy_set, claim, bounds, patience)
        ),
        *_unreachable(policy_set, bounds, patience),
        *_trusting(policy_set.rules),
        *_repeated(policy_set),
    ]
    placed = [
        Finding(
            code=code,
            severity=severity,
            message=message,
            place=place,
            nearest=nearest,
            fix=_FIXES[code],
            excerpt=excerpt_of(texts.get(place.path, ""), place),
        )
        for code, severity, message, place, nearest in found
    ]
    placed.sort(key=lambda each: (each.place.path, each.place.line, each.place.column, each.code))
    return tuple(placed)


_Found = tuple[str, Severity, str, Place, str]


def _claim(
    policy_set: PolicySet, claim: Assertion, limits: PolicyLimits, patience: Patience
) -> Iterator[_Found]:
    match claim:
        case Never():
            judged = breaks(policy_set, claim, limits=limits, patience=patience)
            yield from _judged(judged, "never", claim.place)
        case ChildSubset():
            yield from _child(policy_set, claim, limits, patience)
        case _:
            assert_never(claim)


def _child(
    policy_set: PolicySet, claim: ChildSubset, limits: PolicyLimits, patience: Patience
) -> Iterator[_Found]:
    alone = {
        policy.name: PolicySet((policy,), limits=policy_set.limits)
        for policy in policy_set.policies
        if policy.name in (claim.child, claim.parent)
    }
    for name in (claim.child, claim.parent):
        if name not in alone:
            near = nearest_word(name, [policy.name for policy in policy_set.policies])
            message = f"no policy is named `{name}`"
            yield "unknown-policy", Severity.ERROR, message, claim.place, near
            return
    child, parent = alone[claim.child], alone[claim.parent]
    judged = subset(child, parent, delegable=True, limits=limits, patience=patience)
    yield from _judged(judged, "child_subset", claim.place)


def _judged(judged: Claim, word: str, place: Place) -> Iterator[_Found]:
    match judged.proof:
        case Proof.PROVED:
            return
        case Proof.REFUTED:
            shown = " ".join(judged.witnesses[0].to_text().split())
            message = f"`assert {word}` does not hold: {shown}"
            yield "broken-claim", Severity.ERROR, message, place, ""
        case Proof.NOT_PROVED:
            left = ", ".join(judged.open[:3])
            message = (
                f"`assert {word}` is not proved: no request against it was found; open: {left}"
            )
            yield "unproved-claim", Severity.WARNING, message, place, ""
        case _:
            assert_never(judged.proof)


def _unreachable(
    policy_set: PolicySet, limits: PolicyLimits, patience: Patience
) -> Iterator[_Found]:
    """Find rules that decide no request: another always speaks over them, or they cannot hold."""
    idle = {rule.id: rule for rule in policy_set.rules if rule.word in _DECIDING}
    for space in spaces((Side(policy_set),), limits, patience):
        here = {rule.id for rule in space.rules[0] if isinstance(rule, Rule)} & set(idle)
        if not here:
            continue
        looked = islice(space.requests(), limits.analysis_requests_max)
        for request in patience.of(looked, len(space.rules[0])):
            spoken = {reason.rule for reason in policy_set.decide(request).reasons}
            for rule in here & spoken:
                del idle[rule]
            here -= spoken
            if not here:
                break
        if here and not (space.complete and space.size <= limits.analysis_requests_max):
            # what was not looked at may be where they decide
            for rule in here:
                del idle[rule]
    if patience.over:
        return
    for rule in idle.values():
        message = f'{rule.word.value} "{rule.id}" decides no request: stronger rules cover it, or it cannot hold'
        yield "unreachable-rule", Severity.WARNING, message, rule.place, ""


def _repeated(policy_set: PolicySet) -> Iterator[_Found]:
    for source in policy_set.sources:
        for each in repeats_in(source):
            message = f"the {each.what} `{each.text}` stands in this list already"
            yield "repeated-word", Severity.WARNING, message, each.place, ""


def _trusting(rules: Iterable[Rule]) -> Iterator[_Found]:
    for rule in rules:
        if rule.word is not RuleWord.PERMIT or rule.condition is None:
            continue
        hint = next((leaf for leaf in tests_of(rule.condition) if isinstance(leaf, Hint)), None)
        if hint is not None:
            message = (
                f'permit "{rule.id}" depends on what the server itself says of its tool '
                f"(`hint({hint.name.value})`)"
            )
            yield "hint-permit", Severity.WARNING, message, hint.place, ""
