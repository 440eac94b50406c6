"""Records of which most is known before: the same lines as without a form, and the same fields."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from orchestrator.audit.forms import FilledRecord, RecordForm
from orchestrator.audit.record import CHAIN_START, RECORD_BYTES_MAX, decode, encode

some_names = st.text(max_size=4).map("f{}".format)
some_texts = st.text(max_size=8)
some_fields = st.dictionaries(some_names, st.tuples(some_texts, st.booleans()), max_size=5)
some_constants = st.one_of(
    some_texts, st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
SENT = RecordForm("sent", {"call": None, "server": "files"})


def line_of(kind: str, fields: Mapping[str, object]) -> bytes:
    return encode(7, 12.5, kind, fields, CHAIN_START)[0]


@given(some_fields)
def test_a_filled_form_is_written_as_its_fields_would_be(
    fields: dict[str, tuple[str, bool]],
) -> None:
    form = RecordForm(
        "k", {name: text if known else None for name, (text, known) in fields.items()}
    )
    own = tuple(text for text, known in fields.values() if not known)
    plain = {name: text for name, (text, _) in fields.items()}

    filled = FilledRecord(form, own)

    assert dict(filled) == plain
    assert line_of("k", filled) == line_of("k", plain)


@given(st.dictionaries(some_names, some_constants, max_size=5))
def test_numbers_that_all_records_of_a_form_have_are_written_as_numbers(
    fields: dict[str, str | float],
) -> None:
    filled = FilledRecord(RecordForm("k", {"agent": None, **fields}), ("a",))

    assert line_of("k", filled) == line_of("k", {"agent": "a", **fields})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_form_has_no_number_that_json_does_not_have(number: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        RecordForm("k", {"spent": number})


def test_what_a_filled_form_holds_is_read_back() -> None:
    line = line_of("sent", FilledRecord(SENT, ('"}\n%s',)))

    assert dict(decode(line[:-1]).fields) == {"call": '"}\n%s', "server": "files"}


def test_under_another_kind_a_filled_form_is_its_fields() -> None:
    filled = FilledRecord(SENT, ("c1",))

    assert line_of("answered", filled) == line_of("answered", dict(filled))


@pytest.mark.parametrize("texts", [(), ("c1", "c2")])
def test_a_form_with_more_or_fewer_texts_than_it_has_room_for_is_not_written(
    texts: tuple[str, ...],
) -> None:
    with pytest.raises(ValueError, match="another number of texts"):
        line_of("sent", FilledRecord(SENT, texts))


def test_what_is_no_text_is_not_written_into_a_form() -> None:
    with pytest.raises(ValueError, match="not a text"):
        line_of("sent", FilledRecord(SENT, (b"c1",)))  # type: ignore[arg-type]  # what a caller may do


@pytest.mark.parametrize("name", ["seq", "time", "kind", "prev", "hash"])
def test_a_form_has_no_field_of_the_logs_own(name: str) -> None:
    with pytest.raises(ValueError, match="belong to the log"):
        RecordForm("sent", {name: None})


@pytest.mark.parametrize("kind", ["", "two words", 'a","b', "ä"])
def test_the_kind_of_a_form_is_one_plain_word(kind: str) -> None:
    with pytest.raises(ValueError, match="one plain word"):
        RecordForm(kind, {})


def test_the_longest_filled_form_is_written_and_one_byte_more_is_not() -> None:
    room = RECORD_BYTES_MAX - len(line_of("sent", FilledRecord(SENT, ("",))))

    longest = line_of("sent", FilledRecord(SENT, ("x" * room,)))

    assert len(decode(longest[:-1]).fields) == 2
    with pytest.raises(ValueError, match="would have"):
        line_of("sent", FilledRecord(SENT, ("x" * (room + 1),)))
