"""The gateway before the official SDK's own client: in memory, over lines, and over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Generator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from orchestrator.surfaces.guests.answering import CONTENT_KEY, ERROR_KEY, REFUSED_CODE
from orchestrator.surfaces.guests.gateway import gateway_server
from orchestrator.surfaces.guests.http import Listening, open_listening, serve_http
from orchestrator.surfaces.guests.limits import GuestLimits
from orchestrator.surfaces.guests.stdio import serve_lines
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH, Stage, open_stage

pytestmark = pytest.mark.subprocess

INITIALIZE: Final[dict[str, Any]] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture
def anyio_backend() -> str:
    """The SDK's HTTP server runs on asyncio alone."""
    return "asyncio"


@asynccontextmanager
async def before(stage: Stage) -> AsyncGenerator[Client]:
    async with Client(gateway_server(stage.view)) as client:
        yield client


async def test_a_host_lists_and_calls_and_what_it_gets_is_marked(tmp_path: Path):
    async with open_stage(tmp_path) as stage, before(stage) as client:
        listed = await client.list_tools()
        result = await client.call_tool(BOOK, ALLOWED)

        assert [tool.name for tool in listed.tools] == [BOOK]
        assert len(stage.booked) == 1
    assert result.content[0].model_dump()["text"] == WORTH
    assert result.meta is not None
    mark = result.meta[CONTENT_KEY]
    assert (mark["trust"], mark["authority"], mark["server"]) == (
        "untrusted_external",
        "none",
        "ledger",
    )


async def test_a_denied_call_is_an_error_with_its_reason_and_reaches_nothing(tmp_path: Path):
    async with open_stage(tmp_path) as stage, before(stage) as client:
        result = await client.call_tool(BOOK, DENIED)

        assert (result.is_error, stage.booked) == (True, [])
    assert result.meta is not None
    told = result.meta[ERROR_KEY]
    assert (told["reason"], told["delivery"], told["bytes_sent"]) == ("no_permit", "not_sent", 0)


async def test_a_revoked_snapshot_answers_nothing(tmp_path: Path):
    async with open_stage(tmp_path) as stage, before(stage) as client:
        stage.revoke()
        with pytest.raises(MCPError) as listing:
            await client.list_tools()
        with pytest.raises(MCPError) as calling:
            await client.call_tool(BOOK, ALLOWED)

        assert stage.booked == []
    assert (listing.value.code, calling.value.code) == (REFUSED_CODE, REFUSED_CODE)
    assert calling.value.data[ERROR_KEY]["reason"] == "agent_cancelled"


# ------------------------------------------------------------------------------------- lines


@dataclass(slots=True)
class Host:
    """What stands on the other side of two pipes."""

    reads: int
    writes: int
    server_reads: int
    server_writes: int
    gone: bool = False

    def hang_up(self) -> None:
        if not self.gone:
            self.gone = True
            os.close(self.writes)


@contextmanager
def host() -> Generator[Host]:
    (server_reads, writes), (reads, server_writes) = os.pipe(), os.pipe()
    found = Host(reads, writes, server_reads, server_writes)
    try:
        yield found
    finally:
        found.hang_up()
        for fd in (reads, server_reads, server_writes):
            os.close(fd)


async def read_line(fd: int) -> dict[str, Any]:
    data = b""
    while not data.endswith(b"\n"):
        await anyio.wait_readable(fd)
        data += os.read(fd, 1)
    return json.loads(data)


async def test_lines_are_answered_until_the_host_closes_its_end(tmp_path: Path):
    answer: dict[str, Any] = {}
    with host() as found:
        async with open_stage(tmp_path) as stage:
            server = gateway_server(stage.view)
            with anyio.fail_after(10):
                async with anyio.create_task_group() as group:
                    group.start_soon(serve_lines, server, found.server_reads, found.server_writes)
                    sent = b"no frame\n" + json.dumps(INITIALIZE).encode() + b"\n"
                    os.write(found.writes, sent)
                    answer = await read_line(found.reads)
                    found.hang_up()

    assert (answer["id"], answer["result"]["serverInfo"]["name"]) == (1, "remit:scout")


async def test_a_line_over_the_bound_of_a_frame_ends_it(tmp_path: Path):
    with host() as found:
        async with open_stage(tmp_path) as stage:
            os.write(found.writes, b"x" * 1025)
            with anyio.fail_after(10):
                await serve_lines(
                    gateway_server(stage.view),
                    found.server_reads,
                    found.server_writes,
                    frame_bytes_max=1024,
                )


# -------------------------------------------------------------------------------------- HTTP


@asynccontextmanager
async def listening(stage: Stage, limits: GuestLimits | None = None) -> AsyncGenerator[Listening]:
    found = open_listening()
    with found.socket, anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            server = gateway_server(stage.view)

            async def serve() -> None:
                await serve_http(server, found, limits=limits or GuestLimits())

            group.start_soon(serve)
            yield found
            group.cancel_scope.cancel()


def headers(found: Listening, **other: str) -> dict[str, str]:
    return {
        "authorization": found.authorization,
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        **other,
    }


async def status(found: Listening, sent: dict[str, str], body: bytes = b"") -> int:
    async with httpx.AsyncClient() as client:
        answer = await client.post(
            found.url, headers=sent, content=body or json.dumps(INITIALIZE).encode()
        )
        return answer.status_code


async def test_http_lets_in_who_shows_the_handle(tmp_path: Path):
    async with open_stage(tmp_path) as stage, listening(stage) as found:
        assert await status(found, headers(found)) == 200
        assert await status(found, headers(found, origin=f"http://127.0.0.1:{found.port}")) == 200


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer guessed"}, 401),
        ({"connection": "upgrade", "upgrade": "websocket", "authorization": ""}, 401),
    ],
)
async def test_http_refuses_another_host_another_page_and_another_handle(
    tmp_path: Path, wrong: dict[str, str], refusal: int
):
    async with open_stage(tmp_path) as stage, listening(stage) as found:
        assert await status(found, headers(found, **wrong)) == refusal


async def test_http_takes_no_body_over_its_bound(tmp_path: Path):
    limits = GuestLimits(body_bytes_max=1024)
    async with open_stage(tmp_path) as stage, listening(stage, limits) as found:
        body = json.dumps(INITIALIZE).encode().ljust(1024)

        assert await status(found, headers(found), body) == 200
        assert await status(found, headers(found), body + b" ") == 413


async def test_http_opens_no_session_over_its_bound(tmp_path: Path):
    limits = GuestLimits(http_sessions_max=1)
    async with open_stage(tmp_path) as stage, listening(stage, limits) as found:
        assert await status(found, headers(found)) == 200
        assert await status(found, headers(found)) == 503


async def test_http_takes_no_connection_over_its_bound(tmp_path: Path):
    limits = GuestLimits(http_connections_max=2)
    async with (
        open_stage(tmp_path) as stage,
        listening(stage, limits) as found,
        httpx.AsyncClient() as first,
    ):
        body = json.dumps(INITIALIZE).encode()
        answer = await first.post(found.url, headers=headers(found), content=body)

        assert answer.status_code == 200
        assert await status(found, headers(found)) == 503


async def test_what_was_shown_at_the_door_goes_no_further(tmp_path: Path):
    from orchestrator.surfaces.guests.http import PATH, Door, Receive, Scope, Send

    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)

    async def receive() -> MutableMapping[str, Any]:
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        return None

    door = Door(app, port=80, handle="h")
    shown = [
        (b"host", b"127.0.0.1:80"),
        (b"authorization", b"Bearer h"),
        (b"cookie", b"a=b"),
        (b"accept", b"*/*"),
    ]
    await door({"type": "http", "path": PATH, "headers": shown}, receive, send)
    await door({"type": "websocket", "path": PATH, "headers": shown}, receive, send)

    assert len(seen) == 1
    assert [name for name, _ in seen[0]["headers"]] == [b"host", b"accept"]
