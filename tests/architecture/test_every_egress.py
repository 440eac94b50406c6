"""Every way out is under a guard: no default, no way around, no unguarded writer (I14)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Iterator

import pytest

from mcp_client.net.http.engine import HttpEngine
from mcp_client.ports import Transport
from mcp_client.session import ClientSession
from mcp_client.transports.http_sse import HttpSseTransport
from mcp_client.transports.memory import MemoryTransport
from mcp_client.transports.stdio.transport import StdioTransport
from mcp_client.transports.streamable_http.transport import StreamableHttpTransport
from tests.architecture.sources import Source, source_from, sources

WAYS_OUT = (
    Transport.send,
    StdioTransport.send,
    StreamableHttpTransport.send,
    HttpSseTransport.send,
    MemoryTransport.send,
    HttpEngine.exchange,
    ClientSession.start,
)

WRITERS = {
    # they write what a guard was asked about in the same step
    "mcp_client.net.http.wires",
    "mcp_client.net.http.connection",
    "mcp_client.net.http.dialing",
    "mcp_client.transports.stdio.transport",
    # our own processes on the other end: start and end of servers, no frame
    "mcp_client.net.http.resolving",
    "mcp_client.transports.stdio.server_process",
    "mcp_client.transports.stdio.supervisor",
    "mcp_client.transports.stdio.supervisor_main",
}
"""Modules that may hand bytes to the kernel, by what they may hand over."""

_SENDS = {"send", "sendall", "sendmsg", "sendto"}


def raw_writers(files: Iterable[Source]) -> Iterator[str]:
    """Places outside the writers that hand bytes to the kernel themselves."""
    for source in files:
        if not source.module.startswith("mcp_client.") or ".testing" in source.module:
            continue
        if source.module in WRITERS:
            continue
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                name = ast.unparse(node.func)
                on_socket = node.func.attr in _SENDS and len(node.args) == 1
                if name == "os.write" or on_socket:
                    yield source.at(node)


def unguarded(files: Iterable[Source]) -> Iterator[str]:
    """Places in the orchestrator that name the guard that is none."""
    for source in files:
        if source.module.startswith("orchestrator"):
            for node in ast.walk(source.tree):
                if isinstance(node, ast.Name | ast.Attribute) and "UNGUARDED" in ast.unparse(node):
                    yield source.at(node)


@pytest.mark.requirement("I14")
@pytest.mark.parametrize("way", WAYS_OUT, ids=lambda way: way.__qualname__)
def test_no_way_out_has_a_default_guard(way: Callable[..., object]):
    assert inspect.signature(way).parameters["guard"].default is inspect.Parameter.empty


@pytest.mark.requirement("I14")
def test_bytes_are_handed_to_the_kernel_where_a_guard_was_asked_and_nowhere_else():
    assert list(raw_writers(sources())) == []


@pytest.mark.parametrize("text", ["import os\nos.write(3, b'')", "s.sendall(b'')", "x.y.send(d)"])
def test_a_writer_elsewhere_is_found(text: str):
    assert list(raw_writers([source_from(text, "mcp_client/session/new.py")])) != []


@pytest.mark.requirement("I14")
def test_the_orchestrator_never_says_that_anything_goes():
    assert list(unguarded(sources())) == []


def test_a_guard_that_is_none_is_found():
    text = "from mcp_client.ports import UNGUARDED\nconnect(x, guard=UNGUARDED)"

    assert list(unguarded([source_from(text, "orchestrator/broker/new.py")])) != []
