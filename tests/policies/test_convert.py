"""Rules of other programs as policies: what is carried over, what is listed, and never more allowed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import cedarpy
import pytest
from hypothesis import given, settings, strategies as st

from policies import Effect, PolicyError, PolicySet, Principal, Source, load
from policies.convert import Converted, Widens, read_cedar, read_claude, read_gemini, write_cedar
from tests.policies.generated import LITERALS, policy_text, some_requests
from tests.policies.support import request


def decided(converted: Converted, name: str, arguments: dict[str, object] | None = None) -> str:
    loaded = load([Source("converted.policy", converted.text)])
    return loaded.decide(request(name, arguments)).effect.value


def claude(**lists: list[str]) -> Converted:
    return read_claude({"permissions": lists})


def gemini(*rules: Mapping[str, object]) -> Converted:
    return read_gemini({"rule": list(rules)})


def whys(converted: Converted) -> str:
    return "\n".join(str(loss) for loss in converted.losses)


# ------------------------------------------------------------------------------------ Claude Code


def test_claude_s_lists_become_rules_of_the_same_strength() -> None:
    found = claude(
        deny=["mcp__git__reset"], ask=["mcp__mail"], allow=["mcp__git__*", "mcp__mail__send"]
    )
    assert [decided(found, name) for name in ("git/log", "git/reset", "mail/send", "x/y")] == [
        "permit",
        "forbid",
        "ask",
        "forbid",
    ]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("Bash(git log:*)", "no MCP server has"),
        ("mcp__*", "a star for servers"),
        ("mcp__git__log(x)", "skips MCP rules with parentheses"),
        ("mcp__my__git__log", "unclear where the server's name ends"),
    ],
)
def test_what_claude_would_not_allow_by_a_rule_is_listed_and_allows_nothing(
    entry: str, why: str
) -> None:
    found = claude(allow=[entry])
    assert why in whys(found)
    assert "permit" not in found.text


def test_a_denial_that_is_unclear_denies_each_reading() -> None:
    found = claude(deny=["mcp__my__git__log"], allow=["mcp__my", "mcp__x"])
    assert decided(found, "my/git__log") == "forbid"
    assert 'forbid "deny 2" call on my__git/log' in found.text


def test_what_no_list_names_is_listed_as_denied() -> None:
    assert "what no rule allows is denied here" in whys(claude())


def test_what_is_no_rule_is_listed() -> None:
    assert "this is no rule" in whys(read_claude({"permissions": {"allow": [3]}}))


# --------------------------------------------------------------------------------------- Gemini


def test_gemini_s_first_match_is_kept_where_the_stronger_rule_is_first() -> None:
    found = gemini(
        {"mcpName": "git", "decision": "allow", "priority": 10},
        {"mcpName": "git", "toolName": "reset", "decision": "deny", "priority": 20},
    )
    assert [decided(found, name) for name in ("git/log", "git/reset")] == ["permit", "forbid"]


def test_a_general_denial_below_an_exception_is_the_default() -> None:
    found = gemini(
        {"toolName": "*", "decision": "deny", "priority": 1},
        {"mcpName": "git", "toolName": "log", "decision": "allow", "priority": 10},
    )
    assert [decided(found, name) for name in ("git/log", "git/reset")] == ["permit", "forbid"]
    assert {loss.effect for loss in found.losses if loss.where == "rule[0]"} == {Widens.SAME}


def test_a_denial_between_two_permissions_holds_for_both_and_says_so() -> None:
    found = gemini(
        {"mcpName": "git", "toolName": "log", "decision": "allow", "priority": 30},
        {"mcpName": "git", "toolName": "*", "decision": "deny", "priority": 20},
        {"mcpName": "git", "toolName": "show", "decision": "allow", "priority": 10},
    )
    assert [decided(found, name) for name in ("git/log", "git/show")] == ["forbid", "forbid"]
    assert "lets through first" in whys(found)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"argsPattern": "x"}, "no regular expressions"),
        ({"toolAnnotations": {"readOnlyHint": True}}, "hints permit nothing"),
        ({"modes": ["yolo"]}, "other modes"),
        ({"commandPrefix": "git"}, "own shell"),
        ({"toolName": "mcp_my_server_tool", "mcpName": None}, "unclear where"),
        ({"toolName": "read_file", "mcpName": None}, "Gemini CLI's own"),
    ],
)
def test_a_permission_that_cannot_be_said_is_listed_and_allows_nothing(
    more: dict[str, object], why: str
) -> None:
    found = gemini({"mcpName": "git", "decision": "allow", "priority": 1, **more})
    assert why in whys(found)
    assert "permit" not in found.text


def test_a_denial_that_cannot_be_said_denies_more_and_says_so() -> None:
    found = gemini(
        {"mcpName": "git", "decision": "allow", "priority": 1},
        {
            "mcpName": "git",
            "toolName": "push",
            "argsPattern": "x",
            "decision": "deny",
            "priority": 2,
        },
    )
    assert decided(found, "git/push") == "forbid"
    assert "about every call of the tool" in whys(found)


def test_a_subagent_s_denial_holds_for_it_wherever_it_stands() -> None:
    found = gemini(
        {"mcpName": "git", "decision": "allow", "priority": 1},
        {"mcpName": "git", "subagent": "scout", "decision": "deny", "priority": 2},
    )
    loaded = load([Source("c.policy", found.text)])
    asked = request("git/log")
    for agent, effect in (
        ("scout", Effect.FORBID),
        ("a/scout", Effect.FORBID),
        ("b", Effect.PERMIT),
    ):
        who = Principal(role="r", agent=agent)
        assert loaded.verdict(who, asked.action, asked.resource).possible == {effect}


# ---------------------------------------------------------------------------------------- Cedar

CEDAR = """
@id("read") permit (principal == Role::"r", action == Action::"call", resource == Tool::"files/read")
when { context.n <= 10 && (context.mode == "r" || ["a", "b"].contains(context.mode)) };
// a comment
forbid (principal, action, resource in Server::"files") when { context has secret && !(context.path like "/out/*") };
permit (principal, action == Action::"call", resource == Tool::"files/odd") unless { context.n > 3 };
"""


def test_cedar_is_read_and_answers_the_same() -> None:
    found = read_cedar(CEDAR, "x.cedar")
    assert decided(found, "files/read", {"n": 5, "mode": "b", "path": "/out/x"}) == "permit"
    assert decided(found, "files/read", {"n": 50, "mode": "b", "path": "/out/x"}) == "forbid"
    assert (
        decided(found, "files/read", {"n": 5, "mode": "r", "secret": 1, "path": "/x"}) == "forbid"
    )
    assert decided(found, "files/odd", {"n": 3, "path": "/out/x"}) == "permit"


@pytest.mark.parametrize(
    "text",
    [
        'forbid (principal == User::"a", action, resource);',
        "forbid (principal is Role, action, resource);",
        "forbid (principal, action, resource) when { resource.x == 1 };",
        "forbid (principal, action, resource",
        "forbid (principal, action, resource) when { " + "!" * 40 + " context.a == 1 };",
        "\x00",
    ],
)
def test_a_denial_of_cedar_s_that_cannot_be_read_is_an_error_with_its_place(text: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_cedar(text, "x.cedar")
    assert caught.value.place.line == 1


def test_a_permission_of_cedar_s_without_a_counterpart_is_listed() -> None:
    found = read_cedar('permit (principal == User::"a", action, resource);', "x.cedar")
    assert "a principal is a Role here" in whys(found)
    assert decided(found, "a/t") == "forbid"


def test_what_cedar_cannot_say_is_listed_and_denied() -> None:
    rules = """
      permit "under" call on a/t when arg(/p) under "out"
      permit "plain" call on a/u
      forbid "flow" call on a/u after untrusted
      ask "asked" call on a/v
      oblige "hide" call on a/u redact /x
    """
    loaded = load([Source("t.policy", f"policy t v1 {{ {rules} }}")])
    found = write_cedar(loaded.policies)
    assert not cedar_allows(found.text, "a/t", {"p": "out/x"})
    assert not cedar_allows(found.text, "a/u", {})
    assert {loss.what for loss in found.losses} == {
        'permit "under"',
        'forbid "flow"',
        'ask "asked"',
        'oblige "hide"',
    }


def cedar_allows(text: str, name: str, arguments: Mapping[str, object], role: str = "r") -> bool:
    server, _, tool = name.partition("/")
    uid = {"type": "Thing", "id": "it"}
    attributes = {"server": server, "name": tool, "kind": "tool"}
    entities: list[object] = [{"uid": uid, "attrs": attributes, "parents": []}]
    library: Any = cedarpy
    answer = library.is_authorized(
        {
            "principal": {"type": "Role", "id": role},
            "action": 'Action::"call"',
            "resource": uid,
            "context": dict(arguments),
        },
        text,
        json.dumps(entities),
    )
    return bool(answer.allowed)


CEDAR_TESTS = (
    *(f"arg(/p) {sign} {each}" for sign in ("==", "!=") for each in LITERALS if "." not in each),
    *(f"arg(/p) {sign} 1" for sign in ("<", "<=", ">", ">=")),
    *('arg(/p) in ["a", "b"]', "arg(/p) in 0..5", "exists arg(/q)", 'arg(/q) starts_with "o"'),
    *('arg(/q) contains "*"', 'arg(/q) like "*x"', 'arg(/q) under "out"'),
)

TYPED_TESTS = tuple(
    each
    for each in CEDAR_TESTS
    if not each.startswith("arg(/p) ") or not ({'"', "e"} & set(each.removeprefix("arg(/p) ")))
)


@st.composite
def cedar_rules(draw: st.DrawFn) -> str:
    effect = draw(st.sampled_from(("permit", "permit", "forbid", "ask", "require")))
    target = draw(st.sampled_from(("a/t", "a/t*", "b/{t,u}", "any server", "a/u")))
    role = draw(st.sampled_from(("", " for role r")))
    # of another type than the rule's literal Cedar takes a forbid for false: that is told as a loss
    known = CEDAR_TESTS if effect == "permit" else TYPED_TESTS
    tests = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
    signs = draw(st.lists(st.sampled_from(("", "not ")), min_size=3, max_size=3))
    join = draw(st.sampled_from((" and ", " or ")))
    word = "that" if effect == "require" else "when"
    condition = join.join(f"{sign}{test}" for sign, test in zip(signs, tests, strict=False))
    return f'{effect} "{{id}}" call on {target}{role} {word} {condition}'


def typed(arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments of a typed request: /p and /q are each of the type that the rules look at."""
    p = arguments.get("p")
    return {"q": p} if isinstance(p, str) else {"p": p} if type(p) is int and p < 2**60 else {}


@settings(max_examples=40, deadline=None)
@given(st.lists(cedar_rules(), min_size=1, max_size=6), st.integers(0, 2**32))
def test_cedar_that_we_write_never_allows_more(rules: list[str], seed: int) -> None:
    loaded: PolicySet = load([Source("g.policy", policy_text(rules))])
    text = write_cedar(loaded.policies).text
    for asked in some_requests(seed, 12):
        name = f"{asked.resource.server}/{asked.resource.name}"
        arguments = typed(asked.context.arguments)
        ours = loaded.decide(request(name, arguments, role="r")).effect
        if cedar_allows(text, name, arguments):
            assert ours is Effect.PERMIT
