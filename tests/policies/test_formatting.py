"""The canonical layout: what it keeps, what it looks like, and that it says the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import cast

import pytest
from hypothesis import given, strategies as st

from policies import PolicyError, PolicyLimits, parse
from policies.errors import Place
from policies.formatting import format_text
from policies.parsing import parse_file
from tests.policies.generated import policy_text, rule_lists
from tests.policies.support import EXAMPLE

SPACES = st.sampled_from((" ", "  ", "\n", "\n\n\n", "\t", "\r\n", " # a note\n", "\n# above\n"))


def meaning(value: object) -> object:
    """A value without the places in it."""
    if isinstance(value, Place):
        return None
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return {key: meaning(each) for key, each in entries.items()}
    if isinstance(value, tuple):
        return tuple(meaning(each) for each in cast("tuple[object, ...]", value))
    if is_dataclass(value) and not isinstance(value, type):
        return (type(value), *(meaning(getattr(value, each.name)) for each in fields(value)))
    return value


def formatted(text: str) -> str:
    return format_text(text, "t.policy")


def test_a_short_rule_stands_on_one_line() -> None:
    text = 'policy t v1{role r\npermit "a"\n   call   on a /t\n for role r}'
    assert formatted(text) == ('policy t v1 {\n  role r\n  permit "a" call on a/t for role r\n}\n')


def test_a_long_rule_is_broken_before_its_clauses() -> None:
    rule = 'permit "write" call on files/write_file for role r when arg(/path) under "out/a/long/folder"'
    assert formatted(f"policy t v1 {{ role r {rule} }}") == (
        "policy t v1 {\n"
        "  role r\n"
        '  permit "write" call on files/write_file\n'
        "    for role r\n"
        '    when arg(/path) under "out/a/long/folder"\n'
        "}\n"
    )


def test_a_long_condition_is_broken_before_and_and_or() -> None:
    tests = " and ".join(f"arg(/some_name_{n}) == {n}" for n in range(4))
    text = formatted(f'policy t v1 {{ permit "p" call on a/t when ({tests}) or {tests} }}')
    assert "    when (arg(/some_name_0) == 0 and" in text
    assert "\n      or arg(/some_name_0) == 0\n      and arg(/some_name_1) == 1\n" in text


def test_comments_stay_before_or_beside_what_they_stood_by() -> None:
    text = (
        "# top\n\npolicy t v1 { # beside\n# above\n"
        'permit "a" call on a/t # after\n\n\n# last\n} # end\n# bottom\n'
    )
    assert formatted(text) == (
        "# top\n\npolicy t v1 {  # beside\n  # above\n"
        '  permit "a" call on a/t  # after\n\n  # last\n}  # end\n# bottom\n'
    )


def test_a_comment_inside_a_rule_keeps_its_clause() -> None:
    text = 'policy t v1 { role r permit "a" call on a/t # what\nfor role r # who\n}'
    assert formatted(text) == (
        'policy t v1 {\n  role r\n  permit "a" call on a/t  # what\n    for role r  # who\n}\n'
    )


def test_a_name_that_looks_like_a_statement_stays_in_its_line() -> None:
    text = 'policy ask v1 {\n  role permit, role\n  forbid "x" call on set/ask for role permit, role\n}\n'
    assert formatted(text) == text


def test_a_file_that_is_no_policy_is_refused() -> None:
    with pytest.raises(PolicyError, match="unexpected `policies`"):
        formatted("policies x v1 {}")


def test_a_file_that_would_be_too_large_is_refused() -> None:
    text = 'policy t v1{permit"a"call on a/t}'
    grown = len(formatted(text))
    assert format_text(text, "t", limits=PolicyLimits(source_bytes_max=grown))
    with pytest.raises(PolicyError, match="would have more"):
        format_text(text, "t", limits=PolicyLimits(source_bytes_max=grown - 1))


@given(rule_lists, st.lists(SPACES, min_size=7, max_size=7))
def test_layout_changes_no_meaning_and_is_reached_at_once(
    rules: list[str], spaces: list[str]
) -> None:
    # each space may be any other space, or hold a comment, and the rules stay what they are
    written = policy_text(rules)
    # except within what is one word of the language
    for whole in ("any server", "any arg", "all arg", "digest pinned"):
        written = written.replace(whole, whole.replace(" ", "~"))
    words = written.split()
    text = "".join(f"{word}{spaces[at % 7]}" for at, word in enumerate(words))
    text = text.replace("~", " ")
    once = formatted(text)
    assert meaning(parse(once, "t")) == meaning(parse(text, "t"))
    assert formatted(once) == once
    assert once.count("# a note") == text.count("# a note")
    assert once.count("# above") == text.count("# above")


def test_the_layout_of_the_example_is_reached_at_once() -> None:
    assert formatted(formatted(EXAMPLE)) == formatted(EXAMPLE)


WHOLE = """\
include "base.policy"

policy whole v2 {
  default deny
  role reader, writer
  set web = server("fetch", "brave")
  sink out = mail/send, web/post_*
  trust hints of server("docs")
  permit "a" call on docs/{search,get_*}, web/fetch for role reader depth <= 2
  permit "b" read on docs resource "doc://{project}/{+path}" when uri(project) in ["a", "b"]
  ask "c" call on mail/send
    unless all arg(/to) like "*@corp.example" expires 10m
  forbid "d" call on sink(out) after untrusted from web
  require "e" call on any server that digest pinned
  limit "f" call on web rate 30 per 1m per agent budget tokens 200k deadline 15m
  oblige "g" call on crm redact /email, /phone mark sensitive keep /id
  oblige "k" call on pay keep arguments
  permit "h" delegate on docs max depth 3 max children 8
  forbid "i" call on any server
    when any arg contains "/../" or hint(destructive) or arg(/s) length in 1..10
    or time in "09:00".."17:00"
  permit "j" call on files/write_file for agent "a*" below role reader surface headless
    when arg(/p) under "/data/${x}" and arg(/n) in 1..5 and not budget(calls) < 3
    unknown args deny
}

tests {
  permit call docs/search { "q": "x", "n": [1, { "a": null }] } for role reader by "a"
  forbid call files/write_file { "path": "/etc/x" } after untrusted from web by default
  ask call mail/send { "to": ["a"] } depth 2 surface interactive at "2026-01-01T00:00:00Z"
  forbid call web/post_x hint(destructive) true budget(calls) 3 unpinned
}

assert never call on mail/send when after untrusted
assert child_subset(policy "whole", policy "other")
"""


def test_every_construct_keeps_its_meaning_and_its_layout() -> None:
    once = formatted(WHOLE)
    assert meaning(parse_file(once, "t")) == meaning(parse_file(WHOLE, "t"))
    assert formatted(once) == once
    squeezed = formatted(" ".join(WHOLE.split()))
    assert meaning(parse_file(squeezed, "t")) == meaning(parse_file(WHOLE, "t"))


def test_tests_stand_in_lines_of_their_own() -> None:
    text = 'policy t v1 {}tests{permit call a /t {"q" :"x"}by "p" forbid call a/u by default}'
    assert formatted(text) == (
        "policy t v1 {\n}\ntests {\n"
        '  permit call a/t { "q": "x" } by "p"\n  forbid call a/u by default\n}\n'
    )


def test_a_long_list_is_broken_between_its_items() -> None:
    names = ", ".join(f'"somebody_{n}@corp.example"' for n in range(5))
    text = f'policy t v1 {{ permit "p" call on a/t when exists arg(/x) and arg(/to) in [{names}] }}'
    assert formatted(text) == (
        "policy t v1 {\n"
        '  permit "p" call on a/t\n'
        "    when exists arg(/x)\n"
        '      and arg(/to) in ["somebody_0@corp.example", "somebody_1@corp.example",\n'
        '        "somebody_2@corp.example", "somebody_3@corp.example", "somebody_4@corp.example"]\n'
        "}\n"
    )
    assert formatted(formatted(text)) == formatted(text)
