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
    words = policy_text(rules).replace("any server", "any~server").split()
    text = "".join(f"{word}{spaces[at % 7]}" for at, word in enumerate(words))
    text = text.replace("~", " ")
    once = formatted(text)
    assert meaning(parse(once, "t")) == meaning(parse(text, "t"))
    assert formatted(once) == once
    assert once.count("# a note") == text.count("# a note")
    assert once.count("# above") == text.count("# above")


def test_the_layout_of_the_example_is_reached_at_once() -> None:
    assert formatted(formatted(EXAMPLE)) == formatted(EXAMPLE)
