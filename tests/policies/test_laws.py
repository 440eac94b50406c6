"""The laws of decisions, on generated policies and requests."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from policies import Context, Effect, PolicySet, Request, Source, load
from policies.model import Operation, Principal, Resource
from tests.policies.generated import (
    ARGUMENTS,
    SERVERS,
    TOOLS,
    plain_lists,
    policy_text,
    rule_lists,
    rules,
    some_requests,
)
from tests.policies.naive import naive_decide

ORDER = {Effect.PERMIT: 0, Effect.ASK: 1, Effect.FORBID: 2}
seeds = st.integers(min_value=0, max_value=2**32)
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def set_of(*texts: str) -> PolicySet:
    return load([Source(f"{n}.policy", text) for n, text in enumerate(texts)])


def effects(policy_set: PolicySet, requests: list[Request]) -> list[Effect]:
    return [policy_set.decide(each).effect for each in requests]


@given(rule_lists, seeds)
@settings(quick, max_examples=400)
def test_the_engine_agrees_with_a_naive_one(drawn: list[str], seed: int):
    policy_set = set_of(policy_text(drawn))

    # 20,000 pairs; `python -m tests.policies.agree` compares as many as one likes
    for each in some_requests(seed, 50):
        assert policy_set.decide(each).effect is naive_decide(policy_set.rules, each)


@given(rule_lists, seeds)
@quick
def test_a_verdict_decides_as_the_set_does(drawn: list[str], seed: int):
    policy_set = set_of(policy_text(drawn))

    for each in some_requests(seed, 50):
        verdict = policy_set.verdict(each.principal, each.action, each.resource)
        decision = policy_set.decide(each)
        assert verdict.decide(each.context) == decision
        assert verdict.constant in (None, decision)
        assert decision.effect in verdict.possible


@pytest.mark.requirement("I11")
@given(rule_lists, seeds)
@quick
def test_order_and_repetition_change_nothing(drawn: list[str], seed: int):
    requests = some_requests(seed, 30)
    before = effects(set_of(policy_text(drawn)), requests)
    shuffled = [*drawn, *drawn]
    Random(seed).shuffle(shuffled)
    cut = len(shuffled) // 2

    again = set_of(policy_text(shuffled[cut:], "q"), policy_text(shuffled[:cut], "p"))

    assert effects(again, requests) == before


@pytest.mark.requirement("I12")
@given(rule_lists, rules(("forbid", "ask")), seeds)
@quick
def test_one_more_forbid_or_ask_never_widens(drawn: list[str], added: str, seed: int):
    requests = some_requests(seed, 50)
    before = effects(set_of(policy_text(drawn)), requests)

    after = effects(set_of(policy_text([*drawn, added])), requests)

    # an ask may come from a denial, since a person then decides; never a permit
    for old, new in zip(before, after, strict=True):
        assert new is not Effect.PERMIT or old is Effect.PERMIT
        assert ORDER[new] >= ORDER[old] or added.startswith("ask")


@pytest.mark.requirement("I12")
@given(rule_lists, rules(("permit",)), seeds)
@quick
def test_one_permit_less_never_widens(drawn: list[str], removed: str, seed: int):
    requests = some_requests(seed, 50)
    before = effects(set_of(policy_text([*drawn, removed])), requests)

    after = effects(set_of(policy_text(drawn)), requests)

    assert all(ORDER[new] >= ORDER[old] for old, new in zip(before, after, strict=True))


@pytest.mark.requirement("I10")
@given(rule_lists, seeds)
@quick
def test_a_permit_never_speaks_without_a_value_and_others_do(drawn: list[str], seed: int):
    policy_set = set_of(policy_text(drawn))

    for each in some_requests(seed, 50):
        for reason in policy_set.decide(each).reasons:
            assert not (reason.errored and reason.effect is Effect.PERMIT)


@pytest.mark.requirement("I13")
@given(plain_lists, st.sampled_from(SERVERS), st.sampled_from(TOOLS))
@settings(quick, max_examples=40)
def test_visible_is_what_some_arguments_can_reach(drawn: list[str], server: str, tool: str):
    policy_set = set_of(policy_text(drawn))
    verdict = policy_set.verdict(
        Principal(role="r"), Operation.CALL, Resource(server, "tool", tool)
    )

    reached = {verdict.decide(Context(arguments)).effect for arguments in ARGUMENTS}

    assert verdict.visible is bool(reached - {Effect.FORBID})
    assert verdict.possible == reached


@pytest.mark.requirement("I13")
@given(rule_lists, seeds)
@quick
def test_whatever_can_be_called_is_visible(drawn: list[str], seed: int):
    policy_set = set_of(policy_text(drawn))

    for each in some_requests(seed, 100):
        verdict = policy_set.verdict(each.principal, each.action, each.resource)
        assert verdict.decide(each.context).effect in verdict.possible


@pytest.mark.requirement("I9")
@given(rule_lists, seeds)
@quick
def test_without_a_permit_nothing_is_permitted(drawn: list[str], seed: int):
    policy_set = set_of(policy_text([each for each in drawn if not each.startswith("permit")]))

    assert Effect.PERMIT not in effects(policy_set, some_requests(seed, 50))


@given(rule_lists, seeds)
@quick
def test_the_digest_depends_on_what_is_written_and_not_on_order(drawn: list[str], seed: int):
    one, two = policy_text(drawn, "p"), policy_text(drawn[1:], "q")

    assert set_of(one, two).digest == set_of(two, one).digest
    assert set_of(one).digest != set_of(one, two).digest
