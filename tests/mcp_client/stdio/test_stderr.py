"""The tail of stderr: what is kept, what is hidden, what is replaced."""

from __future__ import annotations

import pytest

from mcp_client.transports.stdio.stderr import StderrTail

SECRET = "s3cr3t-value"


def shown(*pieces: bytes, bytes_max: int = 100, secrets: tuple[str, ...] = ()) -> str:
    tail = StderrTail(bytes_max, secrets)
    for piece in pieces:
        tail.add(piece)
    return tail.text


def test_a_declared_value_is_hidden_wherever_it_stands() -> None:
    text = shown(b"with s3cr3t-value and s3cr3t-value.", secrets=(SECRET,))
    assert text == "with [hidden] and [hidden]."


@pytest.mark.parametrize("at", range(1, len(SECRET)))
def test_a_declared_value_is_hidden_however_it_is_written(at: int) -> None:
    assert shown(SECRET[:at].encode(), SECRET[at:].encode(), secrets=(SECRET,)) == "[hidden]"


@pytest.mark.parametrize("after", range(30))
def test_a_declared_value_that_the_bound_cuts_in_two_leaves_no_piece_of_itself(after: int) -> None:
    text = shown(
        b"b" * 50, SECRET.encode(), b"a" * after, bytes_max=16, secrets=(SECRET, "other-value")
    )
    assert set(text.replace("[hidden]", "")) <= {"a", "b"}
    assert text.endswith("a" * min(after, 16))


def test_of_two_values_the_longer_is_hidden_first() -> None:
    assert shown(b"password-2!", secrets=("password", "password-2")) == "[hidden]!"


def test_a_value_of_less_than_eight_characters_is_no_secret() -> None:
    assert shown(b"a debug1 message, debug12!", secrets=("debug1", "debug12!")) == (
        "a debug1 message, [hidden]"
    )


def test_a_value_that_is_no_text_is_hidden_too() -> None:
    assert shown(b"<\xff\xfe-secret>", secrets=("\udcff\udcfe-secret",)) == "<[hidden]>"


def test_what_is_no_utf_8_is_replaced_and_a_letter_cut_in_two_as_well() -> None:
    # the bound cuts the first letter
    assert shown("éa".encode(), b"\xff\xc3", bytes_max=4) == "�a��"


def test_a_bound_of_nothing_shows_nothing_whatever_is_hidden() -> None:
    assert shown(b"x" * 50, secrets=(SECRET,), bytes_max=0) == ""
