"""What one set allows beyond another: each witness is decided so, and "proved" is never wrong."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings, strategies as st

from policies import Effect, PolicyLimits, PolicySet, Source, load
from policies.analysis import Proof, breaks, compare, subset
from policies.analysis.findings import findings_of
from policies.model import ChildSubset
from tests.policies.generated import plain_lists, policy_text, some_requests
from tests.policies.support import loaded
from tests.policies.test_listing import HIDDEN

RANK = {Effect.FORBID: 0, Effect.ASK: 1, Effect.PERMIT: 2}
UNDER_DATA = 'permit "p" call on a/t when arg(/path) under "data"'
HURRIED = PolicyLimits(analysis_requests_max=200, analysis_milliseconds_max=20)
"""For generated sets: to give up soon is an answer as well, and is never wrong."""
MANY = " and ".join(f"arg(/n{at}) <= {at}" for at in range(12))


def proof(child: str, parent: str, *, delegable: bool = False) -> Proof:
    return subset(loaded(child), loaded(parent), delegable=delegable).proof


def test_a_condition_more_is_a_subset() -> None:
    assert (
        proof('permit "p" call on a/t when arg(/n) < 5', 'permit "p" call on a/t') is Proof.PROVED
    )


def test_a_condition_less_is_none_and_has_a_witness() -> None:
    claim = subset(
        loaded('permit "p" call on a/t'), loaded('permit "q" call on a/t when arg(/n) < 5')
    )
    assert claim.proof is Proof.REFUTED
    (witness,) = claim.witnesses
    assert (witness.request.resource.name, witness.new.effect) == ("t", Effect.PERMIT)
    assert "permit by" in witness.to_text()


@pytest.mark.parametrize(
    ("child", "parent", "answer"),
    [
        ("arg(/n) in 2..3", "arg(/n) in 1..4", Proof.PROVED),
        ("arg(/n) in 0..3", "arg(/n) in 1..4", Proof.REFUTED),
        ('arg(/path) under "data/x"', 'arg(/path) under "data"', Proof.PROVED),
        ('arg(/path) under "data"', 'arg(/path) under "data/x"', Proof.REFUTED),
        ('arg(/s) starts_with "abc"', 'arg(/s) contains "b"', Proof.PROVED),
        ('arg(/s) contains "b"', 'arg(/s) like "*ab*"', Proof.REFUTED),
        ('arg(/s) in ["ab", "cb"]', 'arg(/s) ends_with "b"', Proof.PROVED),
        ('all arg(/to) in ["a"]', 'all arg(/to) in ["a", "b"]', Proof.PROVED),
        ('all arg(/to) in ["a", "b"]', 'all arg(/to) in ["a"]', Proof.REFUTED),
        ("not after untrusted", "not after untrusted from web", Proof.PROVED),
        ("not after untrusted from web", "not after untrusted", Proof.REFUTED),
        ("digest pinned and arg(/n) < 5", "arg(/n) < 6", Proof.PROVED),
        ("args only (/a)", "args only (/a, /b)", Proof.PROVED),
        ("budget(calls) > 5", "budget(calls) > 3", Proof.PROVED),
    ],
)
def test_conditions_are_compared_by_what_they_mean(child: str, parent: str, answer: Proof) -> None:
    rule = 'permit "p" call on a/t when '
    assert proof(rule + child, rule + parent) is answer


@pytest.mark.parametrize(
    ("child", "parent", "answer"),
    [
        ("a/get_x*", "a/get_*", Proof.PROVED),
        ("a/*", "a/get_*", Proof.REFUTED),
        ("any server/t", "a/t", Proof.REFUTED),
        ("a/{b,c}", "a/*", Proof.PROVED),
    ],
)
def test_names_are_compared_by_what_they_mean(child: str, parent: str, answer: Proof) -> None:
    assert proof(f'permit "p" call on {child}', f'permit "p" call on {parent}') is answer


def test_a_require_of_the_parent_counts() -> None:
    required = 'permit "p" call on a/t require "r" call on a/t that arg(/n) < 5'
    assert proof('permit "p" call on a/t', required) is Proof.REFUTED
    assert proof('permit "p" call on a/t when arg(/n) < 3', required) is Proof.PROVED


def test_to_ask_where_it_was_permitted_is_no_more() -> None:
    assert proof('ask "p" call on a/t', 'permit "p" call on a/t') is Proof.PROVED
    assert proof('permit "p" call on a/t', 'ask "p" call on a/t') is Proof.REFUTED


def test_what_a_child_may_do_its_parent_must_be_able_to_hand_on() -> None:
    child = 'permit "c" call on a/t'
    assert proof(child, 'permit "p" call on a/t', delegable=True) is Proof.REFUTED
    assert proof(child, 'permit "p" delegate on a/*', delegable=True) is Proof.PROVED


def test_a_comparison_names_each_rule_that_newly_allows() -> None:
    old = loaded('permit "p" call on a/t')
    new = loaded('permit "p" call on a/* permit "q" read on a resource "doc://x/**"')
    found = {reason.rule for each in compare(old, new).witnesses for reason in each.new.reasons}
    assert found == {"p", "q"}
    assert compare(new, new).proof is not Proof.REFUTED


def test_a_space_too_large_to_try_is_proved_by_the_solver() -> None:
    child = f'permit "p" call on a/t when {MANY} and arg(/x) == 1'
    assert proof(child, f'permit "p" call on a/t when {MANY}') is Proof.PROVED
    assert proof(f'permit "p" call on a/t when {MANY}', child) is Proof.REFUTED


NEVER_TRUE = "arg(/x) == 1 and arg(/x) == 2"
"""False for most, and without a value where there is no number."""
TRIED_AND_SOLVED = (PolicyLimits(), PolicyLimits(analysis_requests_max=1))


@pytest.mark.parametrize("limits", TRIED_AND_SOLVED, ids=["tried", "solved"])
@pytest.mark.parametrize(
    ("child", "parent", "answer"),
    [
        # alone it lets nothing through, however it is looked for
        (f'ask "a" call on a/t when {NEVER_TRUE}', 'permit "q" call on a/u', Proof.PROVED),
        ('ask "a" call on a/t when arg(/x) == 1', 'permit "q" call on a/u', Proof.REFUTED),
        # beside a permit it takes that away where it has no value
        (
            f'ask "a" call on a/t when {NEVER_TRUE} permit "p" call on a/t',
            'permit "q" call on a/t',
            Proof.PROVED,
        ),
        (
            f'ask "a" call on a/t when {NEVER_TRUE} permit "p" call on a/t',
            'ask "q" call on a/t',
            Proof.REFUTED,
        ),
        (
            'permit "p" call on a/t when arg(/n) < 5',
            f'permit "q" call on a/t ask "a" call on a/t when {NEVER_TRUE}',
            Proof.REFUTED,
        ),
        (
            'permit "p" call on a/t when arg(/n) < 5 and arg(/x) == 1',
            f'permit "q" call on a/t when arg(/n) < 5 ask "a" call on a/t when {NEVER_TRUE}',
            Proof.PROVED,
        ),
        (
            'ask "b" call on a/t when arg(/n) < 5',
            f'permit "q" call on a/t when arg(/n) < 6 ask "a" call on a/t when {NEVER_TRUE}',
            Proof.PROVED,
        ),
        (
            'ask "b" call on a/t when arg(/n) < 5',
            'ask "a" call on a/t when arg(/n) < 5 and arg(/x) != 1',
            Proof.REFUTED,
        ),
    ],
)
def test_an_ask_without_a_value_allows_nothing_and_restricts(
    child: str, parent: str, answer: Proof, limits: PolicyLimits
) -> None:
    assert subset(loaded(child), loaded(parent), limits=limits).proof is answer


@pytest.mark.parametrize("limits", TRIED_AND_SOLVED, ids=["tried", "solved"])
def test_what_an_ask_without_a_value_asks_about_is_not_permitted(limits: PolicyLimits) -> None:
    text = (
        'policy t v1 { permit "p" call on a/t\n'
        'ask "a" call on a/t unless exists arg(/x) and arg(/x) == 1 }\n'
        "assert never call on a/t unless arg(/x) == 1\n"
    )
    policy_set = load([Source("t.policy", text)])
    (claim,) = policy_set.assertions
    assert not isinstance(claim, ChildSubset)
    assert breaks(policy_set, claim, limits=limits).proof is Proof.PROVED


def test_an_ask_that_is_never_true_decides_something_only_beside_a_permit() -> None:
    ask = f'ask "a" call on a/t when {NEVER_TRUE}'
    assert [each.code for each in findings_of(loaded(ask))] == ["unreachable-rule"]
    assert not findings_of(loaded(f'{ask} permit "p" call on a/t'))


def test_without_the_solver_such_a_space_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    child = f'permit "p" call on a/t when {MANY} and arg(/x) == 1'
    claim = subset(loaded(child), loaded(f'permit "p" call on a/t when {MANY}'))
    assert (claim.proof, claim.open) == (Proof.NOT_PROVED, ("call a/t",))


def test_requests_beyond_the_bound_are_said_to_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    child, parent = (
        loaded('permit "p" call on a/t when arg(/n) < 5'),
        loaded('permit "p" call on a/t'),
    )
    most = next(
        n
        for n in range(1, 100)
        if subset(child, parent, limits=PolicyLimits(analysis_requests_max=n)).proof is Proof.PROVED
    )
    below = PolicyLimits(analysis_requests_max=most - 1)
    assert subset(child, parent, limits=below).proof is Proof.NOT_PROVED


def test_a_comparison_that_runs_out_of_patience_says_what_it_left_and_proves_nothing() -> None:
    child, parent = (
        loaded('permit "p" call on a/t when arg(/n) < 5'),
        loaded('permit "p" call on a/t'),
    )
    no_work = PolicyLimits(analysis_work_max=0)
    hurried = subset(child, parent, limits=no_work)
    assert (hurried.proof, hurried.open) == (
        Proof.NOT_PROVED,
        ("what is left after so many rules were asked",),
    )
    assert compare(parent, child, limits=no_work).proof is Proof.NOT_PROVED
    enough = next(
        n
        for n in range(1, 10_000)
        if subset(child, parent, limits=PolicyLimits(analysis_work_max=n)).proof is Proof.PROVED
    )
    one_less = PolicyLimits(analysis_work_max=enough - 1)
    assert subset(child, parent, limits=one_less).proof is Proof.NOT_PROVED
    assert subset(child, parent).proof is compare(parent, child).proof is Proof.PROVED


def test_claims_of_one_set_share_their_patience_and_no_rule_is_called_idle_that_was_not_looked_at() -> (
    None
):
    text = (
        'policy t v1 { permit "p" call on a/t\n forbid "f" call on a/t }\n'
        "assert never call on a/u\nassert never call on a/v\n"
    )
    claims = load([Source("t.policy", text)])
    found = findings_of(claims, limits=PolicyLimits(analysis_work_max=0))
    assert [each.code for each in found] == ["unproved-claim", "unproved-claim"]
    assert [each.code for each in findings_of(claims)] == ["unreachable-rule"]


def test_tests_that_see_one_value_in_open_ways_are_not_proved() -> None:
    rule = 'permit "p" call on a/t when arg(/u) '
    open_ways = 'host "a.example" and arg(/u) path_like "x/**" and arg(/u) under "x"'
    assert proof(f"{rule}{open_ways}", f'{rule}host "b.example"') is not Proof.PROVED


@pytest.mark.parametrize("condition", HIDDEN)
def test_what_some_call_passes_is_never_proved_to_be_nothing(condition: str) -> None:
    assert (
        proof(f'permit "p" call on a/t when {condition}', 'permit "q" call on a/u')
        is not Proof.PROVED
    )


def test_a_claim_that_something_never_happens_is_refuted_by_a_request() -> None:
    text = (
        'policy t v1 { permit "p" call on mail/send }\n'
        "assert never call on mail/send when after untrusted from web\n"
    )
    policy_set = load([Source("t.policy", text)])
    (claim,) = policy_set.assertions
    assert not isinstance(claim, ChildSubset)
    found = breaks(policy_set, claim)
    assert found.proof is Proof.REFUTED
    labels = found.witnesses[0].request.context.labels
    assert {(label.name, label.server) for label in labels} == {("untrusted", "web")}


def test_a_claim_that_something_never_happens_is_proved_where_it_is_denied_or_asked() -> None:
    rules = 'permit "p" call on mail/send ask "a" call on mail/send after untrusted from web'
    text = (
        f"policy t v1 {{ {rules} }}\nassert never call on mail/send when after untrusted from web\n"
    )
    policy_set = load([Source("t.policy", text)])
    (claim,) = policy_set.assertions
    assert not isinstance(claim, ChildSubset)
    assert breaks(policy_set, claim).proof is Proof.PROVED


def set_of(rules: list[str]) -> PolicySet:
    return load([Source("g.policy", policy_text(rules))])


@settings(max_examples=25, deadline=None)
@given(plain_lists, plain_lists, st.integers(0, 2**32))
def test_no_request_contradicts_a_proof_and_each_witness_is_one(
    child: list[str], parent: list[str], seed: int
) -> None:
    narrow, wide = set_of(child), set_of(parent)
    claim = subset(narrow, wide, limits=HURRIED)
    for witness in claim.witnesses:
        asked = witness.request
        assert RANK[narrow.decide(asked).effect] > RANK[wide.decide(asked).effect]
    if claim.proof is Proof.PROVED:
        for asked in some_requests(seed, 300):
            assert RANK[narrow.decide(asked).effect] <= RANK[wide.decide(asked).effect]


@settings(max_examples=10, deadline=None)
@given(plain_lists, st.integers(0, 7))
def test_a_set_without_one_of_its_restrictions_is_never_proved_to_be_wider_wrongly(
    rules: list[str], at: int
) -> None:
    # the same rules, one permit fewer: a subset, and never refuted
    fewer = [rule for n, rule in enumerate(rules) if n != at or not rule.startswith("permit")]
    claim = subset(set_of(fewer), set_of(rules), limits=HURRIED)
    assert claim.proof is not Proof.REFUTED
