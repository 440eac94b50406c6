"""Plain values have the form of RFC 8785 whoever writes them; all others are left to its writer."""

from __future__ import annotations

import pytest
import rfc8785
from hypothesis import given, strategies as st

from orchestrator.core.documents import canonical_bytes
from orchestrator.core.plain import plain_bytes

some_names = st.text(max_size=3) | st.sampled_from(["a", "B", "_", "\x7f", "\U0001f600", "\ufb33"])
some_leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53) - 2, 2**53 + 2)
    | st.floats()
    | st.text(st.characters(), max_size=4)
)
some_values = st.recursive(
    some_leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(some_names, inner, max_size=3),
    max_leaves=8,
)


def written_by_the_book(value: object) -> bytes | None:
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # any JSON value
    except ValueError:
        return None


@given(some_values)
def test_every_value_has_the_form_that_the_book_gives_it(value: object) -> None:
    try:
        found = canonical_bytes(value)
    except ValueError:
        found = None

    assert found == written_by_the_book(value)


@given(some_values)
def test_a_plain_form_is_the_form(value: object) -> None:
    try:
        plain = plain_bytes(value)
    except ValueError:
        plain = None

    assert plain in (None, written_by_the_book(value))


@pytest.mark.parametrize(
    "value",
    [
        {"type": "object", "properties": {"b": {"enum": [1, None, True]}, "a": {}}},
        {"description": '\x00\x1f\x7f\b\t\n\f\r"\\/ é \u2028 \U0001f600'},
        [2**53 - 1, 1 - 2**53, 0],
        "text",
    ],
)
def test_definitions_as_they_are_written_are_plain(value: object) -> None:
    assert plain_bytes(value) == rfc8785.dumps(value)  # type: ignore[arg-type]  # any JSON value


@pytest.mark.parametrize(
    "value", [1.0, 2**53, -(2**53), {"é": 1}, {1: 2}, (1,), b"", [[{"a": 1e21}]], object()]
)
def test_what_may_be_written_otherwise_is_not_plain(value: object) -> None:
    assert plain_bytes(value) is None


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_what_is_nested_deeper_than_the_bound_is_not_plain() -> None:
    assert plain_bytes(nested(63)) is not None
    assert plain_bytes(nested(64)) is None


def test_a_lone_surrogate_has_no_form() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        plain_bytes(["\ud800"])
