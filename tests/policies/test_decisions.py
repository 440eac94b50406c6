"""What single rules, and rules together, say."""

from __future__ import annotations

import pytest

from policies import (
    ASK_ALL,
    Decision,
    Effect,
    Operation,
    PolicySet,
    Principal,
    Reason,
    Request,
    Resource,
    Verdict,
    decide,
    load,
)
from policies.model import Place
from tests.policies.support import (
    decided,
    effect_when,
    example,
    loaded,
    request,
    value_of,
)

PERMIT = 'permit "p" call on a/t\n'
ASK = 'ask "a" call on a/t\n'
FORBID = 'forbid "f" call on a/t\n'


@pytest.mark.requirement("I9")
def test_without_rules_everything_is_denied_by_default():
    decision = load([]).decide(request())

    assert (decision.effect, decision.by_default) == (Effect.FORBID, True)


@pytest.mark.requirement("I9")
@pytest.mark.parametrize("operation", [each for each in Operation if each is not Operation.CALL])
def test_a_permit_for_calls_permits_nothing_else(operation: Operation):
    assert decided(PERMIT, request(action=operation)).effect is Effect.FORBID


@pytest.mark.requirement("I11")
@pytest.mark.parametrize(
    ("rules", "effect"),
    [
        (PERMIT, Effect.PERMIT),
        (ASK, Effect.ASK),
        (FORBID, Effect.FORBID),
        (PERMIT + ASK, Effect.ASK),
        (ASK + PERMIT, Effect.ASK),
        (PERMIT + FORBID, Effect.FORBID),
        (FORBID + ASK + PERMIT, Effect.FORBID),
    ],
)
def test_forbid_wins_over_ask_and_ask_over_permit(rules: str, effect: Effect):
    assert decided(rules, request()).effect is effect


def test_a_decision_names_its_rule_and_the_place():
    decision = decided(PERMIT, request())

    assert decision == Decision(
        effect=Effect.PERMIT,
        reasons=(Reason(rule="p", place=Place("t.policy", 2, 1), effect=Effect.PERMIT),),
    )
    assert str(decision.reasons[0]) == '"p" (t.policy:2)'


@pytest.mark.parametrize(
    ("name", "role", "effect"),
    [
        ("git/git_log", "historian", "permit"),
        ("git/git_diff_staged", "historian", "permit"),
        ("git/git_commit", "historian", "forbid"),
        ("git/git_log", "reader", "forbid"),
        ("git/git_reset", "historian", "forbid"),
        ("fetch/git_reset", "reader", "forbid"),
        ("brave/search", "nobody", "permit"),
        ("bing/search", "nobody", "forbid"),
        ("files/read_text", "reader", "permit"),
        ("files/read", "reader", "forbid"),
    ],
)
def test_the_example_decides_as_it_reads(name: str, role: str, effect: str):
    assert decide(example(), request(name, role=role)).effect.value == effect


@pytest.mark.parametrize(
    ("arguments", "effect"),
    [
        ({"path": "out/brief.md", "size": 10}, "permit"),
        ({"path": "out/brief.md", "size": 65537}, "forbid"),
        ({"path": "out/../x", "size": 10}, "forbid"),
        ({"path": "out-evil/x", "size": 10}, "forbid"),
        ({"path": "out/brief.md", "size": True}, "forbid"),
        ({"path": "out/brief.md", "size": "10"}, "forbid"),
        ({"path": "out/brief.md"}, "forbid"),
        ({}, "forbid"),
    ],
)
def test_the_writer_of_the_example_writes_only_small_files_below_out(
    arguments: dict[str, object], effect: str
):
    asked = request("files/write_file", arguments, role="writer")

    assert example().decide(asked).effect.value == effect


def test_the_parameter_of_the_example_is_filled_in():
    assert 'prefix="out/"' in repr(example().rules[2].condition).replace("'", '"')


@pytest.mark.parametrize(("depth", "effect"), [(0, "permit"), (2, "permit"), (3, "forbid")])
def test_depth_bounds_how_far_down_a_rule_reaches(depth: int, effect: str):
    asked = request("docs/doc://handbook/a", action=Operation.READ, kind="resource", depth=depth)

    assert example().decide(asked).effect.value == effect


@pytest.mark.parametrize(
    ("kind", "effect"),
    [("resource", "permit"), ("resource_template", "permit"), ("tool", "forbid")],
)
def test_a_kind_narrows_and_a_template_is_a_resource(kind: str, effect: str):
    rule = 'permit "x" read on a/t resource'

    assert decided(rule, request(action=Operation.READ, kind=kind)).effect.value == effect


# ------------------------------------------------------------------------------------ without a value


@pytest.mark.requirement("I10")
@pytest.mark.parametrize(
    ("effect", "outcome"), [("permit", "forbid"), ("ask", "forbid"), ("forbid", "forbid")]
)
@pytest.mark.parametrize("word", ["when", "unless"])
def test_a_condition_without_a_value_restricts(effect: str, outcome: str, word: str):
    rules = f'permit "p" call on a/t for role s\n{effect} "x" call on a/t {word} arg(/p) == 1'
    decision = decided(rules, request(arguments={"p": "one"}))

    assert decision.effect.value == outcome
    assert decision.by_default or decision.reasons[0].errored


@pytest.mark.requirement("I10")
@pytest.mark.parametrize("value", ["1", True, None, [1], {"a": 1}, float("nan"), float("inf")])
def test_a_number_is_compared_with_numbers_only(value: object):
    assert value_of("arg(/p) == 1", {"p": value}) is None
    assert value_of("arg(/p) <= 1", {"p": value}) is None
    assert value_of("arg(/p) in 0..1", {"p": value}) is None


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("arg(/p) == 1", 1.0, True),
        ("arg(/p) != 1", 2, True),
        ("arg(/p) != 1", "2", None),
        ("arg(/p) == true", 1, None),
        ("arg(/p) == false", False, True),
        ('arg(/p) == "a"', "A", False),
        ('arg(/p) == "é"', "e\u0301", False),
        ("arg(/p) == null", None, True),
        ("arg(/p) == null", 0, False),
        ("arg(/p) != null", 0, True),
        ("arg(/p) < 3", 3, False),
        ("arg(/p) >= 3", 3, True),
        ("arg(/p) > 0.1", 10**400, True),
        ("arg(/p) == 9007199254740993", 9007199254740992.0, False),
        ('arg(/p) in ["a", 1]', "a", True),
        ('arg(/p) in ["a", 1]', 2, False),
        ('arg(/p) in ["a", 1]', True, None),
        ("arg(/p) in [1]", True, None),
        ("arg(/p) in 1..3", 3, True),
        ("arg(/p) in 1..3", 3.5, False),
        ("exists arg(/p)", None, True),
        ("exists arg(/q)", 1, False),
        ("exists arg(/p/0)", [1], True),
        ("exists arg(/p/00)", [1], False),
        ("exists arg(/p/1)", [1], False),
        ("exists arg(/p/-)", [1], False),
        ("exists arg(/p/99999999999999999999)", [1], False),
        ("arg(/p/a/0) == 1", {"a": [1]}, True),
        ("arg(/p/a) == 1", "text", None),
    ],
)
def test_a_test_has_three_values(condition: str, value: object, expected: bool | None):
    assert value_of(condition, {"p": value}) is expected


@pytest.mark.requirement("I10")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("arg(/t) == 1 and arg(/x) == 1", None),
        ("arg(/x) == 1 and arg(/t) == 1", None),
        ("arg(/f) == 1 and arg(/x) == 1", False),
        ("arg(/x) == 1 and arg(/f) == 1", False),
        ("arg(/t) == 1 or arg(/x) == 1", True),
        ("arg(/x) == 1 or arg(/t) == 1", True),
        ("arg(/f) == 1 or arg(/x) == 1", None),
        ("not arg(/x) == 1", None),
        ("not (arg(/x) == 1 or arg(/t) == 1)", False),
        ("exists arg(/x) and arg(/x) == 1", False),
        ("not exists arg(/x) or arg(/x) == 1", True),
    ],
)
def test_and_or_not_follow_kleene(condition: str, expected: bool | None):
    assert value_of(condition, {"t": 1, "f": 0}) is expected


# ----------------------------------------------------------------------------------------------- paths


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("out/x", True),
        ("out/a/b.md", True),
        ("./out//x", True),
        ("out", True),
        ("out/", True),
        ("a/../out/x", None),
        ("out/a/../x", None),
        ("out/a/..", None),
        ("out/link/../x", None),
        ("out/..x", True),
        ("out/a%20b", True),
        ("out/100%", True),
        ("out-evil/x", False),
        ("outx", False),
        ("OUT/x", False),
        ("x/out/y", False),
        ("out/../x", None),
        ("out/../../out/../x", None),
        ("../out/x", None),
        ("..", None),
        ("/out/x", None),
        ("//out/x", None),
        ("/../out/x", None),
        ("out/%2e%2e/x", None),
        ("out/%2E%2e%2fx", None),
        ("out%2fx", None),
        ("out/%252e%252e/x", None),
        ("%6fut/x", None),
        ("out/%00", None),
        ("out/%5c..%5cx", None),
        ("out/%ff", None),
        ("out\\x", None),
        ("out/..\\..\\x", None),
        ("out/a\0b", None),
        ("out/a\nb", None),
        ("", None),
        ("~/out/x", None),
        ("C:/out", None),
        ("file:///out/x", None),
        ("out/" + "a" * 5000, None),
        ("out/\ud800", True),
        ("out/\ud800%41", None),
        ("o\uff55t/x", False),
        ("out\u2215..\u2215x", False),
        (7, None),
        (["out/x"], None),
        (None, None),
    ],
)
def test_under_a_relative_path(path: object, expected: bool | None):
    assert value_of('arg(/p) under "out/"', {"p": path}) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/srv/data/x", True),
        ("//srv///data/x", True),
        ("/srv/./data", True),
        ("/../srv/data/x", True),
        ("/srv/data/../x", None),
        ("/srv/data/link/../x", None),
        ("/srv/x/../data/y", None),
        ("/srv/data-evil/x", False),
        ("/srv", False),
        ("/", False),
        ("srv/data/x", None),
        ("/srv/data/%2e%2e/x", None),
    ],
)
def test_under_an_absolute_path(path: str, expected: bool | None):
    assert value_of('arg(/p) under "/srv/data"', {"p": path}) is expected


@pytest.mark.requirement("I10")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/data/Keys/caf\u00e9", True),
        ("/data/Keys/cafe\u0301", None),  # another name on Linux, the same elsewhere
        ("/data/\u212aeys/x", None),  # a Kelvin sign: NFC makes a K of it
        ("/data/other/\u212a", None),
        ("/data/%E2%84%AAeys/x", None),
    ],
)
def test_no_form_of_unicode_makes_one_folder_of_two(path: str, expected: bool | None):
    assert value_of('arg(/p) under "/data/Keys"', {"p": path}) is expected


@pytest.mark.parametrize(("path", "expected"), [("x", True), ("../x", None), ("/x", None)])
def test_a_dot_is_every_relative_path(path: str, expected: bool | None):
    assert value_of('arg(/p) under "."', {"p": path}) is expected


@pytest.mark.requirement("I10")
def test_a_path_without_a_value_is_forbidden_where_a_forbid_tests_it():
    assert effect_when('arg(/p) under "secret/"', {"p": "../home/secret/x"}, "forbid") == "forbid"
    rules = 'permit "p" call on a/t unless arg(/p) under "secret/"'
    assert decided(rules, request(arguments={"p": "../me/secret/x"})).effect is Effect.FORBID


# ---------------------------------------------------------------------------------------- names, URIs


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("t", "t", True),
        ("t", "T", False),
        ("*", "anything/at all", True),
        ("get_*", "get_", True),
        ("*_x", "t_x", True),
        ("a*b*c", "a_b_b_c", True),
        ("a*b*c", "acb", False),
        ("ab*ba", "aba", False),
        ("a**b", "ab", True),
        ("t.x", "t_x", False),
    ],
)
def test_a_star_in_a_name_is_any_characters(pattern: str, name: str, matches: bool):
    decision = decided(f'permit "x" call on a/{pattern}', request(f"a/{name}"))

    assert (decision.effect is Effect.PERMIT) is matches


@pytest.mark.parametrize(
    ("pattern", "uri", "matches"),
    [
        ("doc://h/*", "doc://h/a", True),
        ("doc://h/*", "doc://h/a/b", False),
        ("doc://h/**", "doc://h/a/b", True),
        ("doc://h/**/z", "doc://h/a/b/z", True),
        ("doc://h/**/z", "doc://h/z", True),
        ("doc://h/**/z", "doc://h/z/y", False),
        ("doc://h/*.md", "doc://h/a.md", True),
        ("file:///srv/**", "file:///srv/a", True),
        ("doc://h/caf\u00e9", "doc://h/caf%C3%A9", True),
        ("doc://h/ab", "doc://h/%61b", True),
        ("doc://h/**", "doc://h/../x", False),
        ("doc://h/**", "doc://h/%2e%2e/x", False),
        ("doc://h/**", "doc://h/a%2f..%2fx", False),
        ("doc://h/**", "doc://h//x", False),
        ("doc://h/**", "doc://h/a\\x", False),
        ("doc://h/**", "DOC://h/x", False),
        ("doc://h/**", "doc://h/%ff", False),
        ("doc://h/**", "h/x", False),
        ("doc://h/Keys/*", "doc://h/\u212aeys/x", False),
        ("doc://h/Keys/*", "doc://h/%E2%84%AAeys/x", False),
    ],
)
def test_a_uri_pattern_goes_by_segments(pattern: str, uri: str, matches: bool):
    rule = f'permit "x" read on a resource "{pattern}"'
    asked = request(f"a/{uri}", action=Operation.READ, kind="resource")

    assert (decided(rule, asked).effect is Effect.PERMIT) is matches


@pytest.mark.requirement("I10")
@pytest.mark.parametrize(
    "uri", ["doc://x/../secret/y", "DOC://secret/y", "doc://x%2fy", "doc://\u212a/x"]
)
def test_a_uri_without_a_plain_form_is_forbidden_where_a_forbid_names_uris(uri: str):
    rules = 'permit "p" read on a/*\nforbid "f" read on a resource "doc://secret/**"'
    decision = decided(rules, request(f"a/{uri}", action=Operation.READ, kind="resource"))

    assert (decision.effect, decision.reasons[0].errored) == (Effect.FORBID, True)


def test_a_hostile_name_is_matched_in_bounded_time():
    rules = 'permit "x" read on a resource "doc://' + "**/a*a*a/" * 30 + 'z"'
    asked = request(f"a/doc://{'aaaa/' * 400}y", action=Operation.READ, kind="resource")

    assert decided(rules, asked).effect is Effect.FORBID


# ------------------------------------------------------------------------------------------- verdicts


NEVER_BUT_ERRED = 'ask "x" call on a/t when arg(/p) under "a/" and not arg(/p) under "a/"\n'
NO_PATH = (
    'ask "x" call on a/t when '
    + " and ".join(
        f'arg(/p) under "{at}" and not arg(/p) under "{at}"' for at in ("a", "b", "/c", "/d")
    )
    + "\n"
)


def verdict_of(rules: str) -> Verdict:
    return loaded(rules).verdict(Principal(role="r"), Operation.CALL, Resource("a", "tool", "t"))


def test_a_verdict_without_conditions_is_constant():
    verdict = verdict_of(PERMIT)

    assert verdict.constant is not None
    assert verdict.constant.effect is Effect.PERMIT
    assert verdict.possible == {Effect.PERMIT}


def test_a_forbid_that_always_speaks_makes_a_verdict_constant():
    verdict = verdict_of(FORBID + 'permit "x" call on a/t when arg(/p) == 1')

    assert verdict.constant is not None
    assert not verdict.visible


def test_an_ask_that_always_speaks_leaves_a_conditional_forbid_open():
    verdict = verdict_of(ASK + 'forbid "x" call on a/t when arg(/p) == 1')

    assert verdict.constant is None
    assert verdict.possible == {Effect.ASK, Effect.FORBID}


@pytest.mark.requirement("I13")
@pytest.mark.parametrize(
    ("rules", "visible"),
    [
        ('permit "x" call on a/t when arg(/p) == 1', True),
        ('permit "x" call on a/t when arg(/p) == 1 and arg(/p) == 2', False),
        ('permit "x" call on a/t when arg(/p) > 1 and arg(/p) < 2', True),
        ('permit "x" call on a/t when arg(/p) > 2 and arg(/p) < 1', False),
        ('permit "x" call on a/t when arg(/p) == 1 and arg(/p) == "a"', False),
        ('permit "x" call on a/t when arg(/p) under "a/" and arg(/p) under "b/"', False),
        ('permit "x" call on a/t when arg(/p) under "a/" and arg(/p) under "a/b"', True),
        ('permit "x" call on a/t when arg(/p) == "b/x" and arg(/p) under "a/"', False),
        ('permit "x" call on a/t when arg(/p) == 1 and arg(/p/q) == 1', False),
        ('permit "x" call on a/t when exists arg(/p) and arg(/p/q) == 1', True),
        ('permit "x" call on a/t forbid "f" call on a/t when arg(/p) == 1', True),
        (
            'permit "x" call on a/t forbid "f" call on a/t when exists arg(/p) or arg(/p) == 1',
            False,
        ),
        ('ask "x" call on a/t when arg(/p) == 1 or arg(/p) == 2', True),
        ('ask "x" call on a/t when arg(/p) == 1 and arg(/p) == 2', False),
        ('ask "x" call on a/t when exists arg(/p) and not exists arg(/p)', False),
        ('permit "x" call on a/t unless arg(/p) under "a/"', True),
        ('permit "x" call on a/t unless arg(/p) under "/a/"', True),
    ],
)
def test_a_tool_is_visible_if_some_arguments_get_through(rules: str, visible: bool):
    assert verdict_of(rules).visible is visible


@pytest.mark.parametrize(
    "rules",
    [
        'ask "x" call on a/t when arg(/p) == 1 and arg(/p) == 2',
        # only a path that one reads as below and another as beside
        NEVER_BUT_ERRED + 'forbid "f" call on a/t unless arg(/p) under "."',
        # only a string that is no path at all
        NO_PATH + 'forbid "f" call on a/t unless arg(/p) == "q" or arg(/p) != "q"',
    ],
)
def test_a_permitted_call_is_asked_about_if_some_arguments_leave_an_ask_without_a_value(rules: str):
    assert Effect.ASK in verdict_of(f"{PERMIT}{rules}").possible
    assert Effect.ASK not in verdict_of(rules).possible


# ------------------------------------------------------------------------------------ without a policy


@pytest.mark.requirement("I9")
@pytest.mark.requirement("S-48")
@pytest.mark.parametrize("operation", list(Operation))
def test_without_a_policy_file_everything_is_asked(operation: Operation):
    decision = ASK_ALL.decide(request(action=operation))

    assert decision.effect is Effect.ASK
    assert str(decision.reasons[0]) == '"ask-all" (no policy file)'


def test_a_set_cannot_be_changed():
    with pytest.raises(AttributeError):
        ASK_ALL.policies = ()  # pyright: ignore[reportAttributeAccessIssue]


def test_the_digest_covers_texts_and_parameters():
    rules = 'permit "x" call on a/t when arg(/p) == "${v}"'
    digests = {loaded(rules, v="1").digest, loaded(rules, v="2").digest, loaded(PERMIT).digest}

    assert len(digests) == 3
    assert isinstance(ASK_ALL, PolicySet)


def test_a_rule_that_means_a_name_in_two_ways_speaks_once():
    policy_set = loaded('permit "p" call on a/{t,t*,*} tool')

    assert [reason.rule for reason in policy_set.decide(request("a/t")).reasons] == ["p"]


def test_of_two_targets_that_mean_a_uri_the_first_names_its_parts():
    policy_set = loaded(
        'permit "p" read on docs resource "doc://{n}/b", docs resource "doc://a/{n}" '
        'when uri(n) == "a"'
    )
    asked = Request(
        principal=Principal(role="r"),
        action=Operation.READ,
        resource=Resource("docs", "resource", "doc://a/b"),
    )

    assert policy_set.decide(asked).effect is Effect.PERMIT


def test_a_target_that_knows_a_name_counts_after_one_that_cannot_tell():
    policy_set = loaded('permit "p" read on docs resource "doc://a/**", docs')
    asked = Request(
        principal=Principal(role="r"),
        action=Operation.READ,
        resource=Resource("docs", "resource", "doc://a/../b"),
    )

    assert policy_set.decide(asked).effect is Effect.PERMIT
