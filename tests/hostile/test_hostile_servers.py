"""A server that misbehaves harms its own calls, in bounded time; others go on, nothing is left."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client.client import Client, Host, ServerSpec, connect, open_host
from mcp_client.ports import UNGUARDED
from mcp_client.protocol.errors import (
    CallTimeoutError,
    Delivery,
    FrameTooLargeError,
    HandshakeError,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    ServerGoneError,
    UnsupportedVersionError,
)
from mcp_client.protocol.limits import ClientLimits
from tests.mcp_client.stdio.harness import children, is_alive, supervisors

pytestmark = pytest.mark.subprocess

PROGRAM = Path(__file__).parents[1] / "servers" / "hostile.py"


@pytest.fixture
def anyio_backend() -> str:
    """Session and transport are tried on both loops where they stand; here servers differ."""
    return "asyncio"


def spec(way: str) -> ServerSpec:
    return ServerSpec(name=way, command=sys.executable, args=("-I", "-S", str(PROGRAM), way))


def limits(**seconds: float) -> ClientLimits:
    return ClientLimits(close_seconds_max=0.1, **seconds)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def a_host() -> AsyncGenerator[Host]:
    """A host with a good server: it answers after all the rest, and no process is left then."""
    below: dict[int, str] = {}
    async with (
        open_host() as host,
        connect(spec("good"), guard=UNGUARDED, limits=limits(), host=host) as good,
    ):
        yield host
        for supervisor in supervisors(os.getpid()):
            for keeper in children(supervisor):
                below.update(children(keeper))
        with anyio.fail_after(30):
            assert await text(good) == "good"
    assert below
    assert [line for pid, line in below.items() if is_alive(pid)] == []
    assert supervisors(os.getpid()) == []


@asynccontextmanager
async def a_client(way: str, **seconds: float) -> AsyncGenerator[Client]:
    async with (
        a_host() as host,
        connect(spec(way), guard=UNGUARDED, limits=limits(**seconds), host=host) as client,
    ):
        yield client


async def text(client: Client) -> str:
    result = await client.call_tool("any", {})
    return "".join(str(block.get("text")) for block in result.blocks)


async def failed_call(way: str, **seconds: float) -> McpError:
    """Call a tool of such a server; return the error, which comes within the deadline."""
    async with a_client(way, **seconds) as client:
        with anyio.fail_after(30), pytest.raises(McpError) as raised:
            await client.call_tool("any", {})
    return raised.value


async def failed_connect(way: str, **seconds: float) -> McpError:
    """Connect to such a server; return the error, which comes within the deadline."""
    async with a_host() as host:
        with anyio.fail_after(30), pytest.raises(McpError) as raised:
            async with connect(spec(way), guard=UNGUARDED, limits=limits(**seconds), host=host):
                pass
    return raised.value


# ---- in a call


async def test_a_server_that_dies_within_a_call_ends_it_with_status_and_stderr() -> None:
    error = await failed_call("dies")
    assert isinstance(error, ServerGoneError)
    assert (error.exit_status, error.stderr_tail) == (7, "fatal: [31mout of cheese\n")
    assert (error.delivery, error.server) == (Delivery.MAYBE_SENT, "dies")


async def test_a_server_that_is_killed_within_a_call_ends_every_pending_call() -> None:
    async with a_client("killed") as client:
        errors: list[McpError] = []

        async def call() -> None:
            with pytest.raises(ServerGoneError) as raised:
                await client.call_tool("any", {})
            errors.append(raised.value)

        with anyio.fail_after(30):
            async with anyio.create_task_group() as calls:
                for _ in range(5):
                    calls.start_soon(call)
        assert [getattr(error, "exit_status", 0) for error in errors] == [-9] * 5


async def test_a_server_that_dies_and_leaves_a_deaf_child_leaves_nothing() -> None:
    assert isinstance(await failed_call("leaves"), ServerGoneError)


async def test_a_server_that_never_answers_a_call_ends_it_at_its_deadline() -> None:
    error = await failed_call("silent", request_seconds_max=0.2)
    assert isinstance(error, CallTimeoutError)
    assert error.delivery is Delivery.MAYBE_SENT


async def test_a_server_that_reads_no_more_does_not_hold_up_a_call_past_its_deadline() -> None:
    async with a_client("deafens", request_seconds_max=0.3) as client:
        large: dict[str, object] = {"x": "x" * (3 * 1024 * 1024)}
        outcomes: list[tuple[type[McpError], Delivery]] = []

        async def call(arguments: dict[str, object]) -> None:
            with pytest.raises(McpError) as raised:
                await client.call_tool("any", arguments)
            outcomes.append((type(raised.value), raised.value.delivery))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as calls:
                calls.start_soon(call, dict[str, object]())  # from here it reads no more
                calls.start_soon(call, large)
                calls.start_soon(call, large)
        assert sorted(delivery.value for _, delivery in outcomes) == [
            "maybe_sent",
            "maybe_sent",
            "not_sent",
        ]
        assert {kind for kind, _ in outcomes} == {CallTimeoutError}


async def test_a_server_that_closes_its_output_is_gone_within_a_second() -> None:
    async with a_client("closes") as client:
        with anyio.fail_after(1), pytest.raises(ServerGoneError):
            await client.call_tool("any", {})


@pytest.mark.requirement("T-3")
async def test_noise_on_stdout_is_skipped_and_the_answer_found() -> None:
    async with a_client("noise") as client:
        with anyio.fail_after(30):
            assert await text(client) == "through the noise"
            assert await text(client) == "through the noise"
        assert sum(client.session.violations.values()) > 0


@pytest.mark.requirement("T-3")
async def test_a_server_of_nothing_but_noise_is_ended_at_the_bound() -> None:
    assert isinstance(await failed_call("too_noisy"), RemoteProtocolError)


@pytest.mark.requirement("T-2")
async def test_a_flood_on_stderr_delays_no_answer() -> None:
    async with a_client("stderr") as client:
        with anyio.fail_after(30):
            assert await text(client) == "after the flood"


async def test_of_two_answers_the_first_counts_and_the_connection_lives() -> None:
    async with a_client("twice") as client:
        with anyio.fail_after(30):
            assert [await text(client), await text(client)] == ["first", "first"]


async def test_an_answer_one_byte_over_the_bound_is_a_typed_error() -> None:
    assert isinstance(await failed_call("huge"), FrameTooLargeError)


async def test_a_frame_without_an_end_is_a_typed_error() -> None:
    assert isinstance(await failed_call("endless"), FrameTooLargeError)


@pytest.mark.parametrize("way", ["deep", "no_number"])
async def test_an_answer_that_cannot_be_read_fails_its_own_call_at_once(way: str) -> None:
    async with a_client(way) as client:
        with anyio.fail_after(30):
            with pytest.raises(RemoteProtocolError) as raised:
                await text(client)
            await client.ping()
    assert raised.value.delivery is Delivery.ANSWERED


async def test_a_text_cut_within_a_character_is_an_answer() -> None:
    async with a_client("cut_text") as client:
        with anyio.fail_after(30):
            assert await text(client) == "cut \ufffd"


async def test_answers_to_ids_that_were_not_asked_reach_nobody() -> None:
    async with a_client("others") as client:
        with anyio.fail_after(30):
            assert await text(client) == "mine"
        assert sum(client.session.violations.values()) >= 6


async def test_a_server_that_asks_without_end_gets_its_answers_bounded() -> None:
    async with a_client("asks") as client:
        with anyio.fail_after(30):
            assert await text(client) == "asked enough"
            await client.ping()


# ---- in the handshake


async def test_a_server_that_dies_at_once_is_reported_with_status_and_stderr() -> None:
    error = await failed_connect("dies_at_once")
    assert isinstance(error, ServerGoneError)
    assert (error.exit_status, "ModuleNotFoundError" in error.stderr_tail) == (1, True)


async def test_a_server_that_never_answers_initialize_is_given_up_at_the_deadline() -> None:
    error = await failed_connect("mute", initialize_seconds_max=0.3)
    assert isinstance(error, CallTimeoutError)


async def test_a_server_that_dies_in_the_handshake_is_reported_with_its_status() -> None:
    error = await failed_connect("dies_in_handshake")
    assert isinstance(error, ServerGoneError)
    assert error.exit_status == 5


@pytest.mark.parametrize("way", ["refuses", "malformed"])
async def test_a_server_that_spoils_the_handshake_is_refused(way: str) -> None:
    error = await failed_connect(way)
    assert isinstance(error, HandshakeError)
    assert "thanks" not in str(error)


async def test_a_version_that_nobody_speaks_is_refused() -> None:
    assert isinstance(await failed_connect("ancient"), UnsupportedVersionError)


async def test_a_second_answer_to_initialize_is_counted_and_nothing_else() -> None:
    async with a_client("initialized_twice") as client:
        with anyio.fail_after(30):
            await client.ping()


async def test_after_a_connection_is_over_its_calls_are_refused_unsent() -> None:
    async with a_client("dies") as client:
        with anyio.fail_after(30):
            with pytest.raises(ServerGoneError):
                await client.call_tool("any", {})
            with pytest.raises((ServerGoneError, LocalProtocolError)) as raised:
                await client.call_tool("any", {})
        assert raised.value.delivery is Delivery.NOT_SENT
