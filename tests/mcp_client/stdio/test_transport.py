"""The stdio transport over real processes: starting, reading, writing, and every kind of end."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import pytest

from mcp_client.net.reactor import Waiter
from mcp_client.protocol.errors import (
    Delivery,
    FrameTooLargeError,
    LocalProtocolError,
    ServerGoneError,
    StartError,
)
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio.supervisor import require_supervision
from mcp_client.transports.stdio.supervisor_main import REQUEST_BYTES_MAX
from tests.mcp_client.stdio.harness import (
    BARE,
    Connection,
    SteppedReactor,
    children,
    connected,
    is_alive,
    opened,
    supervisors,
    until_dead,
)

pytestmark = pytest.mark.subprocess

ECHO = (*BARE, "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.raw.write(line)")


async def gone(connection: Connection) -> ServerGoneError:
    error = await connection.sink.error()
    assert isinstance(error, ServerGoneError)
    return error


# ---- frames


async def test_frames_come_back_in_the_order_in_which_they_were_sent() -> None:
    async with opened(*ECHO) as connection:
        for number in range(100):
            connection.send(b"%d" % number)
        await connection.sink.frame(99)
        assert connection.sink.frames == [b"%d" % number for number in range(100)]


async def test_a_frame_of_just_the_bound_goes_there_and_back() -> None:
    frame = b"x" * ClientLimits().frame_bytes_max
    async with opened("cat") as connection:
        ticket = connection.send(frame)
        assert await connection.sink.frame(0) == frame
        assert (ticket.end, ticket.bytes_sent) == ("written", len(frame) + 1)


async def test_a_frame_over_the_bound_is_not_queued() -> None:
    async with opened("cat", limits=ClientLimits(frame_bytes_max=10)) as connection:
        with pytest.raises(FrameTooLargeError):
            connection.send(b"x" * 11)


async def test_a_server_that_sends_a_frame_over_the_bound_is_ended() -> None:
    program = "import os\nwhile True: os.write(1, b'x' * 65536)"
    async with opened(*BARE, program) as connection:
        assert isinstance(await connection.sink.error(), FrameTooLargeError)
        assert connection.sink.frames == []


@pytest.mark.requirement("I2")
async def test_when_the_server_breaks_a_bound_no_further_byte_of_a_begun_frame_leaves() -> None:
    program = "import os\nwhile True: os.write(1, b'x' * 65536)"
    async with opened(*BARE, program) as connection:
        begun = connection.send(b"x" * (3 * 1024 * 1024))
        await connection.sink.error()
        assert (begun.end, begun.delivery) == ("lost", Delivery.MAYBE_SENT)


async def test_a_sink_that_raises_ends_the_connection_with_its_error() -> None:
    class NoiseError(Exception):
        pass

    async with connected("sh", "-c", "read x; echo noise") as connection:

        def refuse(frame: bytes, within: int | None = None) -> None:
            raise NoiseError

        connection.sink.frame_received = refuse
        await connection.transport.open(connection.sink)
        connection.send(b"go")
        assert isinstance(await connection.sink.error(), NoiseError)


async def test_a_server_that_never_reads_blocks_nobody_and_the_outbox_stays_bounded() -> None:
    limits = ClientLimits(outbox_bytes_max=4 * 1024 * 1024, close_seconds_max=0.2)
    async with opened("sleep", "600", limits=limits) as connection:
        connection.send(b"x" * (3 * 1024 * 1024))
        with anyio.fail_after(30):  # others run
            turned: Waiter[None] = connection.reactor.waiter()
            connection.reactor.soon(turned.set_result, None)
            await turned
        # a megabyte of the first is in the pipe, two wait here: there is room for one and a bit
        connection.send(b"x" * (1024 * 1024))
        with pytest.raises(LocalProtocolError):
            connection.send(b"x" * (1024 * 1024))


# ---- the end of a server


async def test_the_death_of_a_server_is_told_within_a_second_with_its_status() -> None:
    async with opened(*BARE, "import os; os.read(0, 1); os._exit(3)") as connection:
        connection.send(b"go")
        with anyio.fail_after(1):
            error = await gone(connection)
        assert (error.exit_status, error.server) == (3, "srv")


async def test_a_server_killed_by_a_signal_has_a_negative_status() -> None:
    program = "import os\nos.write(1, b'%d\\n' % os.getpid()); os.read(0, 1)"
    async with opened(*BARE, program) as connection:
        os.kill(int(await connection.sink.frame(0)), signal.SIGKILL)
        assert (await gone(connection)).exit_status == -signal.SIGKILL


async def test_what_a_server_wrote_before_it_died_arrives_before_the_error() -> None:
    program = "import os; os.read(0, 1); os.write(1, b'last words\\n' * 5000); os._exit(0)"
    async with opened(*BARE, program) as connection:
        connection.send(b"go")
        await gone(connection)
        assert connection.sink.frames == [b"last words"] * 5000


async def test_what_a_server_wrote_is_read_even_if_its_death_is_heard_of_first() -> None:
    class ReadingOnlyStderr(SteppedReactor):
        """Never tells that stdout can be read: as if there had been no turn for it yet."""

        watched = 0

        def watch_read(self, fd: int, fn: Callable[[], object], /) -> None:
            self.watched += 1
            if self.watched == 1:
                super().watch_read(fd, fn)

    program = "import os; os.read(0, 1); os.write(1, b'x' * 99 + b'\\n'); os._exit(0)"
    async with opened(*BARE, program, wrap=ReadingOnlyStderr) as connection:
        connection.send(b"go")
        await gone(connection)
        assert connection.sink.frames == [b"x" * 99]


async def test_a_server_that_dies_at_once_is_told_by_an_error_and_not_by_a_hang() -> None:
    async with connected("false") as connection:
        with anyio.fail_after(30):
            try:
                await connection.transport.open(connection.sink)
            except ServerGoneError as error:  # it was faster than we are
                status = error.exit_status
            else:
                status = (await gone(connection)).exit_status
        assert status == 1


async def test_a_server_that_closes_its_output_and_lives_is_gone_within_a_second() -> None:
    program = "import os, signal; os.write(1, b'%d\\n' % os.getpid()); os.close(1); signal.pause()"
    async with opened(*BARE, program) as connection:
        pid = int(await connection.sink.frame(0))
        with anyio.fail_after(1):
            assert (await gone(connection)).exit_status is None
        await until_dead([pid])


async def test_a_server_that_closes_its_input_and_lives_is_gone_and_got_nothing() -> None:
    program = "import os, signal; os.close(0); os.write(1, b'ready\\n'); signal.pause()"
    async with opened(*BARE, program) as connection:
        await connection.sink.frame(0)
        ticket = connection.send(b"hello")
        with anyio.fail_after(1):
            await gone(connection)
        assert (ticket.end, ticket.delivery) == ("lost", Delivery.NOT_SENT)


async def test_a_frame_that_waits_when_the_server_dies_is_lost() -> None:
    async with opened(*BARE, "import os, signal; os.read(0, 1); os._exit(0)") as connection:
        begun = connection.send(b"x" * (3 * 1024 * 1024))
        waiting = connection.send(b"next")
        await gone(connection)
        assert (begun.end, begun.delivery) == ("lost", Delivery.MAYBE_SENT)
        assert (waiting.end, waiting.delivery) == ("lost", Delivery.NOT_SENT)


async def test_after_a_close_nothing_can_be_sent_and_the_loss_was_told_once() -> None:
    async with opened("cat") as connection:
        await connection.transport.close()
        with pytest.raises(LocalProtocolError):
            connection.send(b"late")
        assert len(connection.sink.lost) == 1


async def test_before_it_is_open_nothing_can_be_sent() -> None:
    async with connected("cat") as connection:
        with pytest.raises(LocalProtocolError):
            connection.send(b"early")


async def test_a_transport_is_opened_once() -> None:
    async with opened("cat") as connection:
        with pytest.raises(LocalProtocolError):
            await connection.transport.open(connection.sink)


# ---- stderr


@pytest.mark.requirement("T-2")
async def test_a_flood_on_stderr_holds_up_nobody_and_only_its_end_is_kept() -> None:
    program = (
        "import os\n"
        "for _ in range(1600): os.write(2, b'e' * 65536)\n"
        "os.write(2, b'the end'); os.write(1, b'ready\\n'); os.read(0, 1)"
    )
    async with opened(*BARE, program) as connection:
        assert await connection.sink.frame(0) == b"ready"
        await connection.transport.close()
        tail = connection.transport.stderr_tail
        assert (len(tail), tail[-8:]) == (ClientLimits().stderr_tail_bytes_max, "ethe end")


async def test_one_byte_over_the_bound_the_first_of_stderr_is_dropped() -> None:
    limits = ClientLimits(stderr_tail_bytes_max=4)
    async with opened("sh", "-c", "read x; printf abcde >&2", limits=limits) as connection:
        connection.send(b"go")
        assert (await gone(connection)).stderr_tail == "bcde"


async def test_a_bound_of_nothing_keeps_nothing_of_stderr() -> None:
    limits = ClientLimits(stderr_tail_bytes_max=0)
    async with opened("sh", "-c", "read x; printf abcde >&2", limits=limits) as connection:
        connection.send(b"go")
        assert (await gone(connection)).stderr_tail == ""


@pytest.mark.requirement("T-2")
async def test_the_end_of_stderr_is_a_field_of_the_error_without_control_characters() -> None:
    program = r"read x; printf 'bad \033[31mthing\a\b\r\n\302\233 \342\200\256 \377\n' >&2; exit 2"
    async with opened("sh", "-c", program) as connection:
        connection.send(b"go")
        error = await gone(connection)
        assert error.stderr_tail == "bad [31mthing\n  \N{REPLACEMENT CHARACTER}\n"
        assert "bad" not in str(error)


# ---- starting


async def start_error(*command: str, directory: str = "") -> StartError:
    async with connected(*command, directory=directory) as connection:
        with pytest.raises(StartError) as raised:
            await connection.transport.open(connection.sink)
        assert connection.sink.lost == []
    return raised.value


async def test_a_command_that_does_not_exist_is_named() -> None:
    error = await start_error("no-such-command")
    assert str(error) == "cannot start 'no-such-command': no such file or directory"
    assert error.server == "srv"


async def test_a_file_that_cannot_be_executed_is_named(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_text("data")
    assert str(await start_error(str(file))) == f"cannot start '{file}': permission denied"


async def test_a_program_of_no_known_format_is_named(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_text("data")
    file.chmod(0o755)
    assert str(await start_error(str(file))) == f"cannot start '{file}': exec format error"


async def test_a_directory_that_does_not_exist_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    error = await start_error("cat", directory=missing)
    assert str(error) == f"cannot start the server in '{missing}': no such file or directory"


async def test_where_there_is_no_descriptor_left_a_start_fails_and_says_so() -> None:
    async with connected("cat") as connection:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            with pytest.raises(StartError, match="cannot start the server: "):
                await connection.transport.open(connection.sink)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("command", [(), ("echo", "one\0two")], ids=["none", "NUL"])
async def test_what_would_arrive_as_another_command_is_refused_here(command: Sequence[str]) -> None:
    assert "one or more arguments without NUL" in str(await start_error(*command))


async def test_a_command_over_the_bound_is_refused() -> None:
    assert "bound" in str(await start_error("echo", "x" * REQUEST_BYTES_MAX))


async def test_a_large_command_within_the_bound_is_started() -> None:
    # the kernel's own bound for one argument is as low; two of them fit
    half = "x" * (REQUEST_BYTES_MAX // 2 - 1024)
    async with opened("sh", "-c", 'echo "$@"; read x', "sh", half, half) as connection:
        assert len(await connection.sink.frame(0)) == 2 * len(half) + 1


async def test_a_server_gets_the_allow_list_and_the_declared_variables_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROBE_TOKEN", "secret")
    monkeypatch.setenv("LC_TIME", "C")
    program = (
        "import os\nos.write(1, repr(sorted(os.environ.items())).encode() + b'\\n'); os.read(0, 1)"
    )
    declared = {"PROBE_DECLARED": "a=b"}
    async with opened(*BARE, program, environment=declared) as connection:
        printed = (await connection.sink.frame(0)).decode()
    assert "PROBE_TOKEN" not in printed
    assert "('LC_TIME', 'C')" in printed
    assert "('PROBE_DECLARED', 'a=b')" in printed


async def test_a_server_has_three_descriptors_and_a_session_of_its_own(tmp_path: Path) -> None:
    inheritable = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(inheritable, True)
    program = (
        "import os\n"
        "fds = sorted(os.listdir('/proc/self/fd'), key=int)[:-1]\n"  # the last lists them
        "os.write(1, f'{fds} {os.getsid(0) == os.getpid()}\\n'.encode()); os.read(0, 1)"
    )
    async with opened(*BARE, program) as connection:
        assert await connection.sink.frame(0) == b"['0', '1', '2'] True"
    os.close(inheritable)


async def test_a_server_starts_in_its_directory(tmp_path: Path) -> None:
    async with connected("sh", "-c", "pwd; read x", directory=str(tmp_path)) as connection:
        await connection.transport.open(connection.sink)
        assert await connection.sink.frame(0) == str(tmp_path).encode()


async def test_a_server_gets_the_signals_that_the_supervisor_ignores() -> None:
    async with opened("sh", "-c", "grep SigIgn /proc/self/status; read x") as connection:
        ignored = int((await connection.sink.frame(0)).split()[1], 16)
    assert [
        number
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE)
        if ignored & (1 << (number - 1))
    ] == []


def open_descriptors() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


async def test_starts_and_closes_leave_no_descriptor_open() -> None:
    async with opened("cat") as connection:
        before = open_descriptors()
        for command in ("cat", "false", "no-such-command"):
            other = connection.another(command)
            if command == "no-such-command":
                with pytest.raises(StartError):
                    await other.transport.open(other.sink)
            else:
                with contextlib.suppress(ServerGoneError):
                    await other.transport.open(other.sink)
            await other.transport.close()
        assert open_descriptors() == before


async def test_many_servers_start_side_by_side() -> None:
    async with opened("cat") as connection:
        others = [connection.another("cat") for _ in range(10)]
        async with anyio.create_task_group() as starting:
            for other in others:
                starting.start_soon(other.transport.open, other.sink)
        for number, other in enumerate(others):
            other.send(b"%d" % number)
        assert [await other.sink.frame(0) for other in others] == [b"%d" % n for n in range(10)]
        async with anyio.create_task_group() as closing:
            for other in others:
                closing.start_soon(other.transport.close)


async def ends_while_it_starts(
    ending: Callable[[int, Connection], Awaitable[object]], error: type[Exception]
) -> str:
    """Start a server under a supervisor that is stopped, and end one of them; return what is told."""
    told: list[str] = []
    async with opened("cat") as connection:
        other = connection.another("cat")

        async def start() -> None:
            with pytest.raises(error) as caught:
                await other.transport.open(other.sink)
            told.append(str(caught.value))

        (supervisor,) = supervisors(os.getpid())
        os.kill(supervisor, signal.SIGSTOP)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(start)
                await anyio.wait_all_tasks_blocked()
                await ending(supervisor, other)
    (only,) = told
    return only


async def test_a_supervisor_that_dies_while_it_starts_a_server_is_what_is_told() -> None:
    async def kill(supervisor: int, other: Connection) -> None:
        os.kill(supervisor, signal.SIGKILL)

    told = await ends_while_it_starts(kill, StartError)

    assert told == "the supervisor of servers ended while it started the server"


async def test_what_is_closed_while_it_is_opened_is_not_open_after_all() -> None:
    async def close(supervisor: int, other: Connection) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(other.transport.close)
            await anyio.wait_all_tasks_blocked()
            os.kill(supervisor, signal.SIGCONT)

    told = await ends_while_it_starts(close, ServerGoneError)

    assert told == "the connection was closed"


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_where_trees_cannot_be_ended_no_server_is_started(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    with pytest.raises(StartError, match=platform):
        require_supervision()


def test_where_there_is_no_python_for_the_supervisor_no_server_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(StartError, match="no Python"):
        require_supervision()


def test_where_the_kernel_tells_of_no_process_no_server_is_started(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="without /proc"):
        require_supervision(processes=tmp_path)


async def test_a_killed_server_is_really_dead_when_its_loss_is_told() -> None:
    program = "import os\nos.write(1, b'%d\\n' % os.getpid()); os.read(0, 1)"
    async with opened(*BARE, program) as connection:
        pid = int(await connection.sink.frame(0))
        os.kill(pid, signal.SIGKILL)
        await gone(connection)
        assert not is_alive(pid)


# ---- cancellation


def below_keepers() -> dict[int, str]:
    """What lives below the keepers of this process's supervisors."""
    keepers = [keeper for supervisor in supervisors(os.getpid()) for keeper in children(supervisor)]
    return {pid: line for keeper in keepers for pid, line in children(keeper).items()}


@pytest.mark.requirement("I26")
async def test_a_cancelled_close_still_ends_the_tree() -> None:
    program = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "os.write(1, b'%d\\n' % os.getpid())\n"
        "while True: signal.pause()"
    )
    async with opened(*BARE, program) as connection:
        pid = int(await connection.sink.frame(0))
        with anyio.CancelScope() as scope:
            scope.cancel()
            await connection.transport.close()
        assert not is_alive(pid)


@pytest.mark.requirement("I26")
@pytest.mark.parametrize("turns", range(12))
async def test_a_start_that_is_cancelled_at_any_turn_leaves_no_process(
    tmp_path: Path, turns: int
) -> None:
    note = tmp_path / "pid"
    program = f"import os, signal; open({str(note)!r}, 'w').write(str(os.getpid())); signal.pause()"
    async with connected(*BARE, program) as connection:
        with anyio.CancelScope() as scope:

            def cancel(left: int) -> None:
                if left:
                    connection.reactor.soon(cancel, left - 1)
                else:
                    scope.cancel()

            cancel(turns)
            await connection.transport.open(connection.sink)
        await connection.transport.close()
        started = int(note.read_text() or 0) if note.exists() else 0
        assert not started or not is_alive(started)
        assert below_keepers() == {}
