"""What is delegated under a condition holds under it; what a spawn fixes stays fixed; what was is kept."""

from __future__ import annotations

import pytest

from orchestrator.authority.admission import Ancestor, Grant, attenuate
from orchestrator.authority.ceilings import Ceiling, Pin, broken_pin
from orchestrator.authority.history import POLICIES_KEPT_MAX, PolicyHistory
from policies import Context, Effect, Operation, PolicySet, Principal, Resource
from policies.patterns import PatternError
from tests.orchestrator.authority.admitting import Shop, found, names, policy

CHIEF = Principal(role="chief", agent="chief", depth=1)
CHILD = Principal(role="worker", agent="chief/worker", depth=2, above=(CHIEF,))
ABOVE = (Ancestor(CHIEF, Grant()),)


def rules(delegate: str) -> str:
    return f'policy p v1 {{ role chief permit "all" call on any server/* {delegate} }}'


@pytest.mark.requirement("I6")
def test_what_is_delegated_under_a_condition_is_held_against_it_at_each_call() -> None:
    text = rules('permit "log" delegate on git/log for role chief when arg(/n) > 3')
    capability = found(Shop().table(text, principal=CHILD, above=ABOVE), "git", "log")
    (ceiling,) = capability.ceilings

    assert capability.constant is None
    assert ceiling.refusal(Context({"n": 5})) is None
    assert ceiling.refusal(Context({"n": 1})) is not None
    assert ceiling.refusal(Context({})) is not None


@pytest.mark.requirement("I6")
def test_a_ceiling_that_refuses_names_the_rule_that_forbids_and_none_where_nothing_permits() -> (
    None
):
    text = rules(
        'permit "log" delegate on git/log for role chief when arg(/n) > 3\n'
        'forbid "much" delegate on git/log for role chief when arg(/n) > 9'
    )
    (ceiling,) = found(Shop().table(text, principal=CHILD, above=ABOVE), "git", "log").ceilings

    forbidden = ceiling.refusal(Context({"n": 10}))
    unnamed = ceiling.refusal(Context({"n": 1}))

    assert forbidden is not None
    assert [reason.rule for reason in forbidden.reasons] == ["much"]
    assert unnamed is not None
    assert (unnamed.effect, unnamed.reasons) == (Effect.FORBID, ())


@pytest.mark.requirement("I6")
@pytest.mark.parametrize(
    ("rule", "reachable"),
    [
        ("permit", True),
        ("ask", False),
        ("permit max depth 1", False),
        ("permit max depth 2", True),
        ("permit max children 1", False),
        ("permit max children 2", True),
    ],
)
def test_what_is_handed_on_under_no_condition_is_reachable_or_not(
    rule: str, reachable: bool
) -> None:
    effect, _, duty = rule.partition(" ")
    text = rules(f'{effect} "log" delegate on git/log for role chief {duty}')
    verdict = policy(text).verdict(CHIEF, Operation.DELEGATE, Resource("git", "tool", "log"))

    assert Ceiling(verdict=verdict, depth=2, children=1).reachable is reachable


@pytest.mark.requirement("I6", "I10")
@pytest.mark.parametrize("permit", ["", 'permit "log" delegate on git/log for role chief'])
def test_what_an_ask_may_be_about_is_not_handed_on_where_its_condition_has_no_value(
    permit: str,
) -> None:
    text = rules(f'{permit} ask "some" delegate on git/log for role chief when arg(/n) > 3')
    verdict = policy(text).verdict(CHIEF, Operation.DELEGATE, Resource("git", "tool", "log"))
    ceiling = Ceiling(verdict=verdict, depth=2, children=1)

    refused = [ceiling.refusal(Context({"n": n})) is not None for n in (5, "five", 1)]

    assert ceiling.reachable is bool(permit)
    assert refused == [True, True, not permit]


@pytest.mark.requirement("I10", "I13")
def test_a_tool_that_only_an_ask_without_a_value_is_about_is_not_in_the_table() -> None:
    never = 'ask "log" call on git/log when arg(/n) == 1 and arg(/n) == 2'
    permit = 'permit "all" call on git/log'

    assert names(Shop().table(f"policy p v1 {{ {never} }}")) == []
    table = Shop().table(f"policy p v1 {{ {never} {permit} }}")
    assert found(table, "git", "log").verdict.possible == {Effect.ASK, Effect.PERMIT}


@pytest.mark.requirement("I6")
def test_who_asks_for_a_table_without_saying_how_many_children_there_are_has_none() -> None:
    text = rules('permit "log" delegate on git/log for role chief max children 1')
    table = attenuate(
        Shop().offers(), principal=CHILD, policy=policy(text), grant=Grant(), above=ABOVE
    )

    assert names(table) == ["git/log"]


@pytest.mark.requirement("I6")
def test_an_agent_further_up_that_may_have_one_child_only_may_have_it() -> None:
    text = """policy p v1 {
      role chief, free
      permit "all" call on any server/*
      permit "one" delegate on git/log for role chief max children 1
      permit "any" delegate on git/log for role free
    }"""
    middle = Principal(role="free", agent="chief/middle", depth=2, above=(CHIEF,))
    low = Principal(role="worker", agent="chief/middle/low", depth=3, above=(CHIEF, middle))

    table = Shop().table(text, principal=low, above=(*ABOVE, Ancestor(middle, Grant())))
    assert names(table) == ["git/log"]


@pytest.mark.requirement("I6")
def test_a_right_to_delegate_reaches_no_deeper_than_it_says() -> None:
    text = rules('permit "log" delegate on git/log for role chief max depth 2')
    deeper = Principal(role="worker", agent="chief/worker/x", depth=3, above=(CHIEF,))

    assert names(Shop().table(text, principal=CHILD, above=ABOVE)) == ["git/log"]
    assert names(Shop().table(text, principal=deeper, above=ABOVE)) == []


@pytest.mark.requirement("I6")
@pytest.mark.parametrize(("children", "granted"), [(0, ["git/log"]), (1, ["git/log"]), (2, [])])
def test_a_right_to_delegate_is_for_no_more_children_than_it_says(
    children: int, granted: list[str]
) -> None:
    text = rules('permit "log" delegate on git/log for role chief max children 2')

    table = Shop().table(text, principal=CHILD, above=ABOVE, children=children)
    assert names(table) == granted


@pytest.mark.requirement("I6")
def test_only_the_parent_itself_counts_its_children() -> None:
    text = """policy p v1 {
      role chief, free
      permit "all" call on any server/*
      permit "few" delegate on git/log for role chief max children 2
      permit "any" delegate on git/log for role free
    }"""
    middle = Principal(role="free", agent="chief/middle", depth=2, above=(CHIEF,))
    low = Principal(role="worker", agent="chief/middle/low", depth=3, above=(CHIEF, middle))
    above = (*ABOVE, Ancestor(middle, Grant()))

    table = Shop().table(text, principal=low, above=above, children=2)
    assert names(table) == ["git/log"]


@pytest.mark.requirement("I6")
def test_a_policy_that_is_not_kept_any_more_hands_nothing_on() -> None:
    text = rules('permit "any" delegate on any server/*')
    old = (Ancestor(CHIEF, Grant(), policy(text)),)
    shop = Shop()

    assert names(shop.table(text, principal=CHILD, above=old)) == [
        "git/log",
        "git/push",
        "files/read",
    ]
    assert names(shop.table(text, principal=CHILD, above=old, since=lambda _: ())) == []


@pytest.mark.parametrize(
    ("value", "argument"), [(1, True), (1, 1.0), (1, "1"), ("x", "X"), (None, 0), (True, 1)]
)
def test_a_pin_takes_its_very_value_and_nothing_like_it(
    value: str | int | bool | None, argument: object
) -> None:
    pin = Pin(tool="git/*", pointer="/a/b", value=value)

    assert pin.holds({"a": {"b": value}, "c": 1})
    assert not pin.holds({"a": {"b": argument}})
    assert not pin.holds({"a": {}})


def test_the_first_broken_pin_is_told() -> None:
    kept, broken = Pin(tool="a/*", pointer="/x", value=1), Pin(tool="a/*", pointer="/y", value=2)

    assert broken_pin((kept, broken), {"x": 1, "y": 3}) is broken
    assert broken_pin((kept, broken), {"x": 1, "y": 2}) is None


@pytest.mark.parametrize(("tool", "pointer"), [("git/{a", "/x"), ("git/", "/x"), ("git/a", "x")])
def test_a_pin_that_could_never_be_kept_is_refused(tool: str, pointer: str) -> None:
    with pytest.raises(PatternError):
        Pin(tool=tool, pointer=pointer, value=1)


@pytest.mark.requirement("I6")
def test_pins_of_all_spawns_above_bind() -> None:
    text = rules('permit "any" delegate on any server/*')
    above = (Ancestor(CHIEF, Grant(pins=(Pin(tool="git/*", pointer="/repo", value="a"),))),)
    own = Grant(pins=(Pin(tool="git/log", pointer="/n", value=1),))
    table = Shop().table(text, principal=CHILD, grant=own, above=above)

    assert [pin.pointer for pin in found(table, "git", "log").pins] == ["/n", "/repo"]
    assert [pin.pointer for pin in found(table, "git", "push").pins] == ["/repo"]
    assert found(table, "files", "read").pins == ()


def test_two_tables_with_other_pins_have_other_digests() -> None:
    text = rules("")
    digests = {
        Shop().table(text, grant=Grant(pins=(Pin(tool="git/log", pointer="/n", value=n),))).digest
        for n in (1, 2)
    }

    assert len(digests) == 2


def sets(count: int) -> list[PolicySet]:
    return [policy(f"policy p{n} v1 {{}}") for n in range(count)]


def test_a_history_knows_every_policy_since_one() -> None:
    first, second, third = sets(3)
    history = PolicyHistory(first)
    history.replace(second)
    history.replace(third)

    assert history.present is third
    assert history.since(second) == (second, third)
    assert history.since(policy("policy p1 v1 {}")) == (second, third)


def test_a_history_keeps_so_many_policies_and_forgets_the_oldest() -> None:
    assert POLICIES_KEPT_MAX == 64
    several = sets(POLICIES_KEPT_MAX + 1)
    history = PolicyHistory(several[0])
    for each in several[1:]:
        history.replace(each)

    assert history.since(several[0]) == ()
    assert len(history.since(several[1])) == POLICIES_KEPT_MAX


@pytest.mark.requirement("I6")
def test_a_policy_that_comes_back_is_another_than_it_was() -> None:
    first, second = sets(2)
    history = PolicyHistory(first)
    history.replace(second)
    history.replace(first)

    assert history.present is not first
    assert (history.present.digest, len(history.since(first))) == (first.digest, 3)
    assert history.since(history.present) == (history.present,)
