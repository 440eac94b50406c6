"""A word that stands twice in one list: told with its place, and no error."""

from __future__ import annotations

import pytest

from policies import Severity, Source, load
from policies.analysis.findings import findings_of


def found(text: str) -> list[tuple[str, int]]:
    """Return what is said to be repeated, and in which column."""
    told = findings_of(load([Source("t.policy", f"policy t v1 {{ role a, b\n{text}\n}}")]))
    repeated = [each for each in told if each.code == "repeated-word"]
    assert all(each.severity is Severity.WARNING and each.fix and each.excerpt for each in repeated)
    return [(each.message.partition(" stands")[0], each.place.column) for each in repeated]


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('permit "x" call on s/t when arg(/p) in ["a", "b", "a"]', ('the value `"a"`', 51)),
        ('permit "x" call on s/t when arg(/p) in [1, 1]', ("the value `1`", 44)),
        ('permit "x" call on s/{t,u,t}', ("the name `t`", 21)),
        ('permit "x" call on s/t, s/u, s/t', ("the target `s/t`", 31)),
        ('permit "x" call on s/t for role a, b, a', ("the role `a`", 39)),
        ('permit "x" call on s/t for agent "a", "a"', ("the agent `a`", 39)),
        ('permit "x" call on s/t below role a, a', ("the role `a`", 38)),
        ('permit "x" call on s/t when arg(/u) host in ["h.example", "h.example"]', ("the host `h.example`", 59)),
        ('permit "x" call on s/t when arg(/u) cidr in ["10.0.0.0/8", "10.0.0.0/8"]', ("the network `10.0.0.0/8`", 60)),
        ('permit "x" call on s/t when day in ["mon", "mon"]', ("the day `mon`", 44)),
        ('permit "x" call on s/t when args only (/p, /p)', ("the argument `/p`", 44)),
        ('set two = server("s", "s") permit "x" call on two/t', ("the server `s`", 23)),
        ('oblige "x" call on s/t redact /p, /p', ("the argument `/p`", 35)),
    ],
)  # fmt: skip
def test_what_stands_twice_in_one_list_is_told_at_its_second_place(
    rule: str, told: tuple[str, int]
):
    assert found(rule) == [told]


@pytest.mark.parametrize(
    "rule",
    [
        'permit "x" call on s/t when arg(/p) in ["1", 1, "a"]',
        'permit "x" call on s/t, u/t, s resource "x://t"',
        'permit "x" call on s/{t,u} for role a below role a',
        'permit "x" call on s/t when arg(/p) == "a" or arg(/q) == "a"',
        'permit "x" call on s/t when arg(/p) in ["a"] and arg(/q) in ["a"]',
    ],
)
def test_what_stands_in_two_lists_or_is_not_the_same_is_not_told(rule: str):
    assert found(rule) == []


def test_values_of_a_test_may_repeat():
    rules = 'permit "x" call on s/t'
    text = f'policy t v1 {{ {rules} }} tests {{ permit call s/t {{"l": ["a", "a"]}} }}'

    assert findings_of(load([Source("t.policy", text)])) == ()
