"""What a new agent may reach: on offer, permitted, granted, and handed on by all above it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from orchestrator.authority.admission import Ancestor, Grant
from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.ids import ServerName
from policies import Context, Effect, Operation, Principal, Request, Resource
from tests.orchestrator.authority.admitting import Shop, names, policy

CHIEF = Principal(role="chief", agent="chief", depth=1)
CHILD = Principal(role="worker", agent="chief/worker", depth=2)
DELEGATES = """
policy p v1 {
  role chief
  permit "all" call on any server/*
  permit "log" delegate on git/log for role chief
}
"""


def ref(server: str, name: str) -> CapabilityRef:
    return CapabilityRef(ServerName(server), CapabilityKind.TOOL, name, "d")


@pytest.mark.parametrize(
    ("tools", "server", "name", "admitted"),
    [
        (None, "git", "log", True),
        ((), "git", "log", False),
        (("git/log",), "git", "log", True),
        (("git/log",), "git", "log2", False),
        (("git/log",), "git2", "log", False),
        (("git/*",), "git", "push", True),
        (("git/l*",), "git", "push", False),
        (("git/{log,push}",), "git", "push", True),
        (("git/log", "files/read"), "files", "read", True),
        (("*/log",), "git", "log", False),
    ],
)
def test_a_grant_admits_what_it_names_on_that_server_and_nothing_else(
    tools: tuple[str, ...] | None, server: str, name: str, admitted: bool
) -> None:
    assert Grant(tools).admits(ref(server, name)) is admitted


@pytest.mark.requirement("I6")
def test_a_grant_is_what_it_was_when_it_was_given_whatever_becomes_of_the_lists() -> None:
    tools = ["git/log"]
    grant = Grant(tools=tools)
    tools.append("git/push")

    assert grant.tools == ("git/log",)
    assert names(Shop().table(grant=grant)) == ["git/log"]


def test_a_grant_hands_on_what_it_admits_unless_it_says_otherwise() -> None:
    assert Grant(("git/log",)).delegates(ref("git", "log"))
    assert not Grant(("git/log",)).delegates(ref("git", "push"))
    assert not Grant(("git/log",), delegate=()).delegates(ref("git", "log"))
    assert Grant((), delegate=("git/push",)).delegates(ref("git", "push"))


def test_without_a_grant_the_policy_alone_decides() -> None:
    table = Shop().table('policy p v1 { permit "git" call on git/* }')

    assert names(table) == ["git/log", "git/push"]


@pytest.mark.requirement("I9")
def test_what_no_rule_permits_is_not_in_the_table() -> None:
    assert names(Shop().table("policy p v1 { default deny }")) == []


def test_what_is_always_forbidden_is_not_in_the_table_and_its_row_names_the_rule() -> None:
    table = Shop().table(
        'policy p v1 { permit "all" call on any server/* forbid "no" call on git/push }'
    )

    assert names(table) == ["git/log", "files/read"]
    row = next(row for row in table.rows if row.ref.name == "push")
    assert (row.effects, row.rule, row.visible) == (
        frozenset({Effect.FORBID}),
        '"no" (test.policy:1)',
        False,
    )


def test_what_could_be_permitted_for_some_arguments_is_in_the_table() -> None:
    table = Shop().table('policy p v1 { permit "some" call on git/log when arg(/n) < 3 }')

    assert names(table) == ["git/log"]
    row = next(row for row in table.rows if row.ref.name == "log")
    assert (row.effects, row.rule) == (frozenset({Effect.PERMIT, Effect.FORBID}), "")


def test_every_offer_has_a_row_in_the_order_of_the_offers() -> None:
    table = Shop().table("policy p v1 { default deny }", grant=Grant(("git/log",)))

    assert [(str(row.ref), row.granted) for row in table.rows] == [
        ("git/log", True),
        ("git/push", False),
        ("files/read", False),
    ]


@pytest.mark.requirement("I6")
def test_a_child_of_an_agent_gets_only_what_a_delegate_rule_lets_that_agent_hand_on() -> None:
    above = (Ancestor(CHIEF, Grant()),)

    assert names(Shop().table(DELEGATES, principal=CHILD, above=above)) == ["git/log"]


@pytest.mark.requirement("I6")
@pytest.mark.parametrize(
    "rule",
    [
        'ask "log" delegate on git/log for role chief',
        'permit "log" delegate on git/log for role somebody',
        'permit "log" delegate on git/log for role chief max depth 1',
        'permit "log" delegate on git/log for role chief when digest in ["d2"]',
        'permit "log" delegate on git/log for role chief forbid "no" delegate on git/*',
        "",
    ],
    ids=["ask", "another role", "too deep", "never true", "forbidden", "none"],
)
def test_what_may_not_be_handed_on_is_not_handed_on(rule: str) -> None:
    text = f'policy p v1 {{ role chief, somebody permit "all" call on any server/* {rule} }}'
    above = (Ancestor(CHIEF, Grant()),)

    assert names(Shop().table(text, principal=CHILD, above=above)) == []


@pytest.mark.requirement("I6")
def test_an_agents_own_grant_bounds_what_it_hands_on() -> None:
    text = 'policy p v1 { permit "all" call on any server/* permit "any" delegate on any server/* }'
    above = (Ancestor(CHIEF, Grant(("files/read",))),)

    assert names(Shop().table(text, principal=CHILD, above=above)) == ["files/read"]


@pytest.mark.requirement("I6")
def test_nobody_gets_by_a_grandchild_what_it_could_not_hand_on_itself() -> None:
    text = """
    policy p v1 {
      role chief, worker
      permit "all" call on any server/*
      permit "chief" delegate on git/log for role chief
      permit "worker" delegate on any server/* for role worker
    }
    """
    above = (Ancestor(CHIEF, Grant()), Ancestor(CHILD, Grant()))

    assert names(Shop().table(text, above=above)) == ["git/log"]


SERVERS, TOOLS, ROLES = ("git", "files"), ("log", "read", "push"), ("worker", "chief")
ALL = [(server, tool) for server in SERVERS for tool in TOOLS]
targets = st.sampled_from(
    [f"{server}/{tool}" for server, tool in ALL]
    + ["any server/*", "git/*", "files/{log,read}", "git/p*", "any server/read"]
)
rules = st.tuples(
    st.sampled_from(["permit", "ask", "forbid"]),
    st.sampled_from(["call", "delegate", "call, delegate"]),
    targets,
    st.sampled_from(["", " for role worker", " for role chief"]),
    st.sampled_from(["", " when arg(/n) > 3"]),
)
policy_texts = st.lists(rules, max_size=8).map(
    lambda several: (
        "policy p v1 { role worker, chief\n"
        + "\n".join(
            f'{effect} "r{number}" {operation} on {target}{role}{condition}'
            for number, (effect, operation, target, role, condition) in enumerate(several)
        )
        + " }"
    )
)
entries = st.lists(
    st.sampled_from([f"{server}/{tool}" for server, tool in ALL] + ["git/*", "files/r*"]),
    max_size=3,
).map(tuple)
grants = st.builds(Grant, st.none() | entries, st.none() | entries)
lineages = st.lists(
    st.builds(
        Ancestor,
        st.sampled_from(ROLES).map(lambda role: Principal(role=role, agent="above", depth=1)),
        grants,
    ),
    max_size=3,
)


@pytest.mark.requirement("I6")
@given(text=policy_texts, grant=grants, above=lineages, n=st.integers(0, 6))
def test_no_child_exceeds_its_policy_its_grant_or_what_any_agent_above_may_hand_on(
    text: str, grant: Grant, above: Sequence[Ancestor], n: int
) -> None:
    table = Shop(names=ALL).table(text, grant=grant, above=above, principal=CHILD)
    rules_now = policy(text)
    arguments = Context({"n": n})

    for server, tool in ALL:
        resource = Resource(server, "tool", tool)
        capability = table.find(server, tool)
        asked = Request(
            principal=CHILD, action=Operation.CALL, resource=resource, context=arguments
        )
        allowed = rules_now.decide(asked).effect is not Effect.FORBID
        handed_on = all(
            one.grant.delegates(ref(server, tool))
            and rules_now.decide(
                Request(
                    principal=one.principal,
                    action=Operation.DELEGATE,
                    resource=resource,
                    context=arguments,
                )
            ).effect
            is Effect.PERMIT
            for one in above
        )
        if capability is not None:
            assert grant.admits(ref(server, tool))
            decided = capability.verdict.constant or capability.verdict.decide(arguments)
            assert (decided.effect is not Effect.FORBID) == allowed
            refused = [found for each in capability.ceilings if (found := each.refusal(arguments))]
            assert (not refused) == handed_on


@given(text=policy_texts, grant=grants)
def test_what_policy_and_grant_allow_is_in_the_table_of_the_sessions_own_child(
    text: str, grant: Grant
) -> None:
    table = Shop(names=ALL).table(text, grant=grant, principal=CHILD)
    rules_now = policy(text)

    for server, tool in ALL:
        asked = [
            rules_now.decide(
                Request(
                    principal=CHILD,
                    action=Operation.CALL,
                    resource=Resource(server, "tool", tool),
                    context=Context({"n": n}),
                )
            ).effect
            for n in (0, 5)
        ]
        if grant.admits(ref(server, tool)) and set(asked) != {Effect.FORBID}:
            assert table.find(server, tool) is not None
