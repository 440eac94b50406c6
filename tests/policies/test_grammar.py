"""Each construct of the language, and each mistake with its place and the right word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policies import Effect, Operation, Source, load, parse
from policies.model import (
    Argument,
    Between,
    Check,
    Compare,
    Comparison,
    DepthBound,
    Exists,
    Kind,
    Not,
    OneOf,
    Parameter,
    Rule,
    Template,
    Test,
    Under,
)
from tests.policies.support import EXAMPLE, OUT, example, loaded, refusal, refused_rules, request


def the_rule(text: str) -> Rule:
    (policy,) = parse(f'policy t v1 {{ role r, s set web = server("x", "y z")\n{text}\n}}', "t")
    (rule,) = policy.rules
    return rule


def check_of(condition: str) -> Check:
    found = the_rule(f'permit "x" call on a/t when {condition}').condition
    assert isinstance(found, Test)
    return found.check


def test_the_example_is_read_whole():
    (policy,) = parse(EXAMPLE, "release.policy")

    assert policy.name == "release"
    assert [role.name for role in policy.roles] == ["historian", "reader", "writer"]
    assert [rule.id for rule in policy.rules] == [
        *("read-git", "read-files", "write-brief", "mail", "mail-me", "no-reset"),
        *("search", "spawn", "docs"),
    ]


def test_a_rule_knows_where_it_stands():
    (policy,) = parse(EXAMPLE, "release.policy")
    place = policy.rules[2].place

    assert (str(place), place.column) == ("release.policy:7", 3)


@pytest.mark.parametrize("effect", list(Effect))
def test_an_effect_is_read(effect: Effect):
    assert the_rule(f'{effect.value} "x" call on a/t').effect is effect


@pytest.mark.parametrize("operation", list(Operation))
def test_an_operation_is_read(operation: Operation):
    assert the_rule(f'permit "x" {operation.value} on a/t').operations == {operation}


def test_operations_are_a_list():
    rule = the_rule('permit "x" call, read,complete on a/t')

    assert rule.operations == {Operation.CALL, Operation.READ, Operation.COMPLETE}


@pytest.mark.parametrize(
    ("written", "servers"),
    [
        ("a/t", {"a"}),
        ("web/t", {"x", "y z"}),
        ('"y z"/t', {"y z"}),
        ("any  server/t", None),
        ("any/t", {"any"}),
        ("server/t", {"server"}),
        ("permit/t", {"permit"}),
        ("a.b-c_1/t", {"a.b-c_1"}),
    ],
)
def test_a_server_is_a_name_a_set_or_any(written: str, servers: set[str] | None):
    assert the_rule(f'permit "x" call on {written}').targets[0].servers == servers


@pytest.mark.parametrize(
    ("written", "alternatives"),
    [
        ("a/t", ("t",)),
        ("a/get_*", ("get_*",)),
        ("a/{t, u}", ("t", "u")),
        ("a/x_{t,u*}_{1,2}", ("x_t_1", "x_t_2", "x_u*_1", "x_u*_2")),
        ('a tool "odd name"', ("odd name",)),
    ],
)
def test_names_are_patterns(written: str, alternatives: tuple[str, ...]):
    assert the_rule(f'permit "x" call on {written}').targets[0].names.alternatives == alternatives


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("a/t", None),
        ("a/t tool", Kind.TOOL),
        ("a/t prompt", Kind.PROMPT),
        ('a resource "doc://x/*"', Kind.RESOURCE),
    ],
)
def test_a_target_may_name_its_kind(written: str, kind: Kind | None):
    assert the_rule(f'permit "x" call on {written}').targets[0].kind is kind


def test_roles_and_depth_are_read():
    rule = the_rule('permit "x" call on a/t for role r, s depth <= 2')

    assert (rule.who.roles, rule.who.depth) == ({"r", "s"}, DepthBound(high=2))


def test_a_depth_may_have_a_lower_bound():
    assert the_rule('forbid "x" call on a/t depth >= 3').who.depth == DepthBound(low=3)


@pytest.mark.parametrize("comparison", list(Comparison))
def test_a_comparison_is_read(comparison: Comparison):
    check = check_of(f"arg(/p) {comparison.value} 1")

    assert isinstance(check, Compare)
    assert check.comparison is comparison


@pytest.mark.parametrize(
    ("written", "literal"),
    [
        ("1", 1),
        ("-2", -2),
        ("0.5", 0.5),
        ("true", True),
        ("false", False),
        ("null", None),
        ('""', ""),
        (r'"a\"\\\n\t\/\u00e9\$"', 'a"\\\n\t/é$'),
        ('"$5 #"', "$5 #"),
    ],
)
def test_a_literal_is_read(written: str, literal: object):
    check = check_of(f"arg(/p) == {written}")

    assert isinstance(check, Compare)
    assert (check.literal, type(check.literal)) == (literal, type(literal))


def test_lists_ranges_paths_and_existence_are_read():
    words = ('arg(/p) in ["a", 1]', "arg(/p) in -1..2.5", 'arg(/p) under "x/"', "exists arg(/p)")

    assert [type(check_of(word)) for word in words] == [OneOf, Between, Under, Exists]


@pytest.mark.parametrize(
    ("written", "keys"),
    [
        ("/p", ("p",)),
        ("/a/0/b", ("a", "0", "b")),
        ("/a~1b~0c", ("a/b~c",)),
        ('"/odd (key)"', ("odd (key)",)),
        ("/", ("",)),
    ],
)
def test_a_pointer_is_read(written: str, keys: tuple[str, ...]):
    condition = the_rule(f'permit "x" call on a/t when exists arg({written})').condition

    assert isinstance(condition, Test)
    assert isinstance(condition.operand, Argument)
    assert condition.operand.pointer.keys == keys


def test_and_binds_closer_than_or_and_not_closest():
    rules = 'permit "x" call on a/t when not arg(/a) == 1 and arg(/b) == 1 or arg(/c) == 1'
    policy_set = loaded(rules)

    def effect(a: int, b: int, c: int) -> Effect:
        return policy_set.decide(request(arguments={"a": a, "b": b, "c": c})).effect

    assert effect(1, 1, 1) is Effect.PERMIT
    assert effect(0, 1, 0) is Effect.PERMIT
    assert effect(0, 0, 0) is Effect.FORBID
    assert effect(1, 1, 0) is Effect.FORBID


def test_unless_is_when_not():
    assert isinstance(the_rule('permit "x" call on a/t unless exists arg(/p)').condition, Not)


def test_a_file_may_hold_several_policies_comments_and_any_line_ends():
    text = "# one\r\npolicy a v1 { default deny } # two\r\npolicy b v1 {}"

    assert [policy.name for policy in parse(text, "t")] == ["a", "b"]


def test_declarations_may_stand_below_their_use():
    text = 'policy t v1 { permit "x" call on web/t for role r role r set web = server("a") }'
    (policy,) = parse(text, "t")

    assert policy.rules[0].targets[0].servers == {"a"}


def test_a_parameter_stays_open_until_the_set_is_loaded():
    check = check_of('arg(/p) == "a${b.c}d"')

    assert isinstance(check, Compare)
    assert isinstance(check.literal, Template)
    first, parameter, last = check.literal.parts
    assert (first, last) == ("a", "d")
    assert isinstance(parameter, Parameter)
    assert parameter.name == "b.c"


def test_a_parameter_is_filled_in_as_it_is():
    rules = 'permit "x" call on a/t when arg(/p) == "${v}" or arg(/p) in ["${v}!"]'
    policy_set = loaded(rules, v='a" or "${v}')

    assert policy_set.decide(request(arguments={"p": 'a" or "${v}'})).effect is Effect.PERMIT
    assert policy_set.decide(request(arguments={"p": 'a" or "${v}!'})).effect is Effect.PERMIT


def test_the_same_file_twice_counts_once():
    source = Source("release.policy", EXAMPLE)

    assert load([source, source], OUT).digest == example().digest


# ------------------------------------------------------------------------------------------- mistakes

WORDS = (
    *("policy", "default", "role", "set", "server", "permit", "ask", "forbid", "call", "delegate"),
    *("read", "on", "for", "depth", "when", "unless", "and", "under", "tool", "resource"),
)


@pytest.mark.parametrize("word", WORDS)
def test_a_misspelt_word_is_named_with_its_place_and_the_right_one(word: str):
    at = next(
        at
        for at in range(len(EXAMPLE))
        if EXAMPLE.startswith(word, at)
        and not (EXAMPLE[at - 1 : at].isalnum() or EXAMPLE[at - 1 : at] in ("-", '"', "_"))
        and EXAMPLE[at + len(word)] in " (\n"
        and not EXAMPLE[:at].endswith("any ")
    )
    wrong = word[:-1] + word[-1] * 2
    before = EXAMPLE[:at]

    error = refusal(before + wrong + EXAMPLE[at + len(word) :])

    assert error.place.line == before.count("\n") + 1
    assert error.place.column == len(before.rpartition("\n")[2]) + 1
    assert error.nearest == word
    assert f"`{word}`" in error.expected


@pytest.mark.parametrize(
    ("wrong", "right", "column"),
    [
        ('permit "x" cal on a/t', "call", 12),
        ('premit "x" call on a/t', "permit", 1),
        ('permit "x" call on a/t for role rr', "r", 33),
        ('permit "x" call on a/t when arg(/p) =< 1', "<=", 37),
        ('permit "x" call on a/t when arg(/p) = 1', "==", 37),
        ('permit "x" call on a/t when arg(/p) undre "x"', "under", 37),
        ('permit "x" call on */t', "any server", 20),
        ('permit "x" call on a*/t', "any server", 20),
        ("default allow", "deny", 9),
        ('permit "x" call on a/t when arg(/p) == True', "true", 40),
        ('permit "x" no call a/t', "", 12),
        ('permit "x" call no a/t', "on", 17),
        ('permit "x" call on a/t when arg(/p) == 1 && exists arg(/q)', "and", 42),
    ],
)
def test_a_mistake_in_a_rule_has_its_place_and_the_right_word(wrong: str, right: str, column: int):
    error = refused_rules(wrong)

    assert (error.place.line, error.place.column, error.nearest) == (2, column, right)


def test_a_misspelt_parameter_is_named_with_the_right_one():
    with pytest.raises(Exception, match="unknown parameter `oot`; did you mean `out`"):
        loaded('permit "x" call on a/t when arg(/p) under "${oot}"', out="out/")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('permit "x" call on */t', "`*` is not a server"),
        ('permit "x" call on "*"/t', "a server has no `*`"),
        ("default deny default deny", "written already"),
        ("role r", "role `r` is declared already"),
        ('set w = server("a") set w = server("b")', "set `w` is declared already"),
        ('permit "x" call, call on a/t', "`call` is written twice"),
        ('permit " " call on a/t', "the id of a rule is visible text"),
        (r'permit "a\nb" call on a/t', "the id of a rule is visible text"),
        ('permit "x" call on a/t permit "x" call on a/u', 'rule "x" is in this policy already'),
        ('permit "${x}" call on a/t', "a parameter is filled in after `when`"),
        ('permit "x" call on a/{t,{u}}', "braces do not nest"),
        ('permit "x" call on a/{t,}', "each alternative in braces is one name"),
        ('permit "x" call on a tool ""', "a name is missing"),
        ('permit "x" read on a resource "docs/*"', "a URI pattern starts with"),
        ('permit "x" read on a resource "doc://a/../b"', "a URI pattern starts with"),
        ('permit "x" read on a resource "doc://a**"', "`**` stands for whole segments"),
        ('permit "x" call on a/t depth <= 1.5', "a depth is a whole number"),
        ('permit "x" call on a/t depth <= -1', "a depth is a whole number"),
        ('permit "x" call on a/t when arg(/p) < "a"', "`<` compares numbers only"),
        ('permit "x" call on a/t when arg(/p) in 2..1', "the range is empty"),
        ('permit "x" call on a/t when arg(/p) in ["a", null]', "null does not go into a list"),
        ('permit "x" call on a/t when exists arg("p")', "a pointer starts with `/`"),
        ('permit "x" call on a/t when exists arg("")', "a pointer starts with `/`"),
        ('permit "x" call on a/t when exists arg(/a~2)', "`~` is written `~0`"),
        (r'permit "x" call on a/t when arg(/p) == "\x"', "a backslash in a string"),
        ('permit "x" call on a/t when arg(/p) == "${}"', "a backslash in a string"),
        (r'permit "x" call on a/t when arg(/p) == "\ud800"', "half of a surrogate pair"),
        ('permit "x" call on a/t when arg(/p) == "a', "a string without its closing"),
        ('permit "x" call on a/t when arg(/p) under ""', "what follows `under` is a path"),
        ('permit "x" call on a/t when arg(/p) under "../x"', "what follows `under` is a path"),
        ('permit "x" call on a/t when arg(/p) under "a/../x"', "what follows `under` is a path"),
        ('permit "x" call on a/t when arg(/p) under "e\u0301"', "its letters in NFC"),
        ('permit "x" read on a resource "doc://e\u0301/**"', "its letters are in NFC"),
    ],
)
def test_what_the_grammar_cannot_refuse_is_refused_with_its_reason(wrong: str, message: str):
    assert message in refused_rules(wrong).message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no policy in this file"),
        ("# nothing\n", "there is no policy in this file"),
        ("policy t v1 {", "the file ends too early"),
        ("policy t v0 {}", "`v0` is no version"),
        ("policy t one {}", "`one` is no version"),
        ("policy t v1 {} policy t v1 {}", "policy `t` is in this file already"),
        ("policy t v1 {} \ud800", "a policy file is valid Unicode text"),
        ("policy t v1 {} $", "unexpected `$`"),
        ('policy t v1 { permit "x" callon a/t }', "unexpected `callon`"),
        ('policy t v1 { permit "x" call on a/t forrole r }', "unexpected `forrole`"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_reason(text: str, message: str):
    assert message in refusal(text).message


def test_an_end_that_comes_too_early_is_shown_where_it_is():
    error = refusal('policy t v1 {\n  permit "x" call on\n\n')

    assert (error.place.line, error.place.column) == (2, 21)


def test_a_rule_in_two_files_is_refused_with_both_places():
    text = 'policy {} v1 {{ permit "x" call on a/t }}'
    sources = [Source("one", text.format("a")), Source("two", text.format("b"))]

    with pytest.raises(Exception, match='rule "x" is there already, at one:1'):
        load(sources)


def test_a_policy_in_two_files_is_refused():
    with pytest.raises(Exception, match="policy `a` is there already, at one:1"):
        load([Source("one", "policy a v1 {}"), Source("two", "policy a v1 {} ")])


def test_an_error_shows_the_line_with_a_caret():
    error = refused_rules('  permit "x" cal on a/t')

    assert str(error) == (
        "t.policy:2:14: unexpected `cal`; expected `call`, `complete`, `delegate`, `elicit`, "
        "`get_prompt`, `list_roots`, `read`, `sample` or `subscribe`; did you mean `call`?\n"
        '      permit "x" cal on a/t\n                 ^'
    )


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("length(arg(/q)) <= 3", "as in `arg(/x) length <= 10`"),
        ("len(arg(/q)) <= 3", "as in `arg(/x) length <= 10`"),
        ('starts_with(arg(/q), "a")', 'as in `arg(/x) starts_with "a"`'),
        ("arg(/n) between 1 and 3", "did you mean `in`?"),
        ('arg(/q) matches "a.*"', "did you mean `like`?"),
        ('arg(/q) startsWith "a"', "did you mean `starts_with`?"),
        ('arg(/p) within "a"', "did you mean `under`?"),
        ('! arg(/p) under "a"', "did you mean `not`?"),
    ],
)
def test_what_is_written_as_elsewhere_is_told_how_it_is_written_here(condition: str, hint: str):
    assert hint in str(refused_rules(f'permit "x" call on a/t when {condition}'))


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ('allow "x" call on a/t', "did you mean `permit`?"),
        ('deny "x" call on a/t', "did you mean `forbid`?"),
        ('permit "x" call on a/t if arg(/q) == 1', "did you mean `when`?"),
    ],
)
def test_words_of_other_languages_have_their_word_here(rule: str, hint: str):
    assert hint in str(refused_rules(rule))


def test_an_error_shows_no_control_characters():
    error = refused_rules('permit "x" call on a/t \x1b[31m')

    assert "\x1b" not in str(error)


HIDDEN = (
    *("\r", "\v", "\f", "\x00", "\x1b", "\x85", "\u2028", "\u2029"),
    *("\u202e", "\u2066", "\u200b", "\u200d", "\u00ad", "\ufeff", "\U000e0041"),
)


@pytest.mark.parametrize("char", HIDDEN)
@pytest.mark.parametrize("text", ["# safe{}forbid", 'permit "p{}" call on a/t', "{}role s"])
def test_what_shows_a_file_otherwise_than_it_is_read_is_refused(text: str, char: str):
    error = refused_rules(text.format(char))

    assert f"U+{ord(char):04X} is not seen" in error.message
    assert (error.place.line, error.place.column) == (2, text.index("{") + 1)
    assert char not in str(error)


def test_the_first_hidden_character_is_told():
    error = refusal("policy t v1 {\u200b\u202e}")

    assert error.message.startswith("U+200B")
    assert error.message.endswith("in a string it is written `\\u200b`")


def test_lines_may_end_as_on_windows():
    windows = load([Source("t", EXAMPLE.replace("\n", "\r\n"))], OUT)

    assert [rule.place for rule in windows.rules] == [
        replace(rule.place, path="t") for rule in example().rules
    ]


def test_a_character_that_only_looks_like_space_is_named():
    error = refusal("policy\u00a0t v1 {}")

    assert error.message == "unexpected U+00A0: only spaces, tabs and line ends separate"
    assert error.place.column == 7


def test_a_value_that_nests_too_deep_is_told_with_its_line():
    deep = "[" * 40 + "]" * 40
    error = refusal(f'policy p v1 {{}}\ntests {{\n  permit call a/t {{"a": {deep}}}\n}}')

    assert (error.place.line, error.place.column) == (3, 20)
