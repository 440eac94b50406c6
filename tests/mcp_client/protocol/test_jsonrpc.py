from __future__ import annotations

import json
from enum import IntEnum

import pytest
from hypothesis import given, settings, strategies as st

from mcp_client.protocol.errors import LocalProtocolError, RemoteProtocolError
from mcp_client.protocol.events import (
    ErrorReceived,
    NotificationReceived,
    PeerViolation,
    RequestReceived,
    ResponseReceived,
    Violation,
)
from mcp_client.protocol.jsonrpc import (
    DIGITS_MAX,
    ID_CHARS_MAX,
    NESTING_DEPTH_MAX,
    PIECE_BYTES,
    classify,
    decode,
    encode,
    read_message,
)
from mcp_client.protocol.limits import ClientLimits

LIMITS = ClientLimits()
SHALLOW = ClientLimits(nesting_depth_max=4)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # no surrogates: what a str may hold and UTF-8 may not
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=20,
)


def read(text: str | bytes) -> object:
    return read_message(text.encode() if isinstance(text, str) else text, LIMITS)


# --------------------------------------------------------------------------------------- decoding


@settings(deadline=None, max_examples=150)
@given(json_values)
def test_what_is_encoded_decodes_to_the_same_value(value: object) -> None:
    assert decode(encode(value), LIMITS) == value


@settings(deadline=None, max_examples=150)
@given(json_values, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_the_decoder_agrees_with_the_standard_library(
    value: object, indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert decode(text.encode(), LIMITS) == value


@pytest.mark.requirement("J-1")
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b" ",
        b"{",
        b"{}{}",
        b"{} x",
        b"nul",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a" 1}',
        b'{"a":1 "b":2}',
        b"{1:2}",
        b'{,"a":1}',
        b'{"a":}',
        b'{"a":1',
        b"[1,]",
        b'"unterminated',
        b'{"a":"\n"}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'{"a":NaN}',
        b"[Infinity]",
        b"-Infinity",
        b"1e999",
        b'{"a":-1e999}',
        b"9" * (DIGITS_MAX + 1),
    ],
)
def test_what_is_no_sound_json_text_is_refused(frame: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        decode(frame, LIMITS)


def test_a_refusal_quotes_nothing_of_the_frame() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode(b'{"secret": s3cr3t}', LIMITS)

    assert "s3cr3t" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', r'"\\ud800"', '"\U0001f600"', r'"a\u00e9"'])
def test_whole_pairs_and_other_escapes_are_no_lone_surrogates(text: str) -> None:
    assert decode(text.encode(), LIMITS) == json.loads(text)


@pytest.mark.parametrize(
    ("frame", "value"),
    [
        (rb'"cut \ud83d"', "cut \ufffd"),
        (rb'{"a":"\udc00"}', {"a": "\ufffd"}),
        (rb'{"\uD800":1}', {"\ufffd": 1}),
        (rb'["\ud800x\udc00"]', ["\ufffdx\ufffd"]),
        (rb'["\udc00\ud800", "\ud83d\ude00"]', ["\ufffd\ufffd", "\U0001f600"]),
    ],
)
def test_half_a_surrogate_pair_becomes_a_replacement_character(frame: bytes, value: object) -> None:
    assert decode(frame, LIMITS) == value


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc":"2.0","id":7,"result":{"a":NaN}}',
        b' {"jsonrpc": "2.0", "id": 7, "result": {"a": 1e999}}\r',
        b'{"id":7,"jsonrpc":"2.0","error":{"code":' + b"9" * (DIGITS_MAX + 1) + b"}}",
        b'{"result":{"a":"\xff"},"jsonrpc":"2.0","id":7}',
        b'{"error":{"code":NaN}, "jsonrpc": "2.0", "id": 7}\n',
        b'{"jsonrpc":"2.0","id":7,"result":{"cut":"off',
        b'{"jsonrpc":"2.0","id":7,"result":{"x":' + b"[" * 99 + b"]" * 99 + b"}}",
        b'{"jsonrpc":"2.0","id":7,"result":{},"result":{}}',
        b'{"jsonrpc":"2.0","id":7,"id":8,"result":{}}',
    ],
)
def test_an_answer_that_cannot_be_read_names_its_request(frame: bytes) -> None:
    message = read_message(frame, LIMITS)

    assert isinstance(message, PeerViolation)
    assert (message.kind, message.request_id) == (Violation.NOT_JSON, 7)


@pytest.mark.parametrize(
    "frame",
    [
        b'got {"jsonrpc":"2.0","id":7,"result":NaN}',
        b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":7.5,"result":NaN}',
        b'{"jsonrpc":"2.0","id":"7","result":NaN}',
        b'{"jsonrpc":"2.0","id":' + b"7" * 19 + b',"result":NaN}',
        b'{"params":NaN,"jsonrpc":"2.0","id":7}',
        b'{"result":NaN,"jsonrpc":"2.0","id":7} and more',
        b"{" + b" " * 70_000,
    ],
)
def test_what_is_no_answer_names_no_request(frame: bytes) -> None:
    message = read_message(frame, LIMITS)

    assert isinstance(message, PeerViolation)
    assert message.request_id is None


def test_an_integer_of_the_most_digits_is_read_exactly() -> None:
    assert decode(b"9" * DIGITS_MAX, LIMITS) == 10**DIGITS_MAX - 1


@pytest.mark.parametrize(
    "frame",
    [
        b'{"id":1,"id":2}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"id":2}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"result":{}}',
        b'{"result":{},"jsonrpc":"2.0","id":1,"id":2}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"\\u0069d":2}',
    ],
)
def test_a_member_of_the_envelope_given_twice_is_refused(frame: bytes) -> None:
    message = read_message(frame, LIMITS)

    assert isinstance(message, PeerViolation)
    assert message.kind is Violation.NOT_JSON


@pytest.mark.parametrize(
    "frame",
    [
        b"[[[[]]]]",
        b'{"a":{"b":{"c":{}}}}',
        b'[[[["]]]]][[[[["]]]]',
        rb'{"a":"\"[[[[[[[[","b":[{"c":[]}]}',
        rb'["\\",[[[{}]]]]'.replace(b"[[[{}]]]", b"[[{}]]"),
        b'["{[{[{[{[{["]',
    ],
)
def test_a_frame_of_the_greatest_depth_is_read(frame: bytes) -> None:
    assert decode(frame, SHALLOW) == json.loads(frame)


@pytest.mark.parametrize(
    "frame",
    [
        b"[[[[[]]]]]",
        b"[[[[1,[]]]]]",
        b"[[],[],[[[[]]]]]",
        b'{"a":{"b":{"c":{"d":{}}}}}',
        b"[{}," + b'[{"a":[{"b":1}]}]]'.replace(b"1", b"[]"),
        rb'["\\",[[[[]]]]]',
        rb'["\"",[[[[]]]]]',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_a_frame_one_deeper_than_the_bound_is_refused_before_it_is_decoded(frame: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="deep"):
        decode(frame, SHALLOW)


@settings(deadline=None, max_examples=200)
@given(
    st.recursive(
        st.text(st.sampled_from('[]{}"\\u,:a'), max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.just("k"), inner),
        max_leaves=12,
    )
)
def test_depth_is_counted_as_a_slow_walk_counts_it(value: object) -> None:
    frame = json.dumps(value).encode()
    depth = depth_of(value)

    for bound in (depth, depth - 1):
        accepted = not isinstance(
            read_message(b"[" + frame + b"]", ClientLimits(nesting_depth_max=bound)), PeerViolation
        )
        assert accepted == (depth + 1 <= bound)


@pytest.mark.requirement("S-29")
@pytest.mark.parametrize("value", [[0, 0, 0], {"a": 1, "b": 2}, [{}, []], [["x", "y"]]])
def test_a_large_frame_with_one_mark_over_the_bound_is_refused(value: object) -> None:
    frame = json.dumps(value, separators=(",", ":")).encode()
    marks = sum(frame.count(mark) for mark in (b"{", b"}", b"[", b"]", b",", b":"))
    padded = b" " * marks + frame

    assert decode(padded, ClientLimits(frame_marks_max=marks)) == value
    with pytest.raises(RemoteProtocolError, match="too many values"):
        decode(padded, ClientLimits(frame_marks_max=marks - 1))


@pytest.mark.parametrize(
    "text", ["[{,:" * 40_000, '",":"' * 40_000, "\\\\[" * 40_000, '"[' * 70_000]
)
def test_marks_within_texts_are_no_values(text: str) -> None:
    assert decode(json.dumps([text, text]).encode(), ClientLimits(frame_marks_max=3)) == [
        text,
        text,
    ]


def test_a_page_of_ten_thousand_small_tools_is_read() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    tools = [
        {"name": f"tool-{n}", "description": "Does it.", "inputSchema": schema, "title": "Tool"}
        for n in range(10_000)
    ]
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).encode()

    message = read_message(frame, LIMITS)

    assert isinstance(message, ResponseReceived)
    assert message.result == {"tools": tools}


@pytest.mark.parametrize("blanks", range(PIECE_BYTES - 12, PIECE_BYTES + 3))
@pytest.mark.parametrize("text", ['\\\\[\\\\"[\\\\', '\\"[{\\"', "\\\\" * 20 + '"[', "[" * 30])
def test_texts_that_lie_across_two_pieces_are_texts(blanks: int, text: str) -> None:
    frame = b" " * blanks + json.dumps([text, [text]]).encode()
    assert decode(frame, ClientLimits(frame_marks_max=5, nesting_depth_max=2)) == [text, [text]]
    with pytest.raises(RemoteProtocolError, match="too many values"):
        decode(frame, ClientLimits(frame_marks_max=4))


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((depth_of(item) for item in value.values()), default=0)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list):
        return 1 + max((depth_of(item) for item in value), default=0)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return 0


@pytest.mark.requirement("S-29")
def test_a_frame_over_the_bound_of_bytes_is_refused() -> None:
    limits = ClientLimits(frame_bytes_max=10)
    assert decode(b'"12345678"', limits) == "12345678"

    with pytest.raises(RemoteProtocolError):
        decode(b'"123456789"', limits)


# ------------------------------------------------------------------------------------ classifying

ERROR = {"code": -32000, "message": "no"}


@pytest.mark.requirement("J-3")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"jsonrpc":"2.0","id":7,"result":{"a":1}}', ResponseReceived(7, {"a": 1})),
        ('{"jsonrpc": "2.0", "id": 7, "result": [1]}', ResponseReceived(7, [1])),
        ('{"result":null,"jsonrpc":"2.0","id":7}', ResponseReceived(7, None)),
        ('{"id":"x","jsonrpc":"2.0","result":true}', ResponseReceived("x", True)),
        ('{"jsonrpc":"2.0","id":-7,"result":{}}', ResponseReceived(-7, {})),
        ('{"jsonrpc":"2.0","id":7,"result":{},"extra":1}', ResponseReceived(7, {})),
        (
            '{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":[1]}}',
            ErrorReceived(request_id=7, code=-32000, message="no", data=[1]),
        ),
        (
            '{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
            ErrorReceived(request_id=None, code=-32700, message="no"),
        ),
        (
            '{"jsonrpc":"2.0","id":"a","method":"ping"}',
            RequestReceived(request_id="a", method="ping", params={}),
        ),
        (
            '{"jsonrpc":"2.0","method":"n","params":{"a":1}}',
            NotificationReceived("n", {"a": 1}),
        ),
    ],
)
def test_a_message_is_what_its_members_make_it(text: str, expected: object) -> None:
    assert read(text) == expected


@pytest.mark.requirement("J-1")
@pytest.mark.parametrize("bad_id", ["true", "false", "1.0", "1.5", "null", "{}", "[]", "1e0"])
@pytest.mark.parametrize(
    "rest", ['"result":{}', '"error":{"code":1,"message":"m"}', '"method":"ping"']
)
def test_an_id_that_is_neither_integer_nor_string_is_malformed(bad_id: str, rest: str) -> None:
    message = read(f'{{"jsonrpc":"2.0","id":{bad_id},{rest}}}')

    assert isinstance(message, PeerViolation)
    assert message.kind is Violation.MALFORMED
    assert message.request_id is None


def test_a_response_without_an_id_is_malformed() -> None:
    assert isinstance(read('{"jsonrpc":"2.0","result":{}}'), PeerViolation)


def test_an_id_one_character_over_the_bound_is_malformed() -> None:
    longest = "i" * ID_CHARS_MAX
    message = {"jsonrpc": "2.0", "method": "ping"}

    assert isinstance(classify({**message, "id": longest}), RequestReceived)
    assert isinstance(classify({**message, "id": longest + "i"}), PeerViolation)


@pytest.mark.requirement("J-3")
@pytest.mark.parametrize(
    "members",
    [
        {"id": 3},
        {"id": 3, "result": {}, "error": ERROR},
        {"id": 3, "error": "no"},
        {"id": 3, "error": {"code": "1", "message": "no"}},
        {"id": 3, "error": {"code": True, "message": "no"}},
        {"id": 3, "error": {"code": 1.0, "message": "no"}},
        {"id": 3, "error": {"code": 1}},
    ],
)
def test_a_malformed_answer_names_the_one_request_that_it_fails(
    members: dict[str, object],
) -> None:
    message = classify({"jsonrpc": "2.0", **members})

    assert isinstance(message, PeerViolation)
    assert message.request_id == 3


@pytest.mark.parametrize(
    "value",
    [
        None,
        1,
        "text",
        {},
        {"jsonrpc": "1.0", "method": "n"},
        {"jsonrpc": 2.0, "method": "n"},
        {"jsonrpc": "2.0", "method": 1, "id": 3},
        {"jsonrpc": "2.0", "method": "m", "id": 3, "result": {}},
        {"jsonrpc": "2.0", "method": "m", "id": 3, "error": ERROR},
        {"jsonrpc": "2.0", "method": "m", "params": [1]},
        {"jsonrpc": "2.0", "method": "m", "params": None},
    ],
)
def test_what_is_no_message_is_a_violation_of_nobodys_request(value: object) -> None:
    message = classify(value)

    assert isinstance(message, PeerViolation)
    assert message.kind is Violation.MALFORMED
    assert message.request_id is None


def test_an_array_is_handed_on_for_whoever_knows_the_version() -> None:
    assert read("[1,2]") == [1, 2]


def test_noise_is_a_violation_that_quotes_nothing() -> None:
    message = read("npm WARN deprecated s3cr3t")

    assert isinstance(message, PeerViolation)
    assert message.kind is Violation.NOT_JSON
    assert "s3cr3t" not in message.detail


@settings(deadline=None, max_examples=100)
@given(json_values, st.integers(0, 10**17), st.sampled_from(["first", "last", "spaced", "other"]))
def test_a_result_reads_the_same_in_every_order_of_members(
    result: object, request_id: int, order: str
) -> None:
    envelope = {"jsonrpc": "2.0", "id": request_id, "result": result}
    orders = {
        "first": ("jsonrpc", "id", "result"),
        "spaced": ("jsonrpc", "id", "result"),
        "last": ("result", "jsonrpc", "id"),
        "other": ("id", "result", "jsonrpc"),
    }
    text = json.dumps(
        {name: envelope[name] for name in orders[order]},
        separators=(", ", ": ") if order == "spaced" else (",", ":"),
    )

    assert read(text) == ResponseReceived(request_id, result)


# --------------------------------------------------------------------------------------- encoding


def test_encoding_is_compact_sorted_and_utf8() -> None:
    assert (
        encode({"b": [1, 2.5, None, True], "a": "é€"})
        == '{"a":"é€","b":[1,2.5,null,true]}'.encode()
    )


def test_encoding_does_not_depend_on_the_order_of_insertion() -> None:
    assert encode({"a": 1, "b": {"c": 2, "d": 3}}) == encode({"b": {"d": 3, "c": 2}, "a": 1})


class _Level(IntEnum):
    HIGH = 3


def test_values_derived_from_plain_ones_are_written_as_these() -> None:
    assert encode([_Level.HIGH, (1, 2)]) == b"[3,[1,2]]"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({1: "a"}, "key is of type int"),
        ({None: "a"}, "key is of type NoneType"),
        ({"a": [{True: 1}]}, "key is of type bool"),
        (float("nan"), "not finite"),
        ([float("inf")], "not finite"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({"a": {1, 2}}, "type set"),
        (b"bytes", "type bytes"),
        (object(), "type object"),
        (10**DIGITS_MAX, "too many digits"),
        ({"a": 10**DIGITS_MAX}, "too many digits"),
        ([-(10 ** (DIGITS_MAX - 1))], "too many digits"),
        ({"a": {"b": [object()]}}, "type object"),
    ],
)
def test_what_json_cannot_say_is_refused_by_name(value: object, says: str) -> None:
    with pytest.raises(LocalProtocolError, match=says):
        encode(value)


def test_the_longest_integers_that_are_written_can_be_read() -> None:
    longest = [10**DIGITS_MAX - 1, 1 - 10 ** (DIGITS_MAX - 1)]

    assert decode(encode(longest), LIMITS) == longest


def nested(depth: int) -> object:
    value: object = "core"
    for _ in range(depth):
        value = [value]
    return value


def test_a_value_one_deeper_than_the_bound_is_refused() -> None:
    assert encode(nested(5), depth_max=5) == b'[[[[["core"]]]]]'

    with pytest.raises(LocalProtocolError, match="nested"):
        encode(nested(6), depth_max=5)


def test_a_value_that_contains_itself_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)

    with pytest.raises(LocalProtocolError, match="nested"):
        encode(cycle)


def test_the_default_depth_is_that_of_the_limits() -> None:
    assert ClientLimits().nesting_depth_max == NESTING_DEPTH_MAX
