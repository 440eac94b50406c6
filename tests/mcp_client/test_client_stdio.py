"""The client over a real process: a server of the standard library alone."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest

from mcp_client import UNGUARDED, CallTimeoutError, ServerGoneError, ServerSpec, StartError, connect
from mcp_client.protocol.limits import ClientLimits
from mcp_client.testing import RecordingGuard
from tests.mcp_client.kit import RefusalError

pytestmark = pytest.mark.subprocess

SERVER = """
import json, os, sys

def answer(message, result):
    text = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()

print("starting up", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        answer(message, {"protocolVersion": version, "capabilities": {"tools": {}},
                         "serverInfo": {"name": "real", "version": "1"}})
    elif method == "tools/list":
        answer(message, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        arguments = message["params"]["arguments"]
        if arguments.get("die"):
            print("last words", file=sys.stderr, flush=True)
            os._exit(7)
        if not arguments.get("wait"):
            answer(message, {"content": [{"type": "text", "text": str(arguments["text"])}]})
"""


@pytest.fixture
def spec(tmp_path: Path) -> ServerSpec:
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    return ServerSpec(name="real", command=sys.executable, args=("-u", str(program)))


async def test_a_real_server_is_started_listed_and_called(spec: ServerSpec) -> None:
    with anyio.fail_after(10):
        async with connect(spec, guard=UNGUARDED) as client:
            listing = await client.list_tools()
            text = "x" * 300_000
            result = await client.call_tool("echo", {"text": text})

    assert [tool.name for tool in listing.tools] == ["echo"]
    assert result.text == text
    assert client.server_info.name == "real"


async def test_a_refused_call_leaves_a_real_server_without_a_byte(spec: ServerSpec) -> None:
    refusal = RefusalError()
    with anyio.fail_after(10):
        async with connect(spec, guard=UNGUARDED) as client:
            pending = client.session.start(
                "tools/call",
                b'{"arguments":{"die":1},"name":"echo"}',
                guard=RecordingGuard(refusal),
            )
            with pytest.raises(RefusalError) as caught:
                await pending.wait()
            result = await client.call_tool("echo", {"text": "alive"})

    assert caught.value is refusal
    assert pending.bytes_sent == 0
    assert result.text == "alive"


async def test_a_real_server_that_dies_in_a_call_is_told_with_its_status(spec: ServerSpec) -> None:
    with anyio.fail_after(10):
        async with connect(spec, guard=UNGUARDED) as client:
            with pytest.raises(ServerGoneError) as caught:
                await client.call_tool("echo", {"die": True})

    assert caught.value.exit_status == 7
    assert "last words" in caught.value.stderr_tail
    assert "last words" not in str(caught.value)


async def test_a_call_that_a_real_server_does_not_answer_ends_and_the_next_goes_on(
    spec: ServerSpec,
) -> None:
    with anyio.fail_after(10):
        async with connect(spec, guard=UNGUARDED) as client:
            with pytest.raises(CallTimeoutError):
                await client.call_tool("echo", {"wait": True}, seconds=0.05)
            assert (await client.call_tool("echo", {"text": "on"})).text == "on"


async def test_a_program_that_never_answers_initialize_is_ended_within_its_time() -> None:
    silent = ServerSpec(name="silent", command=sys.executable, args=("-c", "input(); input()"))
    limits = ClientLimits(initialize_seconds_max=0.3, close_seconds_max=0.2)

    with anyio.fail_after(10), pytest.raises(CallTimeoutError):
        async with connect(silent, guard=UNGUARDED, limits=limits):
            pass


async def test_a_program_that_there_is_not_is_a_start_error() -> None:
    with anyio.fail_after(10), pytest.raises(StartError):
        async with connect(ServerSpec(name="no", command="/no/such/program"), guard=UNGUARDED):
            pass
