from __future__ import annotations

from itertools import pairwise

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given, settings, strategies as st

from mcp_client.protocol.errors import FrameTooLargeError
from mcp_client.protocol.http.sse import (
    BLOCK_LINES_MAX,
    ID_BYTES_MAX,
    SseBlocks,
    SseDecoder,
    SseEvent,
)

RECORDED = (
    b"\xef\xbb\xbf: welcome\r\n"
    b"id: 1\r\ndata: \r\n\r\n"
    b'event: message\rdata: {"text":"\xc3\xa9\xe2\x80\xa8"}\r\r'
    b"retry: 500\n\n"
    b": ping\n\n\n"
    b"data:one\ndata: two\nid\nunknown: x\n\n"
    b"data: cut off\n"
)
EVENTS = [
    SseEvent(b"", id="1"),
    SseEvent(b'{"text":"\xc3\xa9\xe2\x80\xa8"}'),
    SseEvent(b"", retry=500),
    SseEvent(b"one\ntwo", id=""),
]


def fed(pieces: list[bytes], bound: int = 1_000) -> list[SseEvent]:
    decoder = SseDecoder(bound)
    return [event for piece in pieces for event in decoder.feed(piece)]


@pytest.mark.requirement("H-11")
@pytest.mark.requirement("N-9")
def test_comments_are_nothing_and_an_event_may_have_no_data() -> None:
    assert fed([RECORDED]) == EVENTS


@pytest.mark.parametrize("at", range(len(RECORDED) + 1))
def test_a_stream_cut_in_two_anywhere_gives_the_same_events(at: int) -> None:
    assert fed([RECORDED[:at], RECORDED[at:]]) == EVENTS


def test_a_stream_that_comes_byte_by_byte_gives_the_same_events() -> None:
    assert fed([bytes([byte]) for byte in RECORDED]) == EVENTS


PIECES = st.sampled_from(
    [
        b"data",
        b"event",
        b"id",
        b"retry",
        b":",
        b" ",
        b"\n",
        b"\r",
        b"\n\n",
        b"\r\n",
        b"7",
        b"\xc3\xa9",
    ]
)


@settings(deadline=None, max_examples=300)
@given(
    stream=st.lists(PIECES, max_size=60).map(b"".join),
    cuts=st.lists(st.integers(0, 200), max_size=9),
)
def test_every_split_of_any_stream_gives_the_same_events(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    assert fed([stream[a:b] for a, b in pairwise(edges)]) == fed([stream])


@settings(deadline=None, max_examples=300)
@given(stream=st.lists(PIECES, max_size=60).map(b"".join))
def test_the_data_of_any_stream_is_what_httpx_sse_finds(stream: bytes) -> None:
    response = httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=stream + b"\n\n"
    )
    # that library repeats the last id with each event, and makes events of it alone
    theirs = [(each.event, each.data) for each in EventSource(response).iter_sse()]
    ours = [(each.kind, each.data.decode()) for each in fed([stream + b"\n\n"])]

    assert [each for each in ours if each[1]] == [each for each in theirs if each[1]]


def test_an_event_of_as_many_bytes_as_the_bound_is_taken() -> None:
    assert fed([b"data: " + b"x" * 100 + b"\n\n"], 100) == [SseEvent(b"x" * 100)]


@pytest.mark.requirement("S-29")
@pytest.mark.parametrize(
    "stream",
    [
        b"data: " + b"x" * 101 + b"\n\n",
        b"data: " + b"x" * 50 + b"\ndata: " + b"x" * 50 + b"\n\n",
        b"event: " + b"x" * 101 + b"\n\n",
        b"x" * 165,
        b":" + b"x" * 164,
    ],
    ids=[
        "a line",
        "its lines together",
        "a type",
        "a line without an end",
        "a comment without one",
    ],
)
@pytest.mark.parametrize("size", [1, 1_000])
def test_one_byte_past_the_bound_ends_the_stream(stream: bytes, size: int) -> None:
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]

    with pytest.raises(FrameTooLargeError):
        fed(pieces, 100)


def test_what_came_before_an_event_past_the_bound_is_yielded() -> None:
    decoder = SseDecoder(10)
    events = decoder.feed(b"data: one\n\ndata: " + b"x" * 11 + b"\n\n")

    assert next(events) == SseEvent(b"one")


@pytest.mark.parametrize(
    "given_id",
    ["x" * (ID_BYTES_MAX + 1), "\u00e9", "a\tb", "a\x1bb"],
    ids=["too long", "not ASCII", "a tab", "a control character"],
)
def test_an_id_that_no_header_can_carry_cannot_be_resumed_from(given_id: str) -> None:
    assert fed([b"id: " + given_id.encode() + b"\n\n"], 2_000) == [SseEvent(b"", id="")]


def test_an_id_with_a_null_character_is_ignored() -> None:
    assert fed([b"id: a\0b\n\n"]) == []


@pytest.mark.parametrize("time", [b"-1", b"1.5", b"x", b"", b"1234567890", b"\xd9\xa1"])
def test_a_time_that_is_no_number_of_milliseconds_is_ignored(time: bytes) -> None:
    assert fed([b"retry: " + time + b"\ndata: x\n\n"]) == [SseEvent(b"x")]


def test_a_byte_order_mark_is_taken_off_the_first_line_only() -> None:
    assert fed([b"\n\xef\xbb\xbfdata: x\n\n"]) == []


def test_a_stream_knows_whether_it_stands_within_an_event() -> None:
    decoder = SseDecoder(100)
    states: list[bool] = []
    for piece in (b"data: x\n\n", b"da", b"ta: x\n", b"\n"):
        list(decoder.feed(piece))
        states.append(decoder.mid_event)

    assert states == [False, True, True, False]


def blocks(pieces: list[bytes], bound: int = 1_000) -> list[bytes]:
    splitter = SseBlocks(bound)
    return [bytes(block) for piece in pieces for block in splitter.feed(piece)]


@pytest.mark.parametrize("at", range(len(RECORDED) + 1))
def test_a_stream_cut_in_two_anywhere_gives_the_same_blocks(at: int) -> None:
    assert blocks([RECORDED[:at], RECORDED[at:]]) == blocks([RECORDED])


@settings(deadline=None, max_examples=300)
@given(stream=st.lists(PIECES, max_size=60).map(b"".join))
def test_the_events_of_the_blocks_are_those_of_the_stream(stream: bytes) -> None:
    assert fed(blocks([stream])) == fed([stream])


@pytest.mark.requirement("S-29")
@pytest.mark.parametrize("stream", [b"x" * 165, b"x" * 50 + b"\n" + b"x" * 120 + b"\n"])
def test_one_byte_past_the_bound_ends_the_blocks(stream: bytes) -> None:
    with pytest.raises(FrameTooLargeError):
        blocks([stream], 100)


@pytest.mark.requirement("S-29")
def test_a_block_of_one_line_over_the_bound_ends_the_blocks() -> None:
    most = b"data:\n" * BLOCK_LINES_MAX

    assert len(blocks([most + b"\n", most + b"\n"], 1 << 20)) == 2
    with pytest.raises(FrameTooLargeError, match="lines"):
        blocks([most + b"data:\n\n"], 1 << 20)


@pytest.mark.parametrize("field", [b": ", b"nothing: ", b"\xef\xbb\xbf: "])
@pytest.mark.parametrize("size", [10, 1_000])
def test_a_long_line_of_which_nothing_is_kept_ends_the_stream_however_it_is_cut(
    field: bytes, size: int
) -> None:
    line = field + b"x" * (164 - len(field))
    for stream, fits in ((line + b"\n\n", True), (line + b"x\n\n", False)):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        for read in (fed, blocks):
            if fits:
                read(pieces, 100)
            else:
                with pytest.raises(FrameTooLargeError):
                    read(pieces, 100)
