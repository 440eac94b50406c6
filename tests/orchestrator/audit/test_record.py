from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import assume, given, strategies as st

from orchestrator.audit.record import (
    CHAIN_START,
    RECORD_BYTES_MAX,
    BadRecordError,
    decode,
    encode,
)

names = st.text(max_size=8).filter(lambda name: name not in {"seq", "time", "kind", "prev", "hash"})
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
field_values = values | st.lists(values, max_size=2) | st.dictionaries(names, values, max_size=2)


@given(st.dictionaries(names, field_values.filter(lambda value: value not in (1e999, -1e999))))
def test_what_was_written_is_read_back(fields: dict[str, object]) -> None:
    try:
        line, digest = encode(3, 12.5, "sent", fields, CHAIN_START)
    except ValueError:  # an infinity inside a list
        return

    record = decode(line[:-1])

    assert dict(record.fields) == fields
    assert (record.seq, record.time, record.kind) == (3, 12.5, "sent")
    assert (record.prev, record.hash) == (CHAIN_START, digest)


@given(st.dictionaries(names, st.text()))
def test_a_line_is_printable_ascii_and_only_one(fields: dict[str, object]) -> None:
    line, _ = encode(0, 0, "sent", fields, CHAIN_START)

    assert line.endswith(b"\n")
    assert all(0x20 <= byte < 0x80 for byte in line[:-1])


@pytest.mark.parametrize("name", ["seq", "time", "kind", "prev", "hash"])
def test_a_field_cannot_take_the_place_of_the_logs_own(name: str) -> None:
    with pytest.raises(ValueError, match="belong to the log"):
        encode(0, 0, "sent", {name: 1}, CHAIN_START)


@pytest.mark.parametrize("kind", ["", 'a","seq":"9', "two words", "é"])
def test_a_kind_is_one_plain_word(kind: str) -> None:
    with pytest.raises(ValueError, match="plain word"):
        encode(0, 0, kind, {}, CHAIN_START)


@pytest.mark.parametrize("value", [object(), float("nan"), float("inf"), {1}, b"x"])
def test_a_value_that_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r".+"):
        encode(0, 0, "sent", {"a": value}, CHAIN_START)


def test_the_longest_record_is_read_back_and_one_byte_more_is_not_written() -> None:
    empty = len(encode(0, 0, "sent", {"a": ""}, CHAIN_START)[0]) - 1
    room = RECORD_BYTES_MAX - 1 - empty
    line, _ = encode(0, 0, "sent", {"a": "x" * room}, CHAIN_START)

    assert decode(line[:-1]).fields["a"] == "x" * room
    with pytest.raises(ValueError, match="would have"):
        encode(0, 0, "sent", {"a": "x" * (room + 1)}, CHAIN_START)


def test_a_record_too_deep_to_be_read_back_is_not_written() -> None:
    def nested(depth: int) -> object:
        return [nested(depth - 1)] if depth else 1

    line, _ = encode(0, 0, "sent", {"a": nested(31)}, CHAIN_START)

    assert decode(line[:-1]).fields["a"] == nested(31)
    for depth in (32, 100_000):
        value: object = 1
        for _ in range(depth):
            value = [value]
        with pytest.raises(ValueError, match=r".+"):
            encode(0, 0, "sent", {"a": value}, CHAIN_START)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"not json",
        b'{"seq":0}',
        b"\xff",
        b"x" * RECORD_BYTES_MAX,
        b'{"seq":0,"time":0,"kind":"a","prev":"b","hash":"c"}',
    ],
)
def test_what_is_no_record_is_refused_without_being_shown(line: bytes) -> None:
    with pytest.raises(BadRecordError) as caught:
        decode(line)

    assert "not json" not in str(caught.value)


def _by_the_book(kind: str, fields: dict[str, object]) -> bytes:
    """The line as the format says it, written by the standard library in one go."""
    members = {"seq": 7, "time": 12.5, "kind": kind, **fields, "prev": CHAIN_START}
    body = json.dumps(members, separators=(",", ":")).replace("12.5", "12.500000").encode()[:-1]
    return body + b',"hash":"%b"}\n' % hashlib.sha256(body).hexdigest().encode()


some_names = st.sampled_from(["a", "b", "100%s"])
some_values = st.text(max_size=3) | st.integers() | st.none() | st.lists(st.booleans())


@given(st.lists(st.dictionaries(some_names, some_values, min_size=1, max_size=2), max_size=4))
def test_a_record_does_not_depend_on_the_records_of_its_kind_before_it(
    records: list[dict[str, object]],
) -> None:
    kind = f"k{len(records)}"
    for fields in records:
        assume("12.5" not in str(fields))

        line, _ = encode(7, 12.5, kind, fields, CHAIN_START)

        assert line == _by_the_book(kind, fields)


def test_what_the_first_record_of_a_kind_may_not_hold_the_second_may_not_either() -> None:
    encode(0, 0, "twice", {"a": "x"}, CHAIN_START)

    for fields in ({"seq": "x"}, {"hash": "x"}, {"a": b"x"}, {"a": float("nan")}):
        with pytest.raises(ValueError, match=r".+"):
            encode(0, 0, "twice", fields, CHAIN_START)
    with pytest.raises(ValueError, match="would have"):
        encode(0, 0, "twice", {"a": "x" * RECORD_BYTES_MAX}, CHAIN_START)


def test_records_of_one_kind_with_other_fields_are_each_written_as_they_are() -> None:
    first, _ = encode(1, 1.0, "some_kind", {"a": "1"}, "0" * 64)
    second, _ = encode(2, 1.0, "some_kind", {"a": "1", "b": "2"}, "0" * 64)
    again, _ = encode(3, 1.0, "some_kind", {"a": "3"}, "0" * 64)

    assert [decode(line[:-1]).fields for line in (first, second, again)] == [
        {"a": "1"},
        {"a": "1", "b": "2"},
        {"a": "3"},
    ]
