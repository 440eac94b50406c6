"""Frames of an editor, however their bytes arrive; what cannot be read is answered, and the next is read."""

from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given, strategies as st

from mcp_client.protocol.events import RequestReceived
from orchestrator.surfaces.acp.errors import RequestError
from orchestrator.surfaces.acp.limits import AcpLimits
from orchestrator.surfaces.acp.wire import Incoming, Reply, UnsendableError, Wire

SMALL = AcpLimits(frame_bytes_max=200)
GOOD = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'


def answered(*data: bytes, limits: AcpLimits = SMALL) -> list[object]:
    """Return the codes of replies, and the methods of requests."""
    wire = Wire(limits)
    return [told(message) for piece in data for message in wire.receive(piece)]


def told(message: Incoming) -> object:
    if isinstance(message, Reply):
        reply = json.loads(message.frame)
        assert reply["id"] is None
        return reply["error"]["code"]
    return message.method if isinstance(message, RequestReceived) else message


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"hello\n", -32700),
        (b"\xff\xfe\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","id":2}\n', -32700),
        (b"[]\n", -32600),
        (b"[" + GOOD.strip() + b"]\n", -32600),
        (b"3\n", -32600),
        (b'{"id":1,"method":"a"}\n', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","params":[]}\n', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}\n', -32600),
    ],
)
def test_what_cannot_be_read_is_answered_and_the_next_line_is_read(line: bytes, code: int):
    assert answered(line + GOOD) == [code, "initialize"]


def test_blank_lines_are_nothing():
    assert answered(b"\n \r\n" + GOOD) == ["initialize"]


def test_a_frame_one_byte_too_large_is_answered_and_the_next_line_is_read():
    assert answered(b"x" * 201 + b"\n" + GOOD) == [-32600, "initialize"]


def test_a_frame_of_the_bound_is_read():
    assert answered(GOOD[:-3] + b" " * (200 - len(GOOD) + 1) + b"}}\n") == ["initialize"]


def test_a_large_frame_is_answered_once_while_it_goes_on():
    assert answered(*[b"x" * 90] * 5, b"x\n", GOOD) == [-32600, "initialize"]


@given(cuts=st.lists(st.integers(0, 360), max_size=8))
def test_it_makes_no_difference_how_the_bytes_are_cut(cuts: list[int]):
    data = GOOD + b"junk\n" + b"y" * 220 + b"\n" + GOOD
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    pieces = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]

    assert answered(*pieces) == ["initialize", -32700, -32600, "initialize"]


def test_an_answer_that_no_frame_can_hold_becomes_an_error():
    frame = Wire(SMALL).result(7, {"text": "x" * 200})

    reply = cast("dict[str, object]", json.loads(frame))
    assert reply["id"] == 7
    assert "error" in reply


def test_an_error_that_no_frame_can_hold_keeps_its_code():
    frame = Wire(SMALL).error(7, RequestError(-32602, "x" * 200))

    assert json.loads(frame)["error"]["code"] == -32602


def test_an_update_that_no_frame_can_hold_is_not_sent():
    with pytest.raises(UnsendableError):
        Wire(SMALL).notification("session/update", {"text": "x" * 200})


def test_each_frame_is_one_line_of_utf_8():
    frame = Wire(AcpLimits()).notification("a", {"text": "ä\nb"})

    assert (frame.count(b"\n"), frame[-1:]) == (1, b"\n")
    assert json.loads(frame)["params"] == {"text": "ä\nb"}
