"""Whose a grant is, told by what is known of it: what one is to the one before."""

from __future__ import annotations

import base64
import json

import pytest

from mcp_client.auth.grants import Grant, GrantChange, compare
from mcp_client.auth.requests import SUBJECT_CHARS_MAX, Token, read_token
from mcp_client.auth.store import Kept, Stored


def grant(*scopes: str, issuer: str = "https://as", subject: str = "", login: str = "l") -> Grant:
    return Grant(issuer=issuer, subject=subject, login=login, scopes=frozenset(scopes))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (None, grant("a"), GrantChange.GAINED),
        (grant("a"), None, GrantChange.LOST),
        (None, None, GrantChange.LOST),
        (grant("a"), grant("a"), GrantChange.SAME),
        (grant("a"), grant("a", "b"), GrantChange.WIDER),
        (grant("a", "b"), grant("a"), GrantChange.OTHER),
        (grant("a", "b"), grant("b", "c"), GrantChange.OTHER),
        (grant("a"), grant("a", issuer="https://other"), GrantChange.OTHER),
        (grant("a", subject="ann"), grant("a", subject="bob"), GrantChange.OTHER),
        (grant("a", subject="ann"), grant("a", "b", subject="bob"), GrantChange.OTHER),
        (grant("a", subject="ann"), grant("a"), GrantChange.OTHER),
        (grant("a"), grant("a", subject="ann"), GrantChange.OTHER),
        (grant("a"), grant("a", login="m"), GrantChange.OTHER),
        (grant("a", subject="ann"), grant("a", "b", subject="ann", login="m"), GrantChange.WIDER),
    ],
)
def test_one_grant_is_told_from_another(
    before: Grant | None, after: Grant | None, change: GrantChange
) -> None:
    assert compare(before, after) is change


def id_token(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("token", "subject"),
    [
        (id_token({"sub": "ann"}), "ann"),
        (id_token({"sub": "x" * SUBJECT_CHARS_MAX}), "x" * SUBJECT_CHARS_MAX),
        (id_token({"sub": "x" * (SUBJECT_CHARS_MAX + 1)}), ""),
        (id_token({"sub": 7}), ""),
        (id_token({}), ""),
        (id_token(["sub"]), ""),
        ("e30.!!!!.c2ln", ""),
        ("not a token", ""),
        ("", ""),
    ],
)
def test_a_subject_is_what_an_id_token_names_and_nothing_else(token: str, subject: str) -> None:
    answer = {"access_token": "t", "token_type": "Bearer", "id_token": token}

    assert read_token(answer, now=0, asked=()).subject == subject


def test_what_is_kept_says_whose_its_token_is_without_the_token() -> None:
    token = Token(access_token="sesame", scopes=("a",), subject="ann", login="l")
    stored = Stored().with_kept("https://as", Kept(token=token))

    assert stored.grant == grant("a", subject="ann")
    assert "sesame" not in repr(stored.grant)
    assert stored.without_tokens().grant is None
