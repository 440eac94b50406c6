"""The language beyond permits and arguments: who, flow, duties, hosts, time, claims, each with its mistakes."""

from __future__ import annotations

import pytest

from policies import (
    Annotations,
    Context,
    Effect,
    Label,
    Operation,
    PolicyError,
    Principal,
    Request,
    Resource,
    Source,
    explain,
    load,
    parse_file,
    run_tests,
)
from policies.model import (
    Budget,
    ChildSubset,
    Deadline,
    Expiry,
    Include,
    Keep,
    Mark,
    MaxDepth,
    Metered,
    Never,
    Rate,
    Redact,
    Scope,
)
from policies.parsing import include_path
from tests.policies.support import decided, loaded, refusal, refused_rules, request, value_of


@pytest.mark.parametrize(
    ("condition", "value", "answer"),
    [
        ('arg(/p) starts_with "ab"', "abc", True),
        ('arg(/p) ends_with "bc"', "abd", False),
        ('arg(/p) contains "/../"', "a/../b", True),
        ('arg(/p) like "*@corp.example"', "me@corp.example", True),
        ('arg(/p) like "*@corp.example"', "me@corp.example.evil", False),
        ('arg(/p) like "a*"', 5, None),
        ("arg(/p) length <= 3", "abcd", False),
        ("arg(/p) length == 2", ["a", "b"], True),
        ("arg(/p) length in 1..2", {}, False),
        ("arg(/p) length > 0", 7, None),
        ("arg(/p) is integer", 3.0, True),
        ("arg(/p) is integer", 3.5, False),
        ("arg(/p) is number", True, False),
        ("arg(/p) is null", None, True),
        ('arg(/p) path_like "src/**/*.py"', "src/a/b/c.py", True),
        ('arg(/p) path_like "src/*.py"', "src/a/c.py", False),
        ('arg(/p) path_like "src/**/*.py"', "src/../etc/c.py", None),
        ('arg(/p) path_like "src/**"', "/src/x", None),
        ('arg(/p) host "corp.example"', "https://corp.example/x?y", True),
        ('arg(/p) host "corp.example"', "https://CORP.example:443", True),
        ('arg(/p) host "*.corp.example"', "https://a.b.corp.example", True),
        ('arg(/p) host "*.corp.example"', "https://corp.example", False),
        ('arg(/p) host "*.corp.example"', "https://evilcorp.example", False),
        ('arg(/p) host "corp.example"', "https://corp.example@evil.example/", None),
        ('arg(/p) host "corp.example"', "https://evil.example\\@corp.example/", None),
        ('arg(/p) host "corp.example"', "https://corp%2eexample/", None),
        ('arg(/p) host "corp.example"', "https://c\u043erp.example/", None),
        ('arg(/p) host "corp.example"', "https://0x7f.1/", None),
        ('arg(/p) host "corp.example"', "http://10.0.0.1/", False),
        ('arg(/p) host "corp.example"', "file://corp.example/etc/passwd", None),
        ('arg(/p) host "corp.example"', "JavaScript://corp.example/%0aalert(1)", None),
        ('arg(/p) host "corp.example"', "data://corp.example,x", None),
        ('arg(/p) host "corp.example"', "git+ssh://corp.example/x", True),
        ('arg(/p) cidr "10.0.0.0/8"', "file://10.0.0.1/etc/passwd", None),
        ('arg(/p) host "corp.example"', "corp.example:80", True),
        ('arg(/p) cidr "10.0.0.0/8"', "10.1.2.3", True),
        ('arg(/p) cidr "10.0.0.0/8"', "http://[::ffff:10.1.2.3]/", True),
        ('arg(/p) cidr "10.0.0.0/8"', "http://11.1.2.3:8080/x", False),
        ('arg(/p) cidr "10.0.0.0/8"', "http://ten.example/", None),
        ('arg(/p) cidr in ["fd00::/8", "10.0.0.0/8"]', "fd00::1", True),
        ('arg(/p) cidr "10.0.0.0/8"', "010.1.2.3", None),
        ('arg(/p) cidr "::ffff:10.0.0.0/104"', "10.1.2.3", True),
        ('arg(/p) cidr "::ffff:10.0.0.0/104"', "::ffff:10.1.2.3", True),
        ('arg(/p) cidr "::ffff:10.0.0.0/104"', "11.1.2.3", False),
        ('arg(/p) cidr "10.0.0.0/8"', "64:ff9b::a01:203", None),
        ('arg(/p) cidr "10.0.0.0/8"', "64:ff9b:1::a01:203", None),
        ('arg(/p) cidr "10.0.0.0/8"', "http://[2002:a01:203::]/", None),
        ('arg(/p) cidr "10.0.0.0/8"', "2001:0:1::1", None),
        ('arg(/p) cidr "10.0.0.0/8"', "::a01:203", None),
        ('arg(/p) cidr "10.0.0.0/8"', "::1", False),
        ('arg(/p) cidr "10.0.0.0/8"', "2001:db8::1", False),
        ('arg(/p) cidr in ["10.0.0.0/8", "64:ff9b::/96"]', "64:ff9b::a01:203", True),
        ('arg(/p) cidr "fd00::/8"', "64:ff9b::a01:203", False),
        ('arg(/p) cidr "10.0.0.0/8"', "fe80::1%eth0", None),
        ('any arg(/p) == "a"', ["b", "a"], True),
        ('any arg(/p) == "a"', ["b", 1], None),
        ('any arg(/p) == "a"', [], False),
        ('all arg(/p) like "a*"', ["ab", "b"], False),
        ('all arg(/p) like "a*"', ["ab", 1], None),
        ('all arg(/p) like "a*"', "ab", True),
        ('all arg(/p) like "a*"', [], True),
        ('any arg contains "x"', {"deep": [{"k": "axb"}]}, True),
        ('any arg contains "deep"', {"deep": 1}, True),
        ('any arg contains "x"', [1, True, None], False),
        ("args only (/p)", 1, True),
        ("args only (/q)", 1, False),
        ("args only (/p/a)", {"a": 1}, True),
        ("args only (/p/a)", {"a": 1, "b": 2}, False),
        ("args only (/p/a)", 1, False),
    ],
)
def test_a_test_has_three_values(condition: str, value: object, answer: bool | None):
    assert value_of(condition, {"p": value}) is answer


@pytest.mark.requirement("I10")
def test_a_test_of_what_is_not_there_has_no_value():
    for condition in ('arg(/q) like "a"', "arg(/q) length > 0", "arg(/q) is null", 'all arg(/q) == 1',
                      'arg(/q) host "a.b"', 'arg(/q) cidr "::/0"', "budget(calls) > 0",
                      'now before "2999-01-01T00:00:00Z"', 'time in "00:00".."12:00"',
                      'day in ["mon"]', 'digest in ["x"]'):  # fmt: skip
        assert value_of(condition, {"p": 1}) is None


def test_a_value_that_holds_too_much_to_look_at_has_none():
    assert value_of('any arg contains "x"', {"p": [0] * 10_001}) is None
    assert value_of('any arg contains "x"', {"p": [0] * 9_000}) is False


# ---------------------------------------------------------------------------------------------- who


def asks(principal: Principal, **more: object) -> Request:
    context = Context(**more)  # type: ignore[arg-type]
    return Request(
        principal=principal,
        action=Operation.CALL,
        resource=Resource("a", "tool", "t", "d1", Annotations(destructive=True)),
        context=context,
    )


BOSS = Principal(role="boss", agent="boss", depth=1)


@pytest.mark.parametrize(
    ("clause", "principal", "fits"),
    [
        ('for agent "x/*"', Principal(role="r", agent="x/y"), True),
        ('for agent "x/*"', Principal(role="r", agent="z"), False),
        ("below role s", Principal(role="r", above=(Principal(role="s"),)), True),
        ("below role s", Principal(role="s"), False),
        ('below agent "boss"', Principal(role="r", above=(BOSS,)), True),
        ('below agent "boss"', BOSS, False),
        ("surface interactive", Principal(role="r", interactive=True), True),
        ("surface headless", Principal(role="r", interactive=True), False),
        ("for role r depth >= 1 surface headless", Principal(role="r", depth=1), True),
    ],
)
def test_a_rule_says_whom_it_is_about(clause: str, principal: Principal, fits: bool):
    decision = loaded(f'permit "x" call on a/t {clause}').decide(asks(principal))

    assert (decision.effect is Effect.PERMIT) is fits


# ---------------------------------------------------------------------------------- targets and facts


def test_a_rule_may_have_several_targets_and_counts_once():
    policy_set = loaded('permit "x" call on a/t, a/*, b, any server/z')

    assert [reason.rule for reason in policy_set.decide(request("a/t")).reasons] == ["x"]
    assert policy_set.decide(request("b/anything")).effect is Effect.PERMIT
    assert policy_set.decide(request("c/z")).effect is Effect.PERMIT
    assert policy_set.decide(request("c/t")).effect is Effect.FORBID


def test_a_sink_is_a_named_set_of_targets():
    rules = 'sink out = mail/send, web permit "all" call on any server forbid "f" call on sink(out)'
    policy_set = loaded('set web = server("brave")\n' + rules)

    effects = [
        policy_set.decide(request(name)).effect.value for name in ("mail/send", "brave/x", "a/t")
    ]
    assert effects == ["forbid", "forbid", "permit"]


@pytest.mark.requirement("I20")
@pytest.mark.parametrize(
    ("clause", "effect"),
    [
        ("after untrusted", "forbid"),
        ("after untrusted from b", "permit"),
        ("after untrusted from b, a", "forbid"),
        ("after sensitive from a", "permit"),
        ("when not after untrusted", "permit"),
    ],
)
def test_a_rule_may_look_at_what_clings_to_an_agent(clause: str, effect: str):
    policy_set = loaded(f'permit "p" call on a/t forbid "f" call on a/t {clause}')
    labels = frozenset({Label("untrusted", "a")})

    assert policy_set.decide(asks(BOSS, labels=labels)).effect.value == effect


def test_a_part_of_a_uri_can_be_looked_at():
    rule = 'permit "r" read on d resource "doc://{project}/x-{n}.md" when uri(project) in ["a"]'
    policy_set = loaded(rule)

    def effect(uri: str) -> str:
        asked = request(f"d/{uri}", kind="resource", action=Operation.READ)
        return policy_set.decide(asked).effect.value

    assert [effect(uri) for uri in ("doc://a/x-1.md", "doc://b/x-1.md", "doc://a/../x-1.md")] == [
        *("permit", "forbid", "forbid")
    ]


def test_the_open_end_of_a_uri_can_be_looked_at():
    rule = 'permit "r" read on d resource "doc://{p}/{+path}" when uri(path) path_like "a/**"'
    policy_set = loaded(rule)

    def effect(uri: str) -> str:
        asked = request(f"d/{uri}", kind="resource", action=Operation.READ)
        return policy_set.decide(asked).effect.value

    assert [effect(f"doc://p/{path}") for path in ("a/b/c", "b/a")] == ["permit", "forbid"]


@pytest.mark.parametrize(("time", "effect"), [("09:00", "permit"), ("17:00", "forbid")])
def test_a_time_of_day_excludes_its_end(time: str, effect: str):
    rules = 'permit "p" call on a/t when time in "09:00".."17:00" and day in ["tue"]'
    wall = 1_764_633_600 - 1_764_633_600 % 86_400 + int(time[:2]) * 3_600

    assert loaded(rules).decide(asks(BOSS, wall=float(wall))).effect.value == effect


def test_a_requirement_that_is_not_met_forbids():
    rules = 'permit "p" call on a/t require "pin" call on any server that digest in ["d1"]'
    missing = Request(principal=BOSS, action=Operation.CALL, resource=Resource("a", "tool", "t"))

    assert loaded(rules).decide(asks(BOSS)).effect is Effect.PERMIT
    decision = loaded(rules).decide(missing)
    assert (decision.effect, decision.reasons[0].errored) == (Effect.FORBID, True)
    assert "by require" in explain(loaded(rules), missing).to_text()


@pytest.mark.requirement("F-2")
def test_what_a_server_hints_restricts_and_permits_only_where_it_is_trusted():
    restrict = 'permit "p" call on a/t forbid "f" call on a/t when hint(destructive)'
    assert loaded(restrict).decide(asks(BOSS)).effect is Effect.FORBID

    error = refused_rules('permit "p" call on a/t when hint(read_only)')
    assert "a hint is a server's own word" in error.message

    trusted = 'trust hints of server("a") permit "p" call on a/t when not hint(read_only)'
    assert loaded(trusted).decide(asks(BOSS)).effect is Effect.FORBID


def test_an_argument_that_no_condition_names_can_be_denied():
    rule = 'permit "p" call on a/t when arg(/p) == 1 unknown args deny'

    assert decided(rule, request(arguments={"p": 1})).effect is Effect.PERMIT
    assert decided(rule, request(arguments={"p": 1, "q": 1})).effect is Effect.FORBID


# ------------------------------------------------------------------------------------------- duties


def test_limits_and_obligations_come_with_a_permit_and_the_least_counts():
    rules = """
    permit "p" call on a/t
    limit "l" call on a/t rate 30 per 1m budget tokens 200k deadline 15m
    limit "m" call on any server rate 5 per 1h per session deadline 10s
    oblige "o" call on a/t redact /email, "/odd key" mark sensitive
    oblige "never" call on b/t mark other
    """
    assert set(decided(rules, request()).duties) == {
        Rate(30, 60, Scope.AGENT, "l"),
        Rate(5, 3_600, Scope.SESSION, "m"),
        Budget(Metered.TOKENS, 200_000, Scope.AGENT, "l"),
        Deadline(10),
        Redact(("/email", "/odd key")),
        Mark("sensitive"),
    }
    assert decided(rules, request("b/x")).duties == ()


def test_what_is_kept_of_arguments_is_all_or_what_is_named_and_all_rules_count():
    rules = """
    permit "p" call on a/t
    oblige "o" call on a/t keep arguments
    oblige "n" call on any server keep /amount, "/odd key" keep /more
    oblige "never" call on b/t keep /other
    """
    assert set(decided(rules, request()).duties) == {
        Keep(("",)),
        Keep(("/amount", "/odd key")),
        Keep(("/more",)),
    }


def test_a_server_and_a_tool_may_be_called_as_the_words_of_keeping_are():
    rules = 'permit "p" call on arguments/keep, keep/arguments'

    assert decided(rules, request("arguments/keep")).effect is Effect.PERMIT
    assert decided(rules, request("keep/arguments")).effect is Effect.PERMIT


@pytest.mark.requirement("I10")
def test_a_limit_whose_condition_has_no_value_holds():
    rules = 'permit "p" call on a/t limit "l" call on a/t deadline 1s when arg(/p) == 1'

    assert decided(rules, request()).duties == (Deadline(1),)
    assert decided(rules, request(arguments={"p": 2})).duties == ()


def test_of_several_asks_the_shortest_expiry_counts():
    rules = 'ask "a" call on a/t expires 10m ask "b" call on a/t expires 30s when exists arg(/p)'

    assert decided(rules, request(arguments={"p": 1})).duties == (Expiry(30),)
    assert decided(rules, request()).duties == (Expiry(600),)


@pytest.mark.requirement("I12")
def test_a_permit_less_never_widens_how_deep_something_reaches():
    bounded = 'permit "a" delegate on a/t max depth 2'
    wider = 'permit "b" delegate on a/t max depth 4 when exists arg(/p)'
    asked = request(action=Operation.DELEGATE, arguments={"p": 1})

    assert decided(f"{bounded} {wider}", asked).duties == (MaxDepth(4),)
    assert decided(bounded, asked).duties == (MaxDepth(2),)
    assert decided(f'{bounded} permit "c" delegate on a/*', asked).duties == ()


# ------------------------------------------------------------------------------------------- claims

CLAIMS = """
policy p v3 {
  role r
  permit "p" call on a/t for role r when arg(/p) under "${out}"
  forbid "f" call on a/t after untrusted from b
}
tests {
  permit call a/t {"p": "${out}x", "more": [1, {"k": null}]} for role r by "p"
  forbid call a/t {"p": "${out}x"} for role r after untrusted from b by "f"
  forbid call a/t for role other depth 2 by default
}
assert never call on a/t when after untrusted from b
assert child_subset(policy "p", policy "p")
"""


def test_the_tests_of_a_policy_pass_where_it_does_what_they_say():
    policy_set = load([Source("c.policy", CLAIMS)], {"out": "o/"})

    assert [outcome.passed for outcome in run_tests(policy_set)] == [True, True, True]
    assert [type(each) for each in policy_set.assertions] == [Never, ChildSubset]
    assert policy_set.policies[0].version == 3


def test_a_test_that_does_not_pass_says_what_came_instead():
    wrong = CLAIMS.replace('by "f"', 'by "p"').replace("by default", 'by "f"')
    outcomes = run_tests(load([Source("c.policy", wrong)], {"out": "o/"}))

    assert [outcome.why for outcome in outcomes[1:]] == [
        'decided by "f", and not by "p"',
        'decided by default, and not by "f"',
    ]
    assert outcomes[1].case.place.line == 9


def test_an_included_file_must_be_among_the_files():
    text = 'include "more/base.policy" policy a v1 {}'
    base = Source("dir/more/base.policy", "policy b v1 {}")

    assert len(load([Source("dir/a.policy", text), base]).policies) == 2
    with pytest.raises(PolicyError, match=r"`more/base\.policy` is not among the files"):
        load([Source("dir/a.policy", text)])
    assert [each.path for each in parse_file(text, "a.policy").includes] == ["more/base.policy"]


def test_an_included_file_can_be_read_by_whoever_loads():
    given = Source("a.policy", 'include "b.policy" policy a v1 {}')
    asked: list[str] = []

    def read(source: Source, include: Include) -> Source:
        asked.append(include_path(source.path, include))
        inner = 'include "c.policy"' if include.path == "b.policy" else "policy c v1 {}"
        return Source(asked[-1], inner)

    assert [each.name for each in load([given], read=read).policies] == ["a", "c"]
    assert asked == ["b.policy", "c.policy"]


def test_files_that_are_given_and_include_each_other_are_a_circle():
    first = Source("d/a.policy", 'include "b.policy" policy a v1 {}')
    second = Source("d/b.policy", 'policy b v1 {}\ninclude "a.policy"')

    with pytest.raises(PolicyError) as caught:
        load([first, second])

    chain = "d/a.policy -> d/b.policy -> d/a.policy"
    assert caught.value.message == f"files include each other in a circle: {chain}"
    assert (caught.value.place.path, caught.value.place.line) == ("d/b.policy", 2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ('permit "x" call on a/t keep arguments', "`keep` has no place in a `permit`"),
        ('permit "x" call on a/t rate 3 per 1m', "`rate` has no place in a `permit`"),
        ('limit "x" call on a/t', "a `limit` says how much"),
        ('limit "x" call on a/t rate 0 per 1m', "a rate is a whole number, 1 or more"),
        ('limit "x" call on a/t rate 10001 per 1m', "at most 10000 calls in a rate"),
        ('limit "x" call on a/t deadline 0s', "a time is more than nothing"),
        ('limit "x" call on a/t budget seconds 5', "a budget of seconds is a time"),
        ('limit "x" call on a/t budget tokens 5 per session', "counts calls"),
        ('oblige "x" call on a/t', "an `oblige` says what to do"),
        ('oblige "x" call on a/t mark untrusted', "marked `untrusted` already"),
        ('require "x" call on a/t', "a `require` says what it requires"),
        ('require "x" call on a/t that digest pinned when exists arg(/p)', "one condition"),
        ('permit "x" call on a/t that digest pinned', "`that` has no place in a `permit`"),
        ('permit "x" call on a/t max depth 2', "about `delegate` alone"),
        ('forbid "x" call on a/t unknown args deny', "`unknown args deny` has no place"),
        ('permit "x" call on sink(out)', "sink `out` is not declared"),
        ("sink s = a/t sink s = b/t", "sink `s` is declared already"),
        ('permit "x" call on a/t for role r for role s', "`for role` is written twice"),
        ('permit "x" call on a/t when uri(x) == "y"', "the target has no `{x}`"),
        (
            'permit "x" read on a resource "d://{x}{y}" when uri(x) == "y"',
            "one segment has one part",
        ),
        ('permit "x" read on a resource "d://{x" ', "braces hold one name"),
        ('permit "x" call on a/t when arg(/p) host "10.0.0.1"', "a host is a name"),
        ('permit "x" call on a/t when arg(/p) host "a*.b"', "a host is a name"),
        ('permit "x" call on a/t when arg(/p) cidr "10.0.0.1/8"', "no bits beyond its prefix"),
        ('permit "x" call on a/t when arg(/p) cidr "ten"', "a network is an address"),
        ('permit "x" call on a/t when arg(/p) cidr "fe80::%eth0/64"', "a network is an address"),
        (
            'permit "x" call on a/t when arg(/p) cidr "10.0.0.0/255.0.0.0"',
            "a network is an address",
        ),
        ('permit "x" call on a/t when arg(/p) cidr "::ffff:10.0.0.1/104"', "no bits beyond"),
        ('permit "x" call on a/t when arg(/p) path_like "a/**b"', "what follows `path_like`"),
        ('permit "x" call on a/t when time in "25:00".."26:00"', "not a time of day"),
        ('permit "x" call on a/t when time in "09:00".."09:00"', "the two times are the same"),
        ('permit "x" call on a/t when day in ["monday"]', "`monday` is no day of the week"),
        ('permit "x" call on a/t when now before "2026-01-01"', "not a moment"),
        ('permit "x" call on a/t when arg(/p) length < 0', "no length is less than 0"),
        ('permit "x" call on a/t when arg(/p) length != 3', "write `not arg(...) length == N`"),
    ],
)
def test_a_mistake_is_refused_with_its_reason_and_its_line(wrong: str, message: str):
    error = refused_rules(wrong)

    assert message in error.message
    assert error.place.line == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("policy p v1 {} tests { permit call any server/t }", "a test names one server"),
        ("policy p v1 {} tests { permit call a/t* }", "a test names one thing"),
        ("policy p v1 {} tests { permit call a/t for role r, s }", "a test is about one agent"),
        ('policy p v1 {} tests { permit call a/t {"a": 1, "a": 2} }', "this member is there twice"),
        ("policy p v1 {} tests { permit call a/t depth 1 depth 2 }", "this is written twice"),
        ('policy p v1 {} include "../x.policy"', "beside this one or below it"),
        ('policy p v1 {} include "/x.policy"', "beside this one or below it"),
        ('policy p v1 {} include "x.txt"', "beside this one or below it"),
        ('include "x.policy" include "./x.policy"', "this file is included already"),
        (
            f'policy p v1 {{}} tests {{ permit call a/t {{"a": {"[" * 40}{"]" * 40}}} }}',
            "at most 32 deep",
        ),
    ],
)
def test_a_claim_that_cannot_be_read_is_refused(text: str, message: str):
    assert message in refusal(text).message


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ('oblidge "x" call on a/t mark m', "oblige"),
        ('limit "x" call on a/t dedline 5m', "deadline"),
        ('permit "x" sampel on a', "sample"),
        ('permit "x" call on a/t below rol r', "role"),
        ('permit "x" call on a/t when arg(/p) startswith "a"', "starts_with"),
        ('permit "x" call on a/t afer untrusted', "after"),
    ],
)
def test_a_misspelt_new_word_is_named_with_the_right_one(wrong: str, right: str):
    assert refused_rules(wrong).nearest == right


def test_an_agent_is_told_nothing_of_other_tools():
    policy_set = loaded('permit "secret-rule" call on hidden/secret_tool when arg(/p) == 1')
    explanation = explain(policy_set, request("a/t"))

    assert "secret" in explanation.to_text()
    assert explanation.to_agent() == "no rule permits it"
    own = explain(loaded('permit "x" call on a/t when arg(/p) == 1'), request("a/t"))
    assert own.to_agent().startswith("no rule permits it; arg(/p) == 1 must hold")
