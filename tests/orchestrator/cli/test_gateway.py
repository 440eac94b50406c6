"""`remit gateway` as a process of its own, before the official SDK's client."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from orchestrator.audit.read import read_records, verify_file
from tests.guests.profile import AGENT, GATEWAY, booked, environment, log_of, make_profile, started
from tests.guests.stage import ALLOWED, BOOK, DENIED, WORTH
from tests.orchestrator.cli.running import Remit

pytestmark = pytest.mark.subprocess


@pytest.fixture
def anyio_backend() -> str:
    """The SDK's client is driven on one loop."""
    return "asyncio"


@pytest.fixture
def profile(home: Path) -> Path:
    """A profile with a server whose tools count as seen, a policy, and a definition."""
    return make_profile(home)


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


async def asked(client: Client) -> list[Any]:
    """Allowed, denied, over the budget: return the errors' reasons, None for none."""
    results = [await client.call_tool(BOOK, arguments) for arguments in (ALLOWED, DENIED, ALLOWED)]
    text = results[0].content[0].model_dump()["text"]
    metas: list[dict[str, Any]] = [dict(result.meta or {}) for result in results]
    return [text, *(meta.get("remit/error", {}).get("reason") for meta in metas)]


async def test_a_host_on_stdio_is_served_within_policy_and_definition(profile: Path):
    command = StdioServerParameters(
        command=sys.executable, args=[*GATEWAY, "scout"], env=environment(profile), cwd=profile
    )
    with anyio.fail_after(40):
        async with Client(command) as client:
            listed = await client.list_tools()
            told = await asked(client)

    assert [tool.name for tool in listed.tools] == [BOOK]
    assert told == [WORTH, None, "no_permit", "budget_spent"]
    assert booked(profile) == 1
    (*_, last) = read_records(log_of(profile))
    assert (last.kind, last.fields["status"]) == ("run_ended", "ok")
    assert verify_file(log_of(profile)).ok


async def test_a_host_on_http_is_served_until_a_signal_ends_it(profile: Path):
    process = started(profile, "--http", "0", "--json")
    try:
        found = json.loads(await anyio.to_thread.run_sync(first_line, process))
        with anyio.fail_after(40):
            async with (
                create_mcp_http_client(found["headers"]) as http,
                Client(streamable_http_client(found["url"], http_client=http)) as client,
            ):
                told = await asked(client)
        async with httpx.AsyncClient() as without:
            stranger = await without.post(found["url"], json={})
        process.send_signal(signal.SIGTERM)
        code = process.wait(20)
    finally:
        process.kill()
        process.communicate()

    assert (told, code) == ([WORTH, None, "no_permit", "budget_spent"], 0)
    assert stranger.status_code == 401
    assert booked(profile) == 1
    (*_, last) = read_records(log_of(profile))
    assert (last.kind, last.fields["status"]) == ("run_ended", "ok")
    handle = found["headers"]["Authorization"].removeprefix("Bearer ")
    assert handle not in log_of(profile).read_text()


def test_a_name_that_is_nothing_is_told_with_what_there_is(remit: Remit, profile: Path):
    ended = remit("gateway", "nobody", "--http", "0")

    assert ended.code == 2
    assert "E-GUEST-NOTHING" in ended.err
    assert "scout" in ended.err


def test_a_projects_definition_that_is_not_approved_is_not_taken_for_a_role(
    remit: Remit, profile: Path
):
    (profile / "config" / "agents" / "scout.md").unlink()
    folder = Path.cwd() / ".remit" / "agents"
    folder.mkdir(parents=True)
    (folder / "scout.md").write_text(AGENT)
    ended = remit("gateway", "scout", "--http", "0")

    assert ended.code == 2
    assert "--approve" in ended.err


def test_a_port_that_is_taken_is_told(remit: Remit, profile: Path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = remit("gateway", "scout", "--http", str(taken.getsockname()[1]))

    assert ended.code == 2
    assert "E-GATEWAY-PORT" in ended.err


def test_without_the_extra_it_says_what_to_install(
    remit: Remit, profile: Path, monkeypatch: pytest.MonkeyPatch
):
    def nowhere(name: str) -> None:
        return None

    monkeypatch.setattr("orchestrator.cli.gateway.find_spec", nowhere)
    ended = remit("gateway", "scout")

    assert ended.code == 2
    assert 'pip install "remit[gateway]"' in ended.err
