"""A policy within another: the stricter word of both, the duties of both, and no permit that widens."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from policies import (
    Context,
    Effect,
    Operation,
    PolicySet,
    Principal,
    Resource,
    Source,
    explain,
    load,
)
from policies.model import Deadline
from tests.policies.generated import (
    ARGUMENTS,
    SERVERS,
    TOOLS,
    plain_lists,
    policy_text,
    rule_lists,
    some_requests,
)
from tests.policies.naive import naive_decide
from tests.policies.support import loaded, request

STRICTNESS = (Effect.PERMIT, Effect.ASK, Effect.FORBID)
seeds = st.integers(min_value=0, max_value=2**32)
quick = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


def set_of(text: str) -> PolicySet:
    return load([Source("t.policy", text)])


def within(inner: str, outer: str) -> PolicySet:
    return loaded(inner).bounded_by(loaded(outer))


@pytest.mark.requirement("I12")
@given(rule_lists, rule_lists, seeds)
@quick
def test_the_stricter_of_two_layers_decides(inner: list[str], outer: list[str], seed: int):
    one, other = set_of(policy_text(inner)), set_of(policy_text(outer))
    both = one.bounded_by(other)

    for each in some_requests(seed, 40):
        words = (naive_decide(one.rules, each), naive_decide(other.rules, each))
        verdict = both.verdict(each.principal, each.action, each.resource)
        decision = both.decide(each)
        assert decision.effect is max(words, key=STRICTNESS.index)
        assert verdict.decide(each.context) == decision
        assert verdict.constant in (None, decision)
        assert decision.effect in verdict.possible


@pytest.mark.requirement("I13")
@given(plain_lists, plain_lists, st.sampled_from(SERVERS), st.sampled_from(TOOLS))
@settings(quick, max_examples=20)
def test_what_is_listed_is_what_both_leave_reachable(
    inner: list[str], outer: list[str], server: str, tool: str
):
    both = set_of(policy_text(inner)).bounded_by(set_of(policy_text(outer)))
    verdict = both.verdict(Principal(role="r"), Operation.CALL, Resource(server, "tool", tool))

    reached = {verdict.decide(Context(arguments)).effect for arguments in ARGUMENTS}

    assert verdict.possible >= reached
    assert verdict.visible or reached == {Effect.FORBID}


def test_a_permit_of_the_inner_layer_alone_permits_nothing():
    both = within('permit "p" call on a/*', 'permit "q" call on b/*')

    assert both.decide(request("a/t")).effect is Effect.FORBID
    assert both.decide(request("b/t")).effect is Effect.FORBID


def test_an_ask_of_one_layer_and_a_permit_of_the_other_ask():
    both = within('permit "p" call on a/t', 'ask "q" call on a/t')

    decision = both.decide(request("a/t"))

    assert (decision.effect, [each.rule for each in decision.reasons]) == (Effect.ASK, ["q"])


def test_the_duties_of_both_layers_hold_and_of_bounds_the_least():
    both = within(
        'permit "p" call on a/t\nlimit "l" call on a/t deadline 9s',
        'permit "q" call on a/t\nlimit "m" call on a/t deadline 5s',
    )

    assert both.decide(request("a/t")).duties == (Deadline(5.0),)


def test_conditions_that_exclude_each_other_leave_nothing_to_list():
    both = within(
        'permit "p" call on a/t when arg(/n) == 1', 'permit "q" call on a/t when arg(/n) == 2'
    )
    verdict = both.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))

    assert not verdict.visible


def test_the_layer_that_does_not_permit_is_the_one_explained():
    both = within('permit "p" call on a/t', 'permit "q" call on a/t when arg(/n) == 2')
    explanation = explain(both, request("a/t", {"n": 1}))

    assert explanation.nearest is not None
    assert explanation.nearest.rule.rule == "q"
    assert [reason.rule for reason in explanation.losing] == ["p"]


def test_both_layers_are_part_of_the_digest():
    inner, outer = loaded('permit "p" call on a/t'), loaded('permit "q" call on a/t')

    assert len({inner.digest, outer.digest, inner.bounded_by(outer).digest,
                outer.bounded_by(inner).digest}) == 4  # fmt: skip


def test_what_a_bounding_policy_says_of_agents_and_children_counts():
    outer = loaded(
        'permit "q" call on a/t for agent "x*"\npermit "d" delegate on a/t max children 2'
    )
    both = loaded('permit "p" call on a/t').bounded_by(outer)

    assert both.names_agents
    assert both.bounds_children


def test_bounds_are_taken_off_and_put_on_without_a_new_set():
    plain = loaded('permit "p" call on a/t')

    assert plain.bounded_by(None) is plain
    assert plain.layers == (plain,)
