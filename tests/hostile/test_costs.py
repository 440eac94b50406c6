"""What a hostile frame costs a client, measured in a process of its own: memory, and pauses of the loop."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from tests.hostile.raw_server import ok, raw_server
from tests.hostile.test_hostile_http import HEAD, Message, OldServer, Stream

pytestmark = pytest.mark.subprocess

MEASURING = Path(__file__).with_name("measuring.py")
BOMBS = Path(__file__).parents[1] / "servers" / "bombs.py"
ROOT = Path(__file__).parents[2]
RISE_MIB_MAX = 32
PAUSE_MS_MAX = 100
SLOW = 2.5
"""How much slower a machine under test may be than one that does nothing else."""
FULL_RISE_MIB_MAX = 54
"""Of a frame of 8 MiB that is read: it, its text, and its values, each with Python's own overhead."""


@pytest.fixture
def anyio_backend() -> str:
    """The client under measurement runs in a process of its own."""
    return "asyncio"


async def cost(*arguments: str) -> Any:
    with anyio.fail_after(30):
        done = await anyio.run_process(
            [sys.executable, str(MEASURING), *arguments],
            stderr=None,
            env={"PYTHONPATH": str(ROOT)},
        )
    return json.loads(done.stdout)


def check(
    found: Any, outcome: str, *, rise: float = RISE_MIB_MAX, pause: float = PAUSE_MS_MAX
) -> None:
    assert found["outcome"] == outcome
    assert found["rise_mib"] <= rise
    assert found["pause_ms"] <= pause * SLOW


@pytest.mark.parametrize("way", ["layers", "quoted", "names"])
async def test_8_mib_of_brackets_or_names_are_refused_at_no_great_cost(way: str) -> None:
    check(await cost("stdio", str(BOMBS), way), "RemoteProtocolError")


async def test_a_frame_without_an_end_costs_no_more_than_a_frame() -> None:
    check(await cost("stdio", str(BOMBS), "endless"), "FrameTooLargeError")


@pytest.mark.parametrize("way", ["most-names", "most-texts", "most-objects"])
async def test_as_many_values_as_are_read_cost_no_more_than_a_bomb(way: str) -> None:
    check(await cost("stdio", str(BOMBS), way), "RemoteProtocolError")


async def test_a_full_frame_of_as_many_texts_as_are_read_costs_what_it_holds() -> None:
    found = await cost("stdio", str(BOMBS), "full-texts")
    check(found, "RemoteProtocolError", rise=FULL_RISE_MIB_MAX)


BRACKETS = b"[" + b"[]," * 2_700_000 + b"0]"


@pytest.mark.parametrize(
    ("data", "outcome"),
    [
        (ok(BRACKETS), "RemoteProtocolError"),
        (ok(b"data: " + BRACKETS + b"\n\n", "text/event-stream"), "RemoteProtocolError"),
        (
            ok(gzip.compress(b"[" * 200_000_000, 1), "application/json", "Content-Encoding: gzip"),
            "RemoteProtocolError",
        ),
    ],
    ids=["json", "events", "gzip"],
)
async def test_a_bomb_over_http_costs_no_more_than_a_frame(data: bytes, outcome: str) -> None:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(data)

    async with raw_server(evil) as server:
        found = await cost("http", server.url)
    check(found, outcome)


async def test_a_body_without_an_end_costs_no_more_than_a_frame() -> None:
    async def evil(stream: Stream, message: Message) -> None:
        await stream.send(HEAD + b"\r\n")
        while True:
            await stream.send(b" " * 65_536)

    async with raw_server(evil) as server:
        check(await cost("http", server.url), "FrameTooLargeError")


@pytest.mark.parametrize("way", ["brackets", "lines"])
async def test_a_bomb_over_http_sse_costs_no_more_than_a_frame(way: str) -> None:
    class Bomber(OldServer):
        async def evil(self, stream: HttpReply, calls: list[Message]) -> None:
            if way == "lines":
                await stream.chunk(b"data:\n" * 1_300_000 + b"\n")
            else:
                await stream.chunk(b"data: " + BRACKETS + b"\n\n")
                await stream.event({"jsonrpc": "2.0", "id": calls[0]["id"], "result": []})

    bomber = Bomber()

    async def handle(call: HttpCall, reply: HttpReply) -> None:
        await bomber(call, reply)

    async with serve_http(handle, path="/sse") as server:
        found = await cost("sse", server.url)
    # the reader of events has it three times over for a moment
    outcome = "FrameTooLargeError" if way == "lines" else "RemoteProtocolError"
    check(found, outcome, rise=1.25 * RISE_MIB_MAX)
