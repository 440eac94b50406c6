"""Words that tell patterns apart: all ways in which patterns can match, and none twice."""

from __future__ import annotations

from itertools import product

from hypothesis import given, strategies as st

from policies.analysis.words import pattern_of, words_for
from policies.model import Names
from policies.patterns import matcher_of

PATTERNS = st.lists(st.text("ab*", min_size=1, max_size=5), min_size=1, max_size=4)


def matched(patterns: list[str], word: str) -> tuple[bool, ...]:
    return tuple(
        matcher_of(Names(text=each, alternatives=(each,)))(word) is True for each in patterns
    )


@given(PATTERNS)
def test_every_way_of_matching_has_a_word(patterns: list[str]) -> None:
    found = words_for(map(pattern_of, patterns), states_max=10_000)
    shown = {matched(patterns, word) for word in found.words}
    tried = {
        matched(patterns, "".join(letters))
        for length in range(1, 6)
        for letters in product("abx", repeat=length)
    }
    assert found.complete
    assert tried <= shown


@given(PATTERNS)
def test_no_two_words_match_the_same_patterns(patterns: list[str]) -> None:
    found = words_for(map(pattern_of, patterns), states_max=10_000)
    assert len({matched(patterns, word) for word in found.words}) == len(found.words)


def test_work_beyond_its_bound_is_said_to_be_incomplete() -> None:
    patterns = [pattern_of("abc"), pattern_of("x*y")]
    needed = next(n for n in range(1, 100) if words_for(patterns, states_max=n).complete)
    assert not words_for(patterns, states_max=needed - 1).complete


def test_a_word_may_be_empty_where_that_is_said() -> None:
    assert "" in words_for([pattern_of("*")], states_max=100, empty=True).words
    assert "" not in words_for([pattern_of("*")], states_max=100).words


def test_a_text_may_stand_anywhere_in_a_word() -> None:
    inside = pattern_of("a*", starts=False, ends=False, stars=False)
    words = words_for([inside], states_max=100).words
    assert {("a*" in word) for word in words} == {True, False}
