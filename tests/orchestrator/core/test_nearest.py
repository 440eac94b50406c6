from __future__ import annotations

import pytest

from orchestrator.core.nearest import did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("toolz", "tools"),
        ("tols", "tools"),
        ("tolos", "tools"),
        ("Tools", "tools"),
        ("max_parallel", "max-parallel"),
        ("git_lgo", "git_log"),
    ],
)
def test_a_misspelt_word_finds_what_was_meant(word: str, right: str) -> None:
    assert nearest(word, ["tools", "max-parallel", "git_log", "prompts"]) == right


@pytest.mark.parametrize("word", ["", "budget", "x" * 65])
def test_a_word_that_resembles_nothing_finds_nothing(word: str) -> None:
    assert nearest(word, ["tools", "prompts", "x" * 64]) is None


def test_among_equally_near_names_the_first_by_alphabet_wins() -> None:
    assert nearest("bat", ["cat", "bar", "hat"]) == "bar"


def test_a_swap_of_neighbours_is_one_mistake() -> None:
    assert nearest("ab", ["ba"]) == "ba"


def test_a_catalogue_of_near_names_is_compared_up_to_a_bound() -> None:
    many = [f"tool_{number:05}" for number in range(2_000)]

    assert nearest("uool_zzzzz", [*many, "uool_zzzzy"]) is None


def test_advice_names_the_nearest() -> None:
    assert did_you_mean("toolz", ["tools", "grant"]) == "did you mean 'tools'?"


def test_advice_lists_a_few_names_where_none_is_near() -> None:
    assert did_you_mean("zzz", ["tools", "grant"]) == "known here: grant, tools"


def test_advice_about_many_strangers_says_nothing() -> None:
    assert did_you_mean("zzz", [f"name{number}" for number in range(9)]) == ""
