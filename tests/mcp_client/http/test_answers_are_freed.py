"""What a server answered is gone with its last reader: it does not wait for the collector."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

import anyio
import anyio.lowlevel
import pytest

from mcp_client import UNGUARDED, HttpSpec, connect
from mcp_client.testing.http_server import HttpCall, HttpReply, serve_http
from mcp_client.transports.streamable_http.request import MessageStream
from tests.mcp_client.http.harness import Mcp, result


@contextmanager
def no_collector() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def streams() -> int:
    return sum(type(each) is MessageStream for each in gc.get_objects())


@pytest.mark.parametrize("kind", ["json", "events"])
async def test_nothing_of_a_request_is_kept_once_it_was_answered(kind: str) -> None:
    script = Mcp()

    async def answer(call: HttpCall, reply: HttpReply) -> None:
        message = result(call, {"content": []})
        if kind == "json":
            await reply.json(message)
        else:
            await reply.start_events()
            await reply.event(message)
            await reply.end()

    script.special["tools/call"] = answer
    async with (
        serve_http(script) as server,
        connect(HttpSpec(name="srv", url=server.url), guard=UNGUARDED) as client,
    ):
        await client.call_tool("add", {})
        before = streams()
        with no_collector(), anyio.fail_after(30):
            for _ in range(5):
                await client.call_tool("add", {})
            while streams() > before:
                await anyio.lowlevel.checkpoint()

        assert streams() <= before
