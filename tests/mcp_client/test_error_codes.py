"""Codes of errors: which are reserved, which the client sends, and what no error of its own looks like."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

import anyio
import pytest

import mcp_client
from mcp_client import (
    UNGUARDED,
    ElicitationAnswer,
    Handlers,
    HttpStatusError,
    McpError,
    PeerError,
    SamplingRefused,
    SamplingRequest,
    connect,
)
from mcp_client.protocol.jsonrpc import as_object
from mcp_client.testing import RecordingGuard, ScriptedServer

RESERVED = range(-32099, -32019)
"""What MCP keeps for itself (2026-07-28): a client sends none of them but as specified."""

TURN: Mapping[str, object] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "hello"}}],
    "maxTokens": 10,
}
FORM: Mapping[str, object] = {
    "message": "?",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "integer"}}},
}


async def refuse(_request: SamplingRequest) -> SamplingRefused:
    return SamplingRefused()


async def break_down(_request: object) -> ElicitationAnswer:
    raise ValueError("ours")


@pytest.mark.requirement("J-7")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("roots/list", {}),
        ("nothing/known", {}),
        ("elicitation/create", FORM),
        ("elicitation/create", {"mode": "url"}),
        ("sampling/createMessage", TURN),
        ("sampling/createMessage", {**TURN, "tools": []}),
        ("sampling/createMessage", {}),
    ],
)
async def test_no_refusal_of_ours_has_a_reserved_code(
    method: str, params: Mapping[str, object]
) -> None:
    server = ScriptedServer()
    handlers = Handlers(sampling=refuse, elicitation_form=break_down)
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED, handlers=handlers):
            server.ask("q", method, params)
            await server.until(lambda: any(each.get("id") == "q" for each in server.received))

    answer = next(each for each in server.received if each.get("id") == "q")
    code = (as_object(answer["error"]) or {})["code"]
    assert isinstance(code, int)
    assert code not in RESERVED


def kinds(of: type[McpError] = McpError) -> Iterator[type[McpError]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


@pytest.mark.requirement("J-7")
def test_only_what_a_server_answered_has_a_servers_code() -> None:
    for name in mcp_client.__all__:  # so that the module of each is loaded
        getattr(mcp_client, name)
    with_code = {kind for kind in kinds() if "code" in inspect.signature(kind).parameters}
    servers = (PeerError, HttpStatusError)

    assert PeerError in with_code
    assert {kind for kind in with_code if not issubclass(kind, servers)} == set()


class DeniedError(Exception):
    """What a host's guard raises."""


@pytest.mark.requirement("J-7")
async def test_a_refusal_of_the_host_comes_out_as_what_it_is_and_as_no_servers_error() -> None:
    server = ScriptedServer()
    server.add_tool("t", lambda _: "done")
    guard = RecordingGuard()
    guard.error = DeniedError("not now")
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(DeniedError) as caught:
                await client.call_tool("t", {}, guard=guard)

    assert not isinstance(caught.value, McpError)
    assert server.requests("tools/call") == []


@pytest.mark.requirement("J-7")
@pytest.mark.parametrize("code", [-32000, -32001, -32019, -32023, -32099, 7, -1])
async def test_a_code_without_an_agreed_meaning_is_any_error_of_the_servers(code: int) -> None:
    server = ScriptedServer()
    server.on("tools/call", lambda request: request.refuse(code, "timed out: denied by policy"))
    with anyio.fail_after(30):
        async with connect(server, guard=UNGUARDED) as client:
            with pytest.raises(PeerError) as caught:
                await client.call_tool("t", {})

    assert (type(caught.value), caught.value.code) == (PeerError, code)
