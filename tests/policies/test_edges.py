"""The edges of what is decided: one step to either side of each, found by breaking the evaluation."""

from __future__ import annotations

from dataclasses import is_dataclass
from datetime import datetime
from importlib import import_module

import pytest

from policies import (
    Annotations,
    Context,
    Effect,
    Operation,
    PolicyError,
    PolicyLimits,
    PolicySet,
    Principal,
    Resource,
    Source,
    load,
    run_tests,
)
from policies.evaluation import Verdict
from policies.evaluation.checks import compile_check
from policies.model import (
    Budget,
    Compare,
    Comparison,
    Deadline,
    Mark,
    MaxChildren,
    MaxDepth,
    Metered,
    Never,
    Scope,
    Test,
)
from tests.policies.support import loaded, request, value_of

DAY = "2026-01-31"
"""A Saturday."""
HINTS = ("read_only", "destructive", "idempotent", "open_world")


def frozen(made: type) -> bool:
    """Is a value of this dataclass one that cannot be changed?"""
    return "__setattr__" in vars(made)


def at(condition: str, time: str) -> bool:
    """Does a permit with this condition speak at that time of the day, in UTC?"""
    wall = datetime.fromisoformat(f"{DAY}T{time}+00:00").timestamp()
    rules = loaded(f'permit "p" call on a/t when {condition}')
    verdict = rules.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))
    return verdict.decide(Context({}, wall=wall)).effect is Effect.PERMIT


@pytest.mark.parametrize(
    ("condition", "time", "answer"),
    [
        ('time in "09:00".."17:30"', "08:59:59", False),
        ('time in "09:00".."17:30"', "09:00:00", True),
        ('time in "09:00".."17:30"', "17:29:59", True),
        ('time in "09:00".."17:30"', "17:30:00", False),
        ('time in "22:00".."06:00"', "21:59:59", False),
        ('time in "22:00".."06:00"', "22:00:00", True),
        ('time in "22:00".."06:00"', "05:59:59", True),
        ('time in "22:00".."06:00"', "06:00:00", False),
        (f'now before "{DAY}T12:00:00Z"', "11:59:59", True),
        (f'now before "{DAY}T12:00:00Z"', "12:00:00", False),
        ('day in ["sat"]', "00:00:00", True),
        ('day in ["sat"]', "23:59:59", True),
        ('day in ["fri"]', "00:00:00", False),
        ('day in ["sun"]', "23:59:59", False),
    ],
)
def test_a_time_begins_and_ends_where_it_says(condition: str, time: str, answer: bool):
    assert at(condition, time) is answer


@pytest.mark.parametrize("name", HINTS)
@pytest.mark.parametrize("said", [True, False, None])
def test_each_hint_is_the_one_that_the_server_gave(name: str, said: bool | None):
    rules = loaded(f'permit "p" call on a/t forbid "f" call on a/t when hint({name})')
    alone = Annotations(**{name: said})
    among_others = Annotations(**{**dict.fromkeys(HINTS, not said), name: said})

    for hints in (alone, among_others):
        resource = Resource("a", "tool", "t", "", hints)
        found = rules.verdict(Principal(role="r"), Operation.CALL, resource).decide(Context({}))
        assert (found.effect is Effect.PERMIT) is (said is False)


def test_a_definition_is_pinned_if_it_has_a_digest():
    rules = loaded('require "r" call on a/t that digest pinned permit "p" call on a/t')

    def effect(digest: str) -> Effect:
        resource = Resource("a", "tool", "t", digest)
        return (
            rules.verdict(Principal(role="r"), Operation.CALL, resource).decide(Context({})).effect
        )

    assert (effect("d1"), effect("")) == (Effect.PERMIT, Effect.FORBID)


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ('any arg == "x"', 1),
        ("any arg == true", "s"),
        ('any arg in ["x", "y"]', 1),
        ("any arg in 5..6", "s"),
        ("any arg length > 9", 1),
        ('any arg contains "x"', 1),
    ],
)
def test_any_argument_is_only_one_of_a_type_that_the_test_is_about(condition: str, value: object):
    assert value_of(condition, {"p": value}) is False


@pytest.mark.parametrize("literal", ["s", True])
def test_only_a_number_can_be_compared_by_size(literal: str | bool):
    with pytest.raises(TypeError, match="only numbers have an order"):
        compile_check(Compare(Comparison.LESS, literal), PolicyLimits())


def test_what_decides_cannot_be_changed():
    made = [
        each
        for name in ("binding", "examples", "index", "ready", "sets", "verdicts")
        for each in vars(import_module(f"policies.evaluation.{name}")).values()
        if isinstance(each, type) and is_dataclass(each)
    ]
    open_ones = [each.__name__ for each in made if not frozen(each)]

    assert len(made) > 8
    # the one that is being filled, and never leaves its module
    assert set(open_ones) == {"_Kinds"}


def test_names_that_the_same_rules_are_about_share_what_is_said_of_them():
    rules = loaded('permit "p" call on a/t* when arg(/n) == 1')

    def said(name: str) -> Verdict:
        return rules.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", name))

    assert said("t1") is said("t2")


def test_reasons_are_in_the_order_of_their_lines():
    rules = loaded(
        'forbid "f" call on a/*\nforbid "g" call on a/t\nforbid "h" call on any server/t'
    )
    outer = loaded('forbid "k" call on a/t')
    asked = request("a/t")
    verdict = rules.verdict(asked.principal, asked.action, asked.resource)
    both = outer.bounded_by(rules).verdict(asked.principal, asked.action, asked.resource)

    assert [each.rule for each in rules.decide(asked).reasons] == ["f", "g", "h"]
    assert [each.rule for each in verdict.spoken(asked.context)] == ["f", "g", "h"]
    assert [each.rule for each in both.decide(asked.context).reasons] == ["f", "k", "g", "h"]
    assert [each.rule for each in both.spoken(asked.context)] == ["f", "k", "g", "h"]


def constant(rules: PolicySet) -> Effect | None:
    """What a set says of one thing whatever the context is, if it does."""
    found = rules.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t")).constant
    return None if found is None else found.effect


def test_what_speaks_anyway_leaves_nothing_to_the_context():
    always, never = loaded('permit "p" call on a/t'), loaded('forbid "f" call on a/t')
    sometimes = loaded('permit "s" call on a/t when arg(/n) == 1')
    both = loaded('forbid "f" call on a/t forbid "g" call on a/t when arg(/n) == 1')

    assert constant(always.bounded_by(always)) is Effect.PERMIT
    assert constant(sometimes.bounded_by(never)) is Effect.FORBID
    assert constant(never.bounded_by(sometimes)) is Effect.FORBID
    assert constant(sometimes.bounded_by(always)) is None
    assert constant(both) is Effect.FORBID


def test_of_what_bounds_the_same_the_least_counts_and_the_rest_stays():
    inner = loaded(
        'permit "p" call on a/t limit "l" call on a/t budget calls 9 budget tokens 5 deadline 9s\n'
        'permit "d" delegate on a/t max children 3 max depth 4 oblige "o" call on a/t mark seen'
    )
    outer = loaded(
        'permit "p" call on a/t limit "l" call on a/t budget calls 8 budget tokens 6\n'
        'permit "d" delegate on a/t max children 5 max depth 2 oblige "o" call on a/t mark seen'
    )
    both = inner.bounded_by(outer)

    assert set(both.decide(request()).duties) == {
        Budget(Metered.CALLS, 8, Scope.AGENT, "l"),
        Budget(Metered.TOKENS, 5, Scope.AGENT, "l"),
        Deadline(9),
        Mark("seen"),
    }
    handed_on = both.decide(request(action=Operation.DELEGATE))
    assert set(handed_on.duties) == {MaxChildren(3), MaxDepth(2)}
    assert both.decide(request()).duties == outer.bounded_by(inner).decide(request()).duties


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_bound_that_one_of_two_permits_lacks_is_none(order: tuple[int, int]):
    permits = (
        'permit "a" delegate on a/t max depth 2 max children 3',
        'permit "b" delegate on a/t max depth 4',
    )
    rules = loaded(" ".join(permits[at] for at in order))

    assert rules.decide(request(action=Operation.DELEGATE)).duties == (MaxDepth(4),)


def test_the_rules_about_something_are_those_of_its_name_and_its_kind():
    rules = loaded(
        'permit "p" call on a/t* tool permit "q" call on a/t*1 prompt forbid "f" call on a/*u'
    )
    about = rules.rules_about(Operation.CALL, Resource("a", "tool", "t1"))

    assert [rule.id for rule in about] == ["p"]


def test_a_rule_whose_two_targets_are_about_the_same_speaks_once():
    rules = loaded('forbid "f" call on a/t, a/*')

    assert [reason.rule for reason in rules.decide(request()).reasons] == ["f"]


def test_what_is_shown_of_a_set_is_what_was_written():
    rules = loaded('permit "p" call on a/t', v="secret")
    verdict = rules.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))

    assert repr(verdict) == f"Verdict(constant={verdict.constant!r}, _known={{}})"
    assert repr(rules) == (
        f"PolicySet(policies={rules.policies!r}, sources={rules.sources!r}, "
        f"digest={rules.digest!r})"
    )


def test_what_is_forbidden_has_no_duties():
    rules = loaded(
        'permit "p" call on a/t forbid "f" call on a/t when arg(/n) == 1\n'
        'limit "l" call on a/t deadline 9s'
    )

    assert rules.decide(request(arguments={"n": 0})).duties == (Deadline(9.0),)
    assert rules.decide(request(arguments={"n": 1})).duties == ()


def test_any_argument_looks_at_just_as_many_values_as_it_may():
    text = 'policy p v1 { permit "p" call on a/t when any arg == 9 }'
    rules = load([Source("t", text)], limits=PolicyLimits(leaves_max=4))

    def effect(*values: int) -> Effect:
        return rules.decide(request(arguments={"p": list(values)})).effect

    # the name and the array are values as well
    assert [effect(9), effect(1, 9), effect(1, 1, 9)] == [
        Effect.PERMIT,
        Effect.PERMIT,
        Effect.FORBID,
    ]


@pytest.mark.parametrize(
    ("test", "value", "message"),
    [
        ('under "${v}"', "~/x", "what follows `under` is a path"),
        ('path_like "${v}"', "a/**b", "what follows `path_like`"),
        ('host "${v}"', "10.0.0.1", "a host is a name"),
        ('cidr "${v}"', "ten", "a network is an address"),
    ],
)
def test_a_parameter_that_makes_no_path_host_or_network_is_refused(
    test: str, value: str, message: str
):
    with pytest.raises(PolicyError, match=message) as caught:
        loaded(f'permit "p" call on a/t when arg(/p) {test}', v=value)

    assert caught.value.place.line == 2


def test_parameters_are_filled_in_wherever_a_test_has_values():
    text = (
        'policy p v1 { permit "x" call on a/t when arg(/o/k/1) == "v-1" }\n'
        'tests { permit call a/t {"o": {"k": [0, "v-${n}", {"d": "${n}"}]}} by "x" }'
    )
    policy_set = load([Source("t", text)], {"n": "1"})

    assert policy_set.tests[0].arguments == {"o": {"k": [0, "v-1", {"d": "1"}]}}
    assert [outcome.why for outcome in run_tests(policy_set)] == [""]


def test_parameters_are_filled_in_in_claims_and_other_claims_stay_as_they_are():
    text = (
        'policy p v1 {} assert never call on a/t when arg(/p) == "${n}"\n'
        'assert never call on a/t assert child_subset(policy "p", policy "p")'
    )
    first, second, third = load([Source("t", text)], {"n": "1"}).assertions

    assert isinstance(first, Never)
    assert isinstance(first.condition, Test)
    assert isinstance(first.condition.check, Compare)
    assert first.condition.check.literal == "1"
    assert isinstance(second, Never)
    assert second.condition is None
    assert not isinstance(third, Never)


@pytest.mark.parametrize("literal", ["other", "other_", "other__"])
def test_there_is_another_string_whatever_strings_a_rule_names(literal: str):
    rules = loaded(f'permit "p" call on a/t when arg(/p) != "{literal}" and arg(/p) != "other"')
    verdict = rules.verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))

    assert verdict.visible
    assert rules.decide(request(arguments={"p": "x"})).effect is Effect.PERMIT
