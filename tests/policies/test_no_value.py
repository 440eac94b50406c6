"""Conditions without a value: whoever sends an argument that is made to be mistaken gets no more by it."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from policies import Context, Effect, Operation, PolicySet, Principal, Resource, Source, load
from policies.evaluation import Verdict
from policies.model import Deadline, Expiry
from tests.policies.generated import plain_lists, policy_text
from tests.policies.support import decided, loaded, request

STRICTNESS = (Effect.PERMIT, Effect.ASK, Effect.FORBID)
PERMIT = 'permit "p" call on fs/write\n'
DOCS = 'ask "docs" call on fs/write when arg(/path) under "/srv/docs"\n'
SURE = 'ask "sure" call on fs/write when arg(/n) == 1\n'
CROOKED = "/srv/docs/../../etc/passwd"
TESTS = (
    # a test, and what it is true for, false for, and has no value for
    ("arg({p}) == true", True, False, "?"),
    ('arg({p}) under "/srv/docs"', "/srv/docs/a", "/etc/passwd", CROOKED),
    ("not (arg({p}) <= 5)", 6, 5, None),
    (
        'arg({p}) host "a.example"',
        "https://a.example/",
        "https://b.example/",
        "https://u@a.example",
    ),
)
WORDS = ("permit", "ask", "forbid", "require", "limit", "oblige")
DUTIES = {"limit": " deadline 5s", "oblige": " mark seen", "ask": " expires 9s"}
quick = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def outcome(rules: str, path: str, n: object = 0) -> tuple[str, list[str]]:
    """The word for a path, and by which rules; those without a value are marked."""
    decision = decided(rules, request("fs/write", {"path": path, "n": n}))
    by = [f"{each.rule}{'?' * each.errored}" for each in decision.reasons]
    return decision.effect.value, by


@pytest.mark.requirement("I10")
@pytest.mark.parametrize("path", ["/etc/passwd", CROOKED, "docs/a", "", "C:/x"])
def test_an_ask_that_stands_alone_asks_about_nothing_that_its_condition_is_not_true_of(path: str):
    assert outcome(DOCS, "/srv/docs/a") == ("ask", ["docs"])
    assert outcome(DOCS, path) == ("forbid", [])


@pytest.mark.requirement("I10")
@pytest.mark.parametrize(
    ("beside", "word", "by"),
    [
        (PERMIT, "ask", ["docs?"]),
        ('permit "p" call on fs/write when arg(/n) == 0\n', "ask", ["docs?"]),
        ('permit "p" call on fs/write when arg(/n) == 1\n', "forbid", []),
        ('permit "p" call on fs/write when arg(/n) == "0"\n', "forbid", []),
        ('ask "q" call on fs/write\n', "ask", ["q"]),
        ('ask "q" call on fs/write when arg(/n) == 0\n', "ask", ["q", "docs?"]),
        ('ask "q" call on fs/write when arg(/n) == 1\n', "forbid", []),
        ('ask "q" call on fs/write when arg(/n) == "0"\n', "forbid", []),
        (PERMIT + 'ask "q" call on fs/write when arg(/n) == "0"\n', "ask", ["q?", "docs?"]),
        (PERMIT + 'forbid "f" call on fs/write when arg(/n) == 0\n', "forbid", ["f"]),
        (PERMIT + 'forbid "f" call on fs/write when arg(/n) == "0"\n', "forbid", ["f?"]),
        (PERMIT + 'require "r" call on fs/write that arg(/n) == "0"\n', "forbid", ["r?"]),
        ('limit "l" call on fs/write deadline 5s\n', "forbid", []),
    ],
)
def test_an_ask_without_a_value_asks_about_what_would_be_let_through_and_no_more(
    beside: str, word: str, by: list[str]
):
    assert outcome(beside + DOCS, CROOKED) == (word, by)


def test_asks_of_both_kinds_bring_their_duties():
    rules = (
        'ask "long" call on fs/write when arg(/n) == 0 expires 9m\n'
        'ask "short" call on fs/write when arg(/path) under "/srv/docs" expires 5m\n'
        'limit "l" call on fs/write when arg(/path) under "/srv/docs" deadline 5s'
    )
    asked = request("fs/write", {"path": CROOKED, "n": 0})

    assert set(decided(rules, asked).duties) == {Expiry(300.0), Deadline(5.0)}


def test_a_permit_of_one_layer_gives_an_ask_of_the_other_nothing_to_restrict():
    within = loaded(DOCS).bounded_by(loaded(PERMIT))
    around = loaded(PERMIT).bounded_by(loaded(DOCS))
    both = loaded(PERMIT).bounded_by(loaded('permit "q" call on fs/write\n' + DOCS))
    asked = request("fs/write", {"path": CROOKED})

    assert within.decide(asked).effect is Effect.FORBID
    assert around.decide(asked).effect is Effect.FORBID
    assert both.decide(asked).effect is Effect.ASK


# ---------------------------------------------------------------------------------------------- laws


def strictness(policy_set: PolicySet, arguments: dict[str, object]) -> int:
    asked = request("a/t", arguments, role="r")
    return STRICTNESS.index(policy_set.decide(asked).effect)


def clause(word: str, test: str, *, unless: bool) -> str:
    """What stands behind the target of a rule that looks at one test."""
    if word == "require":
        return f" that {f'not ({test})' if unless else test}"
    return f" {'unless' if unless else 'when'} {test}{DUTIES.get(word, '') * (word != 'ask')}"


@pytest.mark.requirement("I10")
@given(plain_lists, st.sampled_from(WORDS), st.sampled_from(TESTS), st.booleans(), st.booleans())
@settings(quick, max_examples=300)
def test_no_value_is_given_as_much_as_the_stricter_of_true_and_false(
    drawn: list[str],
    word: str,
    test: tuple[str, object, object, object],
    unless: bool,
    permitted: bool,
):
    text, *values = test
    added = f'{word} "{{id}}" call on a/t{clause(word, text.format(p="/v"), unless=unless)}'
    more = ['permit "{id}" call on a/t'] if permitted else []
    policy_set = load([Source("g.policy", policy_text([*drawn, *more, added]))])

    true, false, none = (strictness(policy_set, {"v": value}) for value in values)

    assert none == max(true, false)


@pytest.mark.requirement("I10")
@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(TESTS)), max_size=4))
@quick
def test_several_mistakes_at_once_get_no_more_than_any_call_without_one(
    drawn: list[tuple[str, tuple[str, object, object, object]]],
):
    rules = [
        f'{word} "r{n}" call on a/t{clause(word, test[0].format(p=f"/v{n}"), unless=False)}'
        for n, (word, test) in enumerate(drawn)
    ]
    policy_set = loaded("\n".join(rules))

    def decided_for(kinds: tuple[int, ...]) -> int:
        values = {f"v{n}": drawn[n][1][1 + kind] for n, kind in enumerate(kinds)}
        return strictness(policy_set, values)

    for kinds in product(range(3), repeat=len(drawn)):
        honest = product(*((0, 1) if kind == 2 else (kind,) for kind in kinds))
        assert decided_for(kinds) == max(map(decided_for, honest))


@pytest.mark.parametrize("word", ["limit", "oblige"])
@pytest.mark.parametrize("permit", [PERMIT, DOCS + PERMIT])
def test_a_duty_whose_condition_has_no_value_is_a_duty(word: str, permit: str):
    rules = f'{permit}{word} "d" call on fs/write when arg(/n) == 1{DUTIES[word]}'

    def duties(n: object) -> tuple[object, ...]:
        return decided(rules, request("fs/write", {"path": CROOKED, "n": n})).duties

    assert duties("one") == duties(1) != duties(0)


# ------------------------------------------------------------------------------------------- verdicts

ONE = 'ask "one" read on docs resource "doc://a/**"\n'
SENT = 'ask "sent" read on docs resource "doc://a/**" when arg(/n) == 1\n'
ALL = 'permit "all" read on docs\n'
SOME = 'permit "some" read on docs when arg(/n) == 1\n'
ASKED = 'ask "asked" read on docs when arg(/n) == 1\n'
UNCLEAR = "doc://a/../b"


def verdict_of(rules: str, name: str = UNCLEAR) -> Verdict:
    resource = Resource("docs", "resource", name)
    return loaded(rules).verdict(Principal(role="r"), Operation.READ, resource)


def words(effects: frozenset[Effect]) -> set[str]:
    return {effect.value for effect in effects}


@pytest.mark.parametrize(
    ("rules", "constant", "possible"),
    [
        (ONE, "forbid", {"forbid"}),
        (ONE + ALL, "ask", {"ask"}),
        (ONE + SOME, None, {"ask", "forbid"}),
        (ONE + ALL + SOME, "ask", {"ask"}),
        (ONE + ASKED, None, {"ask", "forbid"}),
        (ONE + 'ask "any" read on docs\n', "ask", {"ask"}),
        (SENT, None, {"forbid"}),
        (SENT + ALL, None, {"ask", "permit"}),
        (SENT + ONE, None, {"forbid"}),
        (SENT + SOME, None, {"ask", "forbid"}),
        (ASKED, None, {"ask", "forbid"}),
        (ASKED + ALL, None, {"ask", "permit"}),
        (ASKED + ONE + ALL, None, {"ask"}),
        (ONE + ALL + 'forbid "f" read on docs\n', "forbid", {"forbid"}),
        (ONE + ALL + 'forbid "f" read on docs when arg(/n) == 1\n', None, {"ask", "forbid"}),
        (ONE + 'forbid "f" read on docs when arg(/n) == 1\n', None, {"forbid"}),
    ],
)
def test_a_name_that_cannot_be_read_in_one_way_leaves_an_ask_without_a_value(
    rules: str, constant: str | None, possible: set[str]
):
    verdict = verdict_of(rules)
    found = None if verdict.constant is None else verdict.constant.effect.value
    reached = {verdict.decide(Context({"n": n})).effect for n in (1, 2, "one")}

    assert found == constant
    assert words(verdict.possible) == possible == words(frozenset(reached))
    assert words(verdict.upper) >= possible
    assert constant is None or words(verdict.upper) == possible


def test_an_ask_that_nothing_can_make_true_is_not_listed_by_itself():
    assert words(verdict_of(SENT).upper) == {"forbid"}
    assert not verdict_of(SENT + ONE).visible
    assert verdict_of(SENT, "doc://a/b").visible


def test_the_reasons_of_such_an_ask_are_marked_and_each_is_there():
    decision = verdict_of(ONE + SENT + ALL).decide(Context({"n": 2}))

    assert [(each.rule, each.errored) for each in decision.reasons] == [("one", True)]
    decision = verdict_of(ONE + SENT + ALL).decide(Context({"n": 1}))
    assert [(each.rule, each.errored) for each in decision.reasons] == [
        ("one", True),
        ("sent", True),
    ]
