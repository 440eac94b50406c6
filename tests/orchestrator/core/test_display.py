from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from orchestrator.core.display import CUT, safe_line, safe_text

hostile = st.text(
    st.one_of(
        st.characters(),
        st.characters(categories=["Cc", "Cf", "Cs", "Co"]),
        st.sampled_from("\x1b[]P;?m\x07\x9b\x9c0128\\\r\n\t"),
    ),
    max_size=60,
)


def _is_obeyed_or_unseen(char: str) -> bool:
    if char in "\n\t":
        return False
    if unicodedata.category(char) in {"Cc", "Cs", "Co", "Zl", "Zp"}:
        return True
    return 0x202A <= ord(char) <= 0x202E or 0x2066 <= ord(char) <= 0x2069 or ord(char) >= 0xE0000


@given(hostile, st.booleans())
def test_nothing_that_a_terminal_obeys_comes_through(text: str, reveal: bool) -> None:
    assert not any(map(_is_obeyed_or_unseen, safe_text(text, reveal=reveal)))


@given(hostile, st.booleans())
def test_a_line_stays_one_line(text: str, reveal: bool) -> None:
    assert safe_line(text, reveal=reveal).splitlines()[1:] == []


@given(hostile)
def test_making_safe_twice_changes_nothing(text: str) -> None:
    assert safe_text(safe_text(text)) == safe_text(text)


@given(hostile, st.integers(min_value=0, max_value=20), st.booleans())
def test_no_more_than_the_bound_comes_back(text: str, chars_max: int, reveal: bool) -> None:
    assert len(safe_text(text, chars_max=chars_max, reveal=reveal)) <= chars_max


@given(hostile)
def test_revealed_text_tells_of_every_hidden_character(text: str) -> None:
    hidden = sum(map(_is_obeyed_or_unseen, text.replace("\r\n", "\n")))
    separators = text.count("\u2028") + text.count("\u2029")

    assert safe_text(text, reveal=True).count("<U+") >= hidden - separators


@pytest.mark.parametrize(
    "text",
    [
        "a\x1b[31mb",
        "a\x9b31mb",
        "a\x1b]0;title\x07b",
        "a\x1b]52;c;aGk=\x1b\\b",
        "a\x1b]8;;http://x\x1b\\b",
        "a\x1bP1$r\x1b\\b",
        "a\x1bcb",
        "a\u202eb",
        "a\u2066b",
        "a\U000e0041b",
        "a\u200bb",
        "a\ufe0f\U000e0100b",
        "a\ud800b",
        "a\rb",
        "a\x7f\x85b",
        "a\u115fb",
    ],
)
def test_sequences_and_hidden_characters_are_taken_away(text: str) -> None:
    assert safe_text(text) == "ab"


def test_a_sequence_left_open_does_not_take_the_text_with_it() -> None:
    assert safe_text("a\x1b]0;rm -rf") == "a0;rm -rf"


def test_hidden_characters_can_be_shown() -> None:
    assert safe_text("a\u202eb\x1b[0m", reveal=True) == "a<U+202E>b<U+001B>[0m"


def test_ordinary_text_of_any_language_stays_as_it_is() -> None:
    text = "Grüße, 你好, שלום,\n\tسلم 🎉"

    assert safe_text(text) == text


def test_a_line_folds_newlines_and_tabs() -> None:
    assert safe_line("a\r\n\tb\u2028c") == "a b c"


def test_a_text_at_its_bound_stays_whole_and_one_past_is_marked() -> None:
    assert safe_text("x" * 20, chars_max=20) == "x" * 20
    assert safe_text("x" * 21, chars_max=20) == "x" * (20 - len(CUT)) + CUT


def test_a_flood_of_hidden_characters_counts_as_cut() -> None:
    assert safe_line("\u200b" * 10_000 + "end", chars_max=20).endswith(CUT)
