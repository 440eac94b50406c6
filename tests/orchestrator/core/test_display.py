from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from orchestrator.core.display import (
    CUT,
    safe_line,
    safe_text,
    whole_line,
    whole_text,
    wrapped,
)

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
    if unicodedata.category(char) in {"Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp"}:
        return True
    return ord(char) >= 0xE0000 or (char != " " and unicodedata.category(char) == "Zs")


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
        "a\u0600\u0605b",
        "a\U00013430\U0001345fb",
        "a\u3164\uffa0\u17b4\u034fb",
        "a\U0001d159\U00016fe4b",
        "a\ufdd0\U0003fffdb",
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


BLANKS = "\u00a0\u1680\u2000\u2003\u200a\u202f\u205f\u3000\u2800"


@pytest.mark.parametrize("blank", BLANKS)
def test_every_blank_is_a_plain_one_and_can_be_shown(blank: str) -> None:
    assert safe_text(f"a{blank}b") == "a b"
    assert safe_text(f"a{blank}b", reveal=True) == f"a<U+{ord(blank):04X}>b"


def test_nothing_of_a_format_category_comes_through() -> None:
    every = [chr(code) for code in range(0x110000)]
    unseen = [char for char in every if _is_obeyed_or_unseen(char)]

    assert safe_text("".join(unseen), chars_max=2_000_000).strip(" \n") == ""


def test_a_whole_line_hides_nothing_and_is_never_cut() -> None:
    text = "#" + "x" * 100_000 + "\n\tevil\u202e" + " " * 500 + "end"

    assert whole_line(text) == (
        "#" + "x" * 100_000 + "<U+000A><U+0009>evil<U+202E> <500 blanks> end"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"if a:\n{' ' * 32}b", f"if a:\n{' ' * 32}b"),
        (f"if a:\n{' ' * 33}b", "if a:\n <33 blanks> b"),
        (f"{' ' * 33}b", " <33 blanks> b"),
        (f"a{' ' * 8}b", f"a{' ' * 8}b"),
        (f"{' ' * 20}a{' ' * 9}b", f"{' ' * 20}a <9 blanks> b"),
    ],
)
def test_code_may_be_indented_and_gaps_are_counted(text: str, shown: str) -> None:
    assert whole_text(text) == shown


def test_a_text_that_is_all_hidden_is_shown_whole() -> None:
    assert whole_text("\U0010ffff" * 1_000) == "<U+10FFFF>" * 1_000


@given(st.text(max_size=200), st.integers(min_value=12, max_value=40))
def test_a_folded_line_holds_everything_and_its_pieces_are_indented(text: str, columns: int):
    line = whole_line(text)

    first, *others = wrapped(line, columns=columns, indent="    ")

    assert first + "".join(piece.removeprefix("    ") for piece in others) == line
    assert all(piece.startswith("    ") for piece in others)
    assert all(len(piece) <= columns or not piece[:-1].strip() for piece in (first, *others))


def test_a_long_line_is_folded_behind_a_word() -> None:
    assert wrapped("one two three four", columns=12, indent="  ") == ("one two ", "  three four")


def test_wide_letters_count_twice() -> None:
    assert wrapped("你" * 6, columns=8, indent="  ") == ("你" * 4, "  你你")
