"""Why a decision is what it is."""

from __future__ import annotations

import json

import pytest

from policies import Operation, explain
from tests.policies.support import EXAMPLE, example, loaded, request


def test_the_deciding_rule_is_named_with_its_line():
    explanation = explain(example(), request("git/git_log", role="historian"))

    assert explanation.to_text() == (
        'permit: call on git/git_log for role historian\n  by permit "read-git" (release.policy:5)'
    )


def test_a_decision_is_the_one_that_decide_makes():
    asked = request("mail/send", {"to": "you"})

    assert explain(example(), asked).decision == example().decide(asked)


def test_losing_rules_are_listed():
    explanation = explain(example(), request("mail/send", {"to": "you"}))

    assert [reason.rule for reason in explanation.deciding] == ["mail"]
    assert [reason.rule for reason in explanation.losing] == ["mail-me"]
    assert explanation.nearest is None


def test_the_nearest_permit_says_which_test_failed():
    asked = request("files/write_file", {"path": "/etc/passwd", "size": "big"}, role="writer")
    no_value = 'arg(/path) under "out/" must hold, and it has no value'
    explanation = explain(example(), asked)

    assert explanation.to_text().splitlines() == [
        "forbid: call on files/write_file for role writer",
        "  no rule permits it (default deny)",
        '  nearest permit "write-brief" (release.policy:7) (its condition has no value):',
        f"    {no_value} (the argument is string: it is absolute, and the rule's path is relative)",
        "    arg(/size) <= 65536 must hold, and it has no value (the argument is string)",
    ]


def test_only_tests_that_failed_are_shown():
    asked = request("files/write_file", {"path": "out/x", "size": 70_000}, role="writer")
    nearest = explain(example(), asked).nearest

    assert nearest is not None
    (failed,) = nearest.failed
    assert (failed.operand, failed.operator, failed.expected) == ("arg(/size)", "<=", "65536")
    assert (failed.actual, failed.errored, failed.negated) == ("number", False, False)


def test_a_missing_argument_is_called_missing():
    nearest = explain(example(), request("files/write_file", {}, role="writer")).nearest

    assert nearest is not None
    assert [test.actual for test in nearest.failed] == ["missing", "missing"]


def test_a_test_below_unless_would_have_had_to_fail():
    policy_set = loaded('permit "p" call on a/t unless arg(/p) in ["x", true] or exists arg(/q)')
    nearest = explain(policy_set, request(arguments={"p": "x"})).nearest

    assert nearest is not None
    assert [str(test) for test in nearest.failed] == [
        'arg(/p) in ["x", true] must not hold, and it does (the argument is string)'
    ]


def test_an_ask_that_does_not_hold_is_as_near_as_a_permit():
    policy_set = loaded('permit "other" call on b/u\nask "late" call on a/t when arg(/n) > 3')

    assert explain(policy_set, request(arguments={"n": 1})).to_text().splitlines()[1:] == [
        "  no rule permits it (default deny)",
        '  nearest ask "late" (t.policy:3):',
        "    arg(/n) > 3 must hold, and it does not (the argument is number)",
    ]


def test_an_ask_without_a_value_that_asks_about_nothing_is_the_nearest_and_says_why():
    policy_set = loaded('ask "docs" call on a/t when arg(/path) under "/srv/docs"')
    explanation = explain(policy_set, request(arguments={"path": "/srv/docs/../../etc/passwd"}))
    why = (
        'arg(/path) under "/srv/docs" must hold, and it has no value '
        "(the argument is string: it has `..`)"
    )

    assert explanation.to_text().splitlines()[1:] == [
        "  no rule permits it (default deny)",
        '  nearest ask "docs" (t.policy:2) (its condition has no value):',
        f"    {why}",
    ]
    assert explanation.to_agent() == f"no rule permits it; {why}"
    assert not explanation.losing


def test_an_ask_without_a_value_that_asks_about_a_permit_is_marked_and_the_permit_has_lost():
    policy_set = loaded('permit "p" call on a/t\nask "docs" call on a/t when arg(/n) > 1')

    assert explain(policy_set, request()).to_text().splitlines()[1:] == [
        '  by ask "docs" (t.policy:3) (its condition has no value)',
        '  over permit "p" (t.policy:2)',
    ]


@pytest.mark.parametrize("beside", ["", 'permit "p" call on a/t\n', 'ask "q" call on a/t\n'])
def test_an_ask_without_a_value_has_lost_to_a_forbid_only_if_it_had_something_to_ask_about(
    beside: str,
):
    rules = 'ask "docs" call on a/t when arg(/n) > 1\nforbid "f" call on a/t'
    explanation = explain(loaded(beside + rules), request())

    losing = {reason.rule for reason in explanation.losing}
    assert losing == ({"docs", beside.split('"')[1]} if beside else set())
    assert (explanation.nearest is None) is bool(beside)


@pytest.mark.parametrize(
    ("rule", "path", "flaw"),
    [
        ('under "out"', "", "it is empty"),
        ('under "out"', "x" * 4097, "it is too long"),
        ('under "out"', "~/out", "it begins with `~`"),
        ('under "out"', "out\\x", "it has a backslash or a control character"),
        ('under "out"', "out/e\u0301", "its letters are not in NFC"),
        ('under "out"', "out/../x", "it has `..`"),
        ('path_like "out/*"', "../out/x", "it has `..`"),
        ('under "out"', "out/%2e%2e/x", "it has `..` once it is decoded"),
        ('under "out"', "C:/out", "its first part has a colon"),
        ('under "/out"', "out/x", "it is relative, and the rule's path is absolute"),
        ('under "out"', "%6fut", "it can be decoded in two ways"),
        ('under "out"', "out%ff", "it can be decoded in two ways"),
        ('starts_with "out"', 7, ""),
        ('under "out"', ["../x"], ""),
    ],
)
def test_what_of_a_path_leaves_it_without_a_value_is_told(rule: str, path: object, flaw: str):
    policy_set = loaded(f'ask "a" call on a/t when arg(/p) {rule}')
    nearest = explain(policy_set, request(arguments={"p": path})).nearest

    assert nearest is not None
    assert [(test.errored, test.flaw) for test in nearest.failed] == [(True, flaw)]
    assert nearest.rule.errored


def test_a_rule_of_which_one_test_has_no_value_and_another_fails_has_a_value():
    policy_set = loaded('permit "p" call on a/t when arg(/n) > 1 and arg(/m) > 1')
    nearest = explain(policy_set, request(arguments={"n": 0})).nearest

    assert nearest is not None
    assert [test.errored for test in nearest.failed] == [False, True]
    assert not nearest.rule.errored


def test_a_permit_comes_before_an_ask_that_lacks_as_much():
    policy_set = loaded(
        'ask "late" call on a/t when arg(/n) > 3\npermit "many" call on a/t when arg(/n) > 5'
    )
    nearest = explain(policy_set, request(arguments={"n": 1})).nearest

    assert nearest is not None
    assert nearest.rule.rule == "many"


def test_the_layer_that_only_asks_is_not_the_one_that_lacks_something():
    asking = loaded('ask "p" call on a/t')
    bounded = asking.bounded_by(loaded('permit "q" call on a/t when arg(/n) > 5'))
    nearest = explain(bounded, request(arguments={"n": 1})).nearest

    assert nearest is not None
    assert nearest.rule.rule == "q"


def test_the_nearest_permit_says_what_else_did_not_fit():
    nearest = explain(example(), request("git/git_log", role="reader")).nearest

    assert nearest is not None
    assert (nearest.rule.rule, nearest.lacks) == ("read-git", ("it is for role historian",))


def test_everything_that_can_be_lacking_has_words():
    rule = 'permit "p" call on b/u tool for role s depth <= 1'
    asked = request("a/t", action=Operation.READ, kind="prompt", depth=2)
    nearest = explain(loaded(rule), asked).nearest

    assert nearest is not None
    assert nearest.lacks == (
        "it is about server b",
        "the name does not match: the rule names u",
        "it is about a tool",
        "it is about call",
        "it is for role s",
        "it does not reach agents at depth 2",
    )


def test_a_rule_without_a_value_is_marked():
    policy_set = loaded('permit "p" call on a/t\nforbid "f" call on a/t when arg(/p) == 1')
    explanation = explain(policy_set, request())

    assert explanation.to_text().splitlines()[1:] == [
        '  by forbid "f" (t.policy:3) (its condition has no value)',
        '  over permit "p" (t.policy:2)',
    ]


def test_no_value_of_an_argument_is_shown():
    asked = request("files/write_file", {"path": "s3cret", "size": "s3cret"}, role="writer")
    explanation = explain(example(), asked)

    assert "s3cret" not in explanation.to_text() + json.dumps(explanation.to_json())


def test_the_json_has_the_same_grounds():
    asked = request("files/write_file", {"path": "out/x", "size": 70_000}, role="writer")

    assert explain(example(), asked).to_json() == {
        "effect": "forbid",
        "operation": "call",
        "server": "files",
        "kind": "tool",
        "name": "write_file",
        "role": "writer",
        "by_default": True,
        "deciding": [],
        "losing": [],
        "duties": [],
        "nearest": {
            "rule": "write-brief",
            "effect": "permit",
            "word": "permit",
            "path": "release.policy",
            "line": 7,
            "errored": False,
            "lacks": [],
            "failed": [
                {
                    "operand": "arg(/size)",
                    "operator": "<=",
                    "expected": "65536",
                    "actual": "number",
                    "flaw": "",
                    "errored": False,
                    "negated": False,
                }
            ],
        },
    }


def test_each_literal_is_shown_as_it_is_written():
    literals = ("null", "true", "1.5", r'"a\"b"')
    rule = 'permit "p" call on a/t when ' + " and ".join(f"arg(/p) == {each}" for each in literals)
    nearest = explain(loaded(rule), request()).nearest

    assert nearest is not None
    assert [test.expected for test in nearest.failed] == list(literals)


def test_the_example_stays_the_one_that_these_lines_count_in():
    assert EXAMPLE.splitlines()[6].startswith('  permit "write-brief"')
