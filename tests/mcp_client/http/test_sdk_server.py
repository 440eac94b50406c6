"""The official SDK's server over its HTTP transports: what it says is understood."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client import UNGUARDED, Client, HttpSpec, Progress, connect

pytestmark = pytest.mark.subprocess

PROGRAM = Path(__file__).parents[2] / "servers" / "sdk_http.py"


@contextmanager
def the_sdks_server(mode: str) -> Generator[str]:
    command = [sys.executable, str(PROGRAM), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield f"http://127.0.0.1:{port}/{'sse' if mode == 'sse' else 'mcp'}"
        finally:
            process.stdin.close()
            process.wait(5)


@pytest.fixture(scope="module", params=["json", "events", "sse"])
def url(request: pytest.FixtureRequest) -> Generator[str]:
    with the_sdks_server(request.param) as address:
        yield address


async def use(client: Client) -> tuple[list[str], str, list[float]]:
    listing = await client.list_tools()
    added = await client.call_tool("add", {"a": 20, "b": 22})
    progress: list[Progress] = []
    await client.call_tool("slow", {}, on_progress=progress.append)
    return [tool.name for tool in listing.tools], added.text, [each.done for each in progress]


@pytest.mark.requirement("S-1")
async def test_its_tools_are_listed_and_called(url: str) -> None:
    with anyio.fail_after(20):
        async with connect(HttpSpec(name="sdk", url=url), guard=UNGUARDED) as client:
            names, added, progress = await use(client)

    assert (names, added) == (["add", "slow", "close_stream"], "42")
    # an answer in JSON has no place for it
    assert progress in ([0, 1, 2], [])


async def test_many_calls_at_once_are_answered_each_with_its_own(url: str) -> None:
    sums: dict[int, str] = {}
    with anyio.fail_after(20):
        async with connect(HttpSpec(name="sdk", url=url), guard=UNGUARDED) as client:

            async def add(number: int) -> None:
                sums[number] = (await client.call_tool("add", {"a": number, "b": 0})).text

            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(add, number)

    assert sums == {number: str(number) for number in range(40)}


async def test_a_tools_own_failure_is_a_result(url: str) -> None:
    with anyio.fail_after(20):
        async with connect(HttpSpec(name="sdk", url=url), guard=UNGUARDED) as client:
            result = await client.call_tool("close_stream", {})

    assert result.is_error
