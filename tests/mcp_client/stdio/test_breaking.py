"""Pipes that break one at a time, and frames too large: what is told, what still arrives."""

from __future__ import annotations

import signal

import pytest

from mcp_client.protocol.errors import Delivery, FrameTooLargeError, ServerGoneError, StartError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio.supervisor import require_supervision
from tests.mcp_client.stdio.harness import BARE, opened

pytestmark = pytest.mark.subprocess


async def test_between_a_broken_pipe_and_the_loss_a_frame_is_refused_as_one_that_found_nobody() -> (
    None
):
    program = "import os, signal; os.close(0); os.write(1, b'ready\\n'); signal.pause()"
    async with opened(*BARE, program) as connection:
        await connection.sink.frame(0)
        await connection.send(b"into the void").ended.wait()
        assert connection.sink.lost == []
        with pytest.raises(ServerGoneError) as raised:
            connection.send(b"late")
        assert (raised.value.delivery, raised.value.server) == (Delivery.NOT_SENT, "srv")


async def test_a_server_that_closes_its_input_can_still_say_what_it_has_to_say() -> None:
    program = (
        "import os, signal\n"
        "os.close(0); os.write(1, b'ready\\n')\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05); signal.signal(signal.SIGALRM, lambda *_: 0)\n"
        "signal.pause(); os.write(1, b'the answer\\n'); signal.pause()"
    )
    async with opened(*BARE, program) as connection:
        await connection.sink.frame(0)
        connection.send(b"into the void")
        await connection.sink.error()
        assert connection.sink.frames == [b"ready", b"the answer"]


@pytest.mark.requirement("S-29")
async def test_frames_that_came_with_one_over_the_bound_are_delivered_before_the_error() -> None:
    program = "import os, signal; os.write(1, b'one\\ntwo\\n' + b'x' * 101); signal.pause()"
    limits = ClientLimits(frame_bytes_max=100, close_seconds_max=0.1)
    async with opened(*BARE, program, limits=limits) as connection:
        assert isinstance(await connection.sink.error(), FrameTooLargeError)
        assert connection.sink.frames == [b"one", b"two"]


LARGE = (
    "import os, sys, signal\n"
    "piece = b'x' * 1024\n"
    "for _ in range(8 * 1024): os.write(1, piece)\n"
    "os.write(1, sys.argv[1].encode()); os.write(1, b'\\n'); signal.pause()"
)


async def test_a_frame_of_just_the_bound_in_thousands_of_pieces_arrives() -> None:
    async with opened(*BARE, LARGE, "") as connection:
        assert await connection.sink.frame(0) == b"x" * (8 * 1024 * 1024)


@pytest.mark.requirement("S-29")
async def test_a_frame_one_byte_over_the_bound_in_thousands_of_pieces_is_an_error() -> None:
    async with opened(*BARE, LARGE, "x") as connection:
        assert isinstance(await connection.sink.error(), FrameTooLargeError)
        assert connection.sink.frames == []


async def test_declared_values_are_hidden_in_the_stderr_of_an_error() -> None:
    program = ("sh", "-c", 'read x; echo "no such key: $API_KEY" >&2; exit 1')
    async with opened(*program, environment={"API_KEY": "s3cr3t-value"}) as connection:
        connection.send(b"go")
        error = await connection.sink.error()
        assert isinstance(error, ServerGoneError)
        assert error.stderr_tail == "no such key: [hidden]\n"


def test_where_a_broken_pipe_would_end_the_host_no_server_is_started() -> None:
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        with pytest.raises(StartError, match="SIGPIPE"):
            require_supervision()
    finally:
        signal.signal(signal.SIGPIPE, before)
