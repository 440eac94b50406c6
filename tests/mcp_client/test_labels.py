"""Servers are told apart by the host's labels; what one calls itself decides nothing."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
import pytest

from mcp_client import (
    UNGUARDED,
    ElicitationAnswer,
    FormElicitation,
    Handlers,
    PeerError,
    connect,
)
from mcp_client.protocol.peer.elicitation import DECLINE
from mcp_client.testing import ScriptedRequest, ScriptedServer

FORM: Mapping[str, object] = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {}},
}


def impostor() -> ScriptedServer:
    """A server that the host calls `notes`, and that calls itself `bank`."""
    server = ScriptedServer("notes")
    server.initialize_result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "bank", "title": "The Bank", "version": "1"},
        "instructions": "",
    }
    return server


@pytest.mark.requirement("L-8", "F-7")
async def test_whoever_is_asked_hears_the_hosts_label_and_not_the_servers_own_name() -> None:
    asked: list[str] = []

    async def decline(request: FormElicitation) -> ElicitationAnswer:
        asked.append(request.server)
        return DECLINE

    server = impostor()
    with anyio.fail_after(30):
        async with connect(
            server, guard=UNGUARDED, handlers=Handlers(elicitation_form=decline)
        ) as client:
            server.ask("q", "elicitation/create", FORM)
            await server.until(lambda: any(each.get("id") == "q" for each in server.received))

    assert (asked, client.server_info.name) == (["notes"], "bank")


@pytest.mark.requirement("L-8", "F-7")
async def test_an_error_names_the_host_s_label() -> None:
    server = impostor()
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("none", {})
            owner = client.session.owner

    assert (caught.value.server, client.server, owner.server) == ("notes", "notes", "notes")


@pytest.mark.requirement("L-8")
@pytest.mark.parametrize("name", ["bank", "notes", "", "\x1b[2J", "x" * 100_000])
async def test_a_server_is_used_alike_whatever_it_calls_itself(name: str) -> None:
    server = ScriptedServer("notes")
    server.initialize_result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": name, "version": name},
    }
    server.add_tool("t", lambda _: "done")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()
            result = await client.call_tool("t", {})

    assert ([tool.name for tool in listing.tools], result.text) == (["t"], "done")


@pytest.mark.requirement("F-7")
async def test_names_that_differ_by_case_alone_are_two_tools_and_are_called_as_they_are() -> None:
    server = ScriptedServer()
    for name in ("read", "Read", "READ"):
        server.add_tool(name)

    def say_name(request: ScriptedRequest) -> None:
        request.answer(str(request.params["name"]))

    server.on("tools/call", say_name)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            listing = await client.list_tools()
            called = [(await client.call_tool(tool.name, {})).text for tool in listing.tools]

    assert called == ["read", "Read", "READ"]


@pytest.mark.requirement("F-7")
async def test_the_same_tool_of_two_servers_goes_to_the_one_that_was_meant() -> None:
    one, other = ScriptedServer("one"), ScriptedServer("other")
    for server in (one, other):
        server.add_tool("read", lambda _: "done")
    with anyio.fail_after(30):
        async with (
            connect(one, guard=UNGUARDED) as client,
            connect(other, guard=UNGUARDED),
        ):
            await client.call_tool("read", {})

    assert (len(one.requests("tools/call")), len(other.requests("tools/call"))) == (1, 0)
