"""One past each bound, and texts made to hang, to recurse out or to be let through."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from policies import PolicyError, PolicyLimits, PolicySet, Source, load, parse
from policies.model import Operation, Principal, Resource
from policies.patterns import NamePattern, PatternError
from tests.policies.support import EXAMPLE, OUT, value_of

quick = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


def load_rules(
    rules: str, limits: PolicyLimits, *, head: str = "", parameters: dict[str, str] | None = None
) -> PolicySet:
    text = f"policy t v1 {{ role r, s {head}\n{rules}\n}}"
    return load([Source("t", text)], parameters, limits=limits)


def outcome_of(text: str) -> PolicySet | PolicyError:
    """What loading ends with; any other exception goes on."""
    try:
        return load([Source("t", text)], OUT)
    except PolicyError as error:
        return error


def when(condition: str) -> str:
    return f'permit "x" call on a/t when {condition}'


@pytest.mark.parametrize(
    ("limits", "fits", "breaks"),
    [
        (PolicyLimits(rules_max=1), when("exists arg(/p)"), 'ask "a" call on a/t ask "b" read on a/t'),
        (PolicyLimits(roles_max=3), "role q", "role q, u"),
        (PolicyLimits(set_servers_max=1), 'set w = server("a")', 'set w = server("a", "b")'),
        (PolicyLimits(name_chars_max=4), 'ask "four" call on a/t', 'ask "fives" call on a/t'),
        (PolicyLimits(name_chars_max=4), 'ask "x" call on four/t', 'ask "x" call on fives/t'),
        (PolicyLimits(name_chars_max=4), "role four", "role fives"),
        (PolicyLimits(name_chars_max=4), 'set four = server("a")', 'set fives = server("a")'),
        (PolicyLimits(string_chars_max=3), when('arg(/p) == "abc"'), when('arg(/p) == "abcd"')),
        (PolicyLimits(string_chars_max=3), when('arg(/p) == "a${v}"'), when('arg(/p) == "ab${v}"')),
        (PolicyLimits(number_chars_max=3), when("arg(/p) == 999"), when("arg(/p) == 1000")),
        (PolicyLimits(pattern_chars_max=5), 'ask "x" call on a/{t,u}', 'ask "x" call on a/{t,uv}'),
        (PolicyLimits(pattern_chars_max=3), 'ask "x" call on a tool "abc"',
         'ask "x" call on a tool "abcd"'),
        (PolicyLimits(pattern_chars_max=7), 'ask "x" read on a resource "doc://a"',
         'ask "x" read on a resource "doc://ab"'),
        (PolicyLimits(alternatives_max=4), 'ask "x" call on a/{a,b}{c,d}',
         'ask "x" call on a/{a,b}{c,d,e}'),
        (PolicyLimits(pointer_keys_max=2), when("exists arg(/a/b)"), when("exists arg(/a/b/c)")),
        (PolicyLimits(options_max=2), when("arg(/p) in [1, 2]"), when("arg(/p) in [1, 2, 3]")),
        (PolicyLimits(condition_depth_max=2), when("(exists arg(/p))"), when("((exists arg(/p)))")),
        (PolicyLimits(condition_depth_max=2), when("not exists arg(/p)"),
         when("not not exists arg(/p)")),
        (PolicyLimits(condition_tests_max=2), when("exists arg(/p) or exists arg(/q)"),
         when("exists arg(/p) or exists arg(/q)") + " unless exists arg(/r)"),
    ],
)  # fmt: skip
def test_one_past_a_bound_is_refused(limits: PolicyLimits, fits: str, breaks: str):
    load_rules(fits, limits, parameters={"v": "bc"})

    with pytest.raises(PolicyError, match=r"at most"):
        load_rules(breaks, limits, parameters={"v": "bc"})


def test_one_byte_too_many_is_refused():
    text = "policy t v1 {} # é"
    limits = PolicyLimits(source_bytes_max=len(text.encode()))

    assert parse(text, "t", limits=limits)
    with pytest.raises(PolicyError, match="a policy file has at most 19 bytes"):
        parse(text + " ", "t", limits=limits)


def test_one_policy_too_many_is_refused_in_a_file_and_in_a_set():
    limits = PolicyLimits(policies_max=1)
    first, second = Source("a", "policy a v1 {}"), Source("b", "policy b v1 {}")

    assert load([first], limits=limits)
    with pytest.raises(PolicyError, match="at most 1 policies"):
        load([first, second], limits=limits)
    with pytest.raises(PolicyError, match="at most 1 policies"):
        parse(f"{first.text} {second.text}", "c", limits=limits)


def test_one_rule_too_many_is_refused_across_files():
    limits = PolicyLimits(rules_max=1)
    text = 'policy {0} v1 {{ ask "{0}" call on a/t }}'

    with pytest.raises(PolicyError, match="at most 1 rules"):
        load([Source(name, text.format(name)) for name in "ab"], limits=limits)


def test_one_file_too_many_is_refused():
    sources = [Source(name, f"policy {name} v1 {{}}") for name in "ab"]

    assert load(sources, limits=PolicyLimits(sources_max=2))
    with pytest.raises(PolicyError, match="at most 1 files"):
        load(sources, limits=PolicyLimits(sources_max=1))


def test_one_byte_too_many_in_all_files_together_is_refused():
    sources = [Source(name, f"policy {name} v1 {{}}") for name in "ab"]

    assert load(sources, limits=PolicyLimits(set_bytes_max=28))
    with pytest.raises(PolicyError, match="at most 27 bytes together"):
        load(sources, limits=PolicyLimits(set_bytes_max=27))


def test_a_path_one_character_too_long_has_no_value():
    longest = PolicyLimits().path_chars_max

    assert value_of('arg(/p) under "a/"', {"p": "a/".ljust(longest, "b")}) is True
    assert value_of('arg(/p) under "a/"', {"p": "a/".ljust(longest + 1, "b")}) is None


def test_beyond_the_bound_of_trying_a_tool_counts_as_visible():
    impossible = when("arg(/p) == 1 and arg(/p) == 2")

    def visible(limits: PolicyLimits) -> bool:
        policy_set = load_rules(impossible, limits)
        resource = Resource("a", "tool", "t")
        return policy_set.verdict(Principal(role="r"), Operation.CALL, resource).visible

    # 1, 2, between, below, above, another type, nothing
    assert not visible(PolicyLimits(witnesses_max=7))
    assert visible(PolicyLimits(witnesses_max=6))


def test_what_is_remembered_is_bounded_and_right():
    rules = "\n".join(
        f'permit "{n}" call on a/t{n} when arg(/p) == {n} and arg(/p) == {n % 2}' for n in range(6)
    )
    policy_set = load_rules(rules, PolicyLimits(remembered_max=2))

    def visible(n: int) -> bool:
        resource = Resource("a", "tool", f"t{n}")
        return policy_set.verdict(Principal(role="r"), Operation.CALL, resource).visible

    assert [visible(n) for n in (*range(6), *range(6))] == [True, True, *[False] * 4] * 2


def test_a_pattern_outside_of_a_policy_has_the_same_bounds():
    assert NamePattern.parse("get_{a,b*}").matches("get_bc")
    assert not NamePattern.parse("get_{a,b*}").matches("get_ab")
    with pytest.raises(PatternError, match="at most 2 alternatives"):
        NamePattern.parse("{a,b,c}", limits=PolicyLimits(alternatives_max=2))
    with pytest.raises(PatternError, match=r"without its `\{`"):
        NamePattern.parse("a}")
    with pytest.raises(PatternError, match="a name is missing"):
        NamePattern.parse("")


# ---------------------------------------------------------------------------------------------- hostile


@pytest.mark.parametrize(
    "hostile",
    [
        "(" * 30_000,
        "{" * 30_000,
        when("(" * 20_000),
        when("not " * 20_000 + "exists arg(/p)"),
        when("(" * 10_000 + "exists arg(/p)" + ")" * 10_000),
        when("exists arg(/p) and " * 10_000 + "exists arg(/p)"),
        when(f"arg(/p) == {'9' * 50_000}"),
        when(f"arg(/p) == 0.{'9' * 50_000}"),
        when(f"exists arg({'/a' * 30_000})"),
        when(f'arg(/p) == "{"x" * 50_000}"'),
        when(f'arg(/p) == "{"${" * 50_000}"'),
        when(f"arg(/p) in [{'1,' * 20_000}1]"),
        f'ask "x" call on a/{"{a,b}" * 20_000}',
        f'ask "x" call on a/{"*a" * 50_000}',
        f'ask "x" call on a/{"{" * 50_000}',
        f'ask "x" read on a resource "doc://{"**/" * 50_000}"',
        f'ask "{"x" * 50_000}" call on a/t',
        f"role {'x' * 50_000}",
        f"role {', '.join(f'x{n}' for n in range(20_000))}",
        'ask "x" call on a/t ' * 4_000,
        '"' * 50_000,
        "#" * 50_000 + "\n}}",
        "\n" * 50_000 + "}}",
    ],
)
def test_a_hostile_text_is_refused_soon_and_without_recursion(hostile: str):
    with pytest.raises(PolicyError):
        load([Source("t", f"policy t v1 {{\n{hostile}\n}}")])


@pytest.mark.requirement("I9")
@given(st.text(max_size=200))
@quick
def test_a_text_that_is_no_policy_is_refused(text: str):
    with pytest.raises(PolicyError):
        parse(text, "t")


PIECES = [
    *("policy t v1 {", "}", 'permit "x"', "ask", "call", "on", "a/t", "*", "{a,b}", "when", "not"),
    *("arg(/p)", "==", "in", "[", "]", "1..2", '"', '"s"', "under", "for role r", "role r", "\\"),
    *("#", "\n", "${v}", "null", "(", ")", ",", "any server/t", "depth <= 1", "default deny"),
]


@given(
    st.integers(0, len(EXAMPLE)),
    st.integers(0, 12),
    st.one_of(st.text(max_size=4), st.sampled_from(PIECES)),
)
@settings(quick, max_examples=600)
def test_a_changed_policy_is_read_or_refused_and_nothing_else(at: int, cut: int, put: str):
    text = EXAMPLE[:at] + put + EXAMPLE[at + cut :]

    outcome = outcome_of(text)

    if isinstance(outcome, PolicyError):
        assert 1 <= outcome.place.line <= text.count("\n") + 1
        assert str(outcome).startswith("t:")
    else:
        assert outcome.policies


@given(st.lists(st.sampled_from(PIECES), max_size=40))
@quick
def test_words_in_any_order_are_read_or_refused(words: list[str]):
    outcome = outcome_of(f"policy t v1 {{ {' '.join(words)} }}")

    assert not isinstance(outcome, PolicyError) or outcome.message


@pytest.mark.parametrize(
    "junk", ["$", "%", "@", "~", "\\", "?", "'", "`", "\x00", "\u00a0", "\u2028"]
)
def test_a_character_that_means_nothing_is_never_passed_over(junk: str):
    gaps = [at for at, char in enumerate(EXAMPLE) if char == " " and EXAMPLE[at - 1] == " "]

    for at in gaps:
        with pytest.raises(PolicyError):
            load([Source("t", EXAMPLE[:at] + junk + EXAMPLE[at:])], OUT)
