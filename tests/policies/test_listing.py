"""What could be reached at all: of which kinds of values examples are tried, and when trying is not enough."""

from __future__ import annotations

import pytest

from policies import Context, Operation, Place, PolicyLimits, Principal, Resource
from policies.evaluation import compile_condition, tests_of as parts_of
from policies.evaluation.examples import examples_of, instants
from policies.evaluation.values import MISSING
from policies.model import Before, JsonType, Test, TimeOfDay, TypeIs, Weekday
from tests.policies.generated import POINTERS, TESTS, filled
from tests.policies.support import loaded

LIMITS = PolicyLimits()
MORE = (
    *('arg(/p) starts_with "a"', 'arg(/p) ends_with "a"', 'arg(/p) contains "a"'),
    *('arg(/p) like "a*b"', 'arg(/p) host "*.a.b"', 'arg(/p) cidr "10.0.0.0/8"'),
    *('arg(/p) path_like "src/**/*.py"', 'arg(/p) path_like "/src/*"'),
    *("arg(/p) length in 2..4", "arg(/p) length >= 1", "arg(/p) length == 0"),
    *('arg(/p) under "/"', 'arg(/p) under "/abs/in"', 'arg(/p) under "./a/b/"'),
)
HUGE = "1" + "0" * 39
HIDDEN = (
    # a string of that length that is no literal
    *('arg(/p) != "x" and arg(/p) length == 1', 'arg(/p) != "" and not (arg(/p) length >= 2)'),
    *(
        'arg(/p) != "a" and not (arg(/p) length >= 1)',
        'arg(/p) != "a" and not (arg(/p) length > 9)',
    ),
    'arg(/p) != "abcdef" and not (arg(/p) length >= 3)',
    # an object with more in it than what else is looked at
    "arg(/p) is object and arg(/p) length == 3",
    "exists arg(/o/k) and arg(/o) length == 3",
    # an array that has an element at its place
    *('arg(/p) is array and arg(/p/0) == "a"', 'any arg(/to) == "a" and arg(/to/1) == "b"'),
    *('any arg(/to) == "a" and arg(/to) length == 3', 'all arg(/to) == "a" and arg(/to) is array'),
    # a whole number, and a broken one, in each stretch
    "arg(/n) is integer and arg(/n) > 5 and arg(/n) < 8",
    "arg(/n) is integer and arg(/n) > 5.5 and arg(/n) < 6.25",
    "arg(/n) is number and not (arg(/n) is integer) and arg(/n) > 5 and arg(/n) < 7",
    "not (arg(/n) is integer) and arg(/n) > 5",
    "not (arg(/n) is integer) and arg(/n) < -5",
    "arg(/n) > 9007199254740992 and arg(/n) < 9007199254740994",
    *(f"arg(/n) > {HUGE} and arg(/n) < {HUGE[:-1]}2", f"arg(/n) < -{HUGE[:-1]}"),
    # an argument beside an inner one
    "exists arg(/o/k) and not (args only (/o/k))",
)
"""Conditions that are true of some arguments which are easily overlooked."""
TYPES = ("string", "number", "integer", "boolean", "null", "object", "array")
HERE = Place("t.policy", 1)
LATER = "2026-06-01T00:00:00Z"


def reached(rules: str) -> set[str]:
    """The effects that some context leads to, or could."""
    verdict = loaded(rules).verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))
    return {effect.value for effect in verdict.possible}


def permitted(condition: str) -> bool:
    """True if a permit under this condition alone is taken to be reachable."""
    return "permit" in reached(f'permit "p" call on a/t when {condition}')


def single(text: str) -> Test:
    """The one test of a condition that is a single test of an argument."""
    (rule,) = loaded(f'permit "p" call on a/t when {text}').rules
    assert rule.condition is not None
    (found,) = parts_of(rule.condition)
    assert isinstance(found, Test)
    return found


@pytest.mark.parametrize("text", [*(filled(each, POINTERS[0]) for each in TESTS), *MORE])
def test_there_is_an_example_for_each_answer_of_a_test(text: str):
    test = single(text)
    holds = compile_condition(test, LIMITS)
    examples = examples_of([test.check], LIMITS)
    contexts = [Context({"p": value}) for value in examples.values]

    answers = {holds(each, Resource("a", "tool", "t"), {}) for each in (*contexts, Context())}

    # what exists and what is null always has a value; everything relative is below `.`
    never = {None} if text == "exists arg(/p)" else set[bool | None]()
    never |= {False} if text == 'arg(/p) under "."' else set()
    never |= {False} if text == 'arg(/p) under "/"' else set()
    assert answers >= {True, False, None} - never


@pytest.mark.parametrize("word", TYPES)
def test_there_is_an_example_of_each_type_once_a_type_is_asked_for(word: str):
    assert permitted(f"arg(/p) is {word}")
    assert permitted(f"not (arg(/p) is {word})")


@pytest.mark.parametrize(
    "condition",
    [
        *("arg(/n) > 1 and arg(/n) < 2", "arg(/n) < 1", "arg(/n) > 5", "arg(/n) != 3"),
        *("arg(/n) in 1..5 and arg(/n) != 1 and arg(/n) != 5", "not (arg(/n) in 1..5)"),
        *("arg(/p) == null", "arg(/p) != null", "arg(/p) == true", "arg(/p) == false"),
        *('arg(/p) != "a"', 'not (arg(/p) in ["a", true])'),
        *("exists arg(/p) and not exists arg(/q)", "exists arg(/o/k)", "exists arg(/o/k/l)"),
        *('arg(/p) under "out/" and not (arg(/p) under "out/in")', 'not (arg(/p) under "out/")'),
        *('arg(/p) under "/a" and not (arg(/p) under "/a/b")', 'not (arg(/p) under "/a")'),
        *("arg(/p) length == 3", "arg(/p) length > 3", "arg(/p) length < 3"),
        *('any arg(/to) == "a"', 'not (any arg(/to) == "a")', 'all arg(/to) == "a"'),
        *("any arg == 5", "not (any arg == 5)", "args only (/p)", "not (args only (/p))"),
        *("after untrusted", "not after untrusted", "after untrusted from b"),
        *("after untrusted from b and not after untrusted from c", "after sensitive"),
        *("budget(calls) >= 5", "budget(calls) < 5", "budget(calls) < 5 and budget(tokens) > 9"),
        *('time in "09:00".."17:00"', 'not (time in "09:00".."17:00")', 'time in "22:00".."06:00"'),
        *('day in ["sun"]', 'day in ["mon"]', 'not (day in ["mon"])', 'day in ["thu"]'),
        *(f'now before "{LATER}"', f'not (now before "{LATER}")'),
        f'day in ["sat"] and time in "09:00".."17:00" and now before "{LATER}"',
        f'day in ["sat"] and time in "09:00".."17:00" and not (now before "{LATER}")',
        f'day in ["mon"] and not (now before "{LATER}")',
        f'day in ["fri"] and now before "{LATER}"',
        *('not (arg(/p) contains "o")', 'not (arg(/p) ends_with "r")', 'not (arg(/p) like "*t*")'),
        *('not (arg(/p) path_like "/src/*")', 'not (arg(/p) path_like "*")'),
        'not (arg(/p) cidr in ["192.0.2.0/24", "::1/128"])',
        *("arg(/a) == 1 and arg(/b) == 2", 'arg(/o/a) == 1 and arg(/o/b) == "x"'),
    ],
)
def test_what_some_context_satisfies_is_reached(condition: str):
    assert reached(f'permit "p" call on a/t when {condition}') == {"permit", "forbid"}


@pytest.mark.parametrize("condition", HIDDEN)
def test_what_some_context_satisfies_is_not_overlooked(condition: str):
    assert permitted(condition)


def test_between_two_whole_numbers_that_follow_each_other_there_is_no_third():
    none = f"arg(/n) is integer and arg(/n) > {HUGE} and arg(/n) < {HUGE[:-1]}1"

    assert not permitted(none)


def test_of_two_paths_one_may_be_unclear_and_the_other_not():
    rules = (
        'permit "p" call on a/t\n'
        'require "r" call on a/t that arg(/p) under "in" or not (arg(/p) under "in")\n'
        'ask "q" call on a/t when arg(/p) under "out" and not (arg(/p) under "out")'
    )

    assert reached(rules) == {"ask", "forbid", "permit"}


def test_examples_are_made_of_lengths_up_to_a_bound_and_beyond_it_nothing_is_concluded():
    none = "arg(/p) length <= {0} and not (arg(/p) length <= {0})"

    assert not permitted(none.format(4095))
    assert permitted(none.format(4096))


def test_the_same_values_are_tried_each_time():
    found = examples_of([TypeIs(JsonType.STRING)], LIMITS).values

    numbers = [0, 0.5, -1, -1.5, 0.25, 1, 0.75]
    assert list(found) == ["", "other", *numbers, None, True, [], {}, MISSING]
    assert [type(each) for each in found if each == 1] == [int, bool]


def test_the_same_moments_are_tried_each_time():
    day = 86_400
    before = Before(wall=100.0 * day, written="", place=HERE)

    assert instants([before]).values == [91.0 * day, 101.0 * day, 100.0 * day, None]
    assert instants([]).values == [0.0, None]


@pytest.mark.parametrize(
    "condition",
    [
        *("arg(/n) > 2 and arg(/n) < 1", "arg(/n) == 1 and arg(/n) == 2"),
        *('arg(/p) == "a" and arg(/p) == "b"', "arg(/p) == null and arg(/p) == true"),
        *("exists arg(/p) and not exists arg(/p)", 'arg(/p) under "a" and arg(/p) == "b"'),
        *("exists arg(/o/k) and arg(/o) == 1", "after untrusted from b and not after untrusted"),
        *("budget(calls) > 5 and budget(calls) < 5", "args only (/p) and exists arg(/q)"),
        *(
            'day in ["mon"] and day in ["tue"]',
            'time in "09:00".."10:00" and time in "11:00".."12:00"',
        ),
        # one open pattern alone does not make the examples incomplete
        'arg(/p) like "a*" and arg(/n) == 1 and arg(/n) == 2',
        f'now before "2026-01-01T00:00:00Z" and not (now before "{LATER}")',
        *(
            'arg(/p) under "a" and not (arg(/p) under "a")',
            "arg(/p) length > 3 and arg(/p) length < 3",
        ),
    ],
)
def test_what_no_context_satisfies_is_not_reached(condition: str):
    assert reached(f'permit "p" call on a/t when {condition}') == {"forbid"}


@pytest.mark.parametrize(
    "condition",
    [
        # two open patterns may meet in a string that is an example of neither
        *('arg(/p) like "a*" and arg(/p) like "*b"', 'arg(/p) like "a*" and arg(/p) length == 9'),
        *('arg(/p) under "a" and arg(/p) ends_with "b"', 'arg(/p) like "a*" and arg(/p) != "ax"'),
        *('arg(/p) under "a" and arg(/p) length == 9', "arg(/p) length == 9000"),
        # whatever is looked at anywhere, beside an inner argument, or in several elements
        *("any arg == 5 and not (any arg == 5)", "args only (/o/k) and not (args only (/o/k))"),
        *('any arg(/to) == "a" and any arg(/to) == "b"', 'all arg(/to) == "a" and exists arg(/to)'),
        # a stretch of time that is shorter than the weeks that are tried
        (
            'not (now before "2026-01-01T00:00:00Z") and now before "2026-01-02T00:00:00Z" '
            'and day in ["mon"]'
        ),
    ],
)
def test_where_examples_do_not_show_everything_nothing_is_concluded(condition: str):
    assert permitted(condition)


def test_a_permit_that_a_forbid_leaves_no_room_for_is_not_reached():
    rules = 'permit "p" call on a/t when arg(/n) <= 5\nforbid "f" call on a/t when arg(/n) <= 5'

    assert reached(rules) == {"forbid"}


def test_more_combinations_than_the_bound_are_taken_to_reach_all_that_rules_name():
    tests = " and ".join(f"arg(/a{n}) == 1 and arg(/a{n}) == 2" for n in range(9))

    assert permitted(tests)


def test_what_speaks_anyway_hides_what_is_weaker():
    assert reached('permit "p" call on a/t\nask "q" call on a/t when arg(/n) == 1') == {
        "ask",
        "permit",
    }
    assert reached('forbid "f" call on a/t\npermit "p" call on a/t') == {"forbid"}
    assert reached('ask "f" call on a/t\npermit "p" call on a/t when arg(/n) == 1') == {"ask"}


def test_moments_reach_into_each_day_on_both_sides_of_a_moment():
    wall = 1_780_272_000.0
    found = instants(
        [
            Weekday(days=frozenset({0}), place=HERE),
            TimeOfDay(low=540, high=600, place=HERE),
            Before(wall=wall, written="", place=HERE),
        ]
    )
    moments = [each for each in found.values if isinstance(each, float)]

    for later in (False, True):
        days = {int(each // 86_400 + 3) % 7 for each in moments if (each >= wall) is later}
        assert days == set(range(7))
    assert {each % 86_400 // 60 for each in moments} >= {0, 540, 600}
    assert found.values[-1] is None
    assert found.complete


def test_moments_close_to_one_another_are_not_said_to_be_all():
    first = Before(wall=0.0, written="", place=HERE)

    assert not instants([first, Before(wall=9 * 86_400.0, written="", place=HERE)]).complete
    assert instants([first, Before(wall=9 * 86_400.0 + 1, written="", place=HERE)]).complete
