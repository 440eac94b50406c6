from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from mcp_client.protocol.http.challenges import (
    CHALLENGES_MAX,
    HEADER_CHARS_MAX,
    PARAMETERS_MAX,
    Challenge,
    read_challenges,
)


def read(*values: str) -> list[tuple[str, dict[str, str]]]:
    return [(each.scheme, dict(each.parameters)) for each in read_challenges(values)]


@pytest.mark.requirement("H-13")
def test_the_parameters_of_a_challenge_are_read_quoted_and_plain() -> None:
    value = (
        'Bearer realm="a, \\"b\\"" , error=invalid_token,Resource_Metadata="https://a.example/x"'
    )

    assert read(value) == [
        (
            "bearer",
            {
                "realm": 'a, "b"',
                "error": "invalid_token",
                "resource_metadata": "https://a.example/x",
            },
        )
    ]


def test_several_challenges_may_stand_in_one_header_or_in_several() -> None:
    assert read(
        'Basic realm="x", Bearer scope="a"', "Negotiate", "NTLM dGVzdA==, DPoP algs=ES256"
    ) == [
        ("basic", {"realm": "x"}),
        ("bearer", {"scope": "a"}),
        ("negotiate", {}),
        ("ntlm", {}),
        ("dpop", {"algs": "ES256"}),
    ]


def test_the_first_of_two_parameters_of_one_name_counts() -> None:
    assert read('Bearer scope="a", SCOPE="b"') == [("bearer", {"scope": "a"})]


@pytest.mark.parametrize("value", ["", ",,", "=", '"x"', 'Bearer realm="open', "\u00e9"])
def test_what_the_grammar_does_not_allow_ends_the_reading(value: str) -> None:
    assert read(value, "Basic")[-1:] == [("basic", {})]


def test_challenges_and_their_parameters_are_bounded() -> None:
    many = ", ".join(f"p{number}=v" for number in range(PARAMETERS_MAX + 1))

    assert len(read(", ".join(["Basic"] * (CHALLENGES_MAX + 1)))) == CHALLENGES_MAX
    assert len(read(f"Bearer {many}")[0][1]) == PARAMETERS_MAX
    assert read("Bearer " + "x" * HEADER_CHARS_MAX) == []


@given(st.lists(st.text(alphabet='Bb=,"\\ \tx', max_size=40), max_size=4))
def test_nothing_in_a_header_raises(values: list[str]) -> None:
    assert all(isinstance(each, Challenge) for each in read_challenges(values))
