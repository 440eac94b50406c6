from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from mcp_client.protocol.errors import FrameTooLargeError
from mcp_client.protocol.framing import LARGE_BYTES, LineFramer

RECORDED = (
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":{}}\n'
    b"\n"
    b'{"jsonrpc":"2.0","id":2,"result":{"text":"\xc3\xa9\xe2\x82\xac"}}\r\n'
    b"  \t \r\n"
    b"npm WARN something\n"
    b" {}\n"
    b'{"jsonrpc":"2.0","method":"notifications/progress"}\n'
)
FRAMES = [
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b'{"jsonrpc":"2.0","id":2,"result":{"text":"\xc3\xa9\xe2\x82\xac"}}',
    b"npm WARN something",
    b" {}",
    b'{"jsonrpc":"2.0","method":"notifications/progress"}',
]


def fed(pieces: list[bytes], frame_bytes_max: int = 1_000) -> list[bytes]:
    framer = LineFramer(frame_bytes_max)
    return [frame for piece in pieces for frame in framer.feed(piece)]


@pytest.mark.requirement("T-1")
def test_whole_lines_are_frames_without_their_newlines() -> None:
    assert fed([RECORDED]) == FRAMES


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 11, 64])
def test_a_stream_cut_into_equal_pieces_gives_the_same_frames(size: int) -> None:
    pieces = [RECORDED[at : at + size] for at in range(0, len(RECORDED), size)]

    assert fed(pieces) == FRAMES


@pytest.mark.parametrize("at", range(len(RECORDED) + 1))
def test_a_stream_cut_in_two_anywhere_gives_the_same_frames(at: int) -> None:
    assert fed([RECORDED[:at], RECORDED[at:]]) == FRAMES


@settings(deadline=None, max_examples=200)
@given(
    stream=st.lists(st.sampled_from([b"{", b"}", b"\n", b"\r", b" ", b"\xef\xbb\xbf", b"x"])).map(
        b"".join
    ),
    cuts=st.lists(st.integers(0, 60)),
)
def test_every_split_of_any_stream_gives_the_same_frames(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(edges)]

    assert fed(pieces) == fed([stream])


def test_a_line_without_its_newline_is_kept_and_counted() -> None:
    framer = LineFramer(10)

    assert [*framer.feed(b"abc")] == []
    assert framer.buffered == 3


def test_a_frame_of_exactly_the_bound_passes() -> None:
    assert fed([b"12345", b"67890\n"], frame_bytes_max=10) == [b"1234567890"]


@pytest.mark.requirement("S-29")
@pytest.mark.parametrize(
    "pieces",
    [[b"12345678901\n"], [b"12345678901"], [b"1234567890", b"1"], [b"1234567890", b"1\n"]],
)
def test_a_frame_one_byte_over_the_bound_is_refused_and_not_kept(pieces: list[bytes]) -> None:
    framer = LineFramer(10)
    *before, last = pieces
    for piece in before:
        framer.feed(piece)

    with pytest.raises(FrameTooLargeError):
        framer.feed(last)
    assert framer.buffered <= 10


def test_an_endless_line_is_refused_before_more_than_the_bound_is_kept() -> None:
    framer = LineFramer(100)
    for _ in range(3):
        framer.feed(b"x" * 30)

    with pytest.raises(FrameTooLargeError):
        framer.feed(b"x" * 30)
    assert framer.buffered == 90


@pytest.mark.parametrize("large", [b"x" * 11, b"x" * 11 + b"\n", b"x" * 11 + b"\nmore\n"])
def test_frames_that_came_whole_before_one_over_the_bound_are_not_lost_with_it(
    large: bytes,
) -> None:
    framer = LineFramer(10)
    framer.feed(b"fir")
    taken: list[bytes] = []

    with pytest.raises(FrameTooLargeError):
        taken.extend(frame for frame in framer.feed(b"st\nsecond\n\n" + large))
    assert taken == [b"first", b"second"]


def test_a_frame_of_the_largest_size_in_small_pieces_is_kept_once() -> None:
    size = 8 * 1024 * 1024
    framer = LineFramer(size)
    for _ in range(size // 128):
        framer.feed(b"x" * 128)

    assert framer.buffered == size
    assert [len(frame) for frame in framer.feed(b"\n")] == [size]


@settings(deadline=None, max_examples=100)
@given(
    sizes=st.lists(
        st.sampled_from([1, 2, LARGE_BYTES - 1, LARGE_BYTES, LARGE_BYTES + 1, 3 * LARGE_BYTES]),
        max_size=8,
    )
)
def test_small_and_large_pieces_of_a_line_are_joined_in_order(sizes: list[int]) -> None:
    pieces = [bytes([ord("a") + number]) * size for number, size in enumerate(sizes)]

    assert fed([*pieces, b"z\n", b"next\n"], 10**6) == [b"".join(pieces) + b"z", b"next"]


def test_a_line_that_comes_byte_by_byte_takes_little_more_than_its_length() -> None:
    framer = LineFramer(10**6)
    tracemalloc.start()
    try:
        for _ in range(100_000):
            framer.feed(b"x")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (framer.buffered, taken < 200_000) == (100_000, True)
