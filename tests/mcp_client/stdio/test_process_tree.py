"""Nothing that a server started is alive after it: whatever it did, and whatever ended it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from mcp_client.net.reactor import open_reactor
from mcp_client.protocol.errors import ServerGoneError, StartError
from mcp_client.protocol.limits import ClientLimits
from mcp_client.transports.stdio import supervisor_main
from mcp_client.transports.stdio.process_tree import offspring
from mcp_client.transports.stdio.server_process import SWEEP_STEP_SECONDS, ServerProcess, sweep
from mcp_client.transports.stdio.supervisor_main import REQUEST_BYTES_MAX
from tests.mcp_client.stdio.harness import (
    BARE,
    Connection,
    children,
    connected,
    is_alive,
    opened,
    supervisors,
    until_dead,
)

pytestmark = pytest.mark.subprocess

ROOT = Path(__file__).parents[3]
SERVERS = ROOT / "tests" / "servers"
TREE = (*BARE[:-1], str(SERVERS / "tree.py"))
WAYS = ("child", "session", "daemon", "deaf", "bare")


@pytest.fixture
def anyio_backend() -> str:
    """What ends processes stands outside of the loop: one loop is enough for it."""
    return "asyncio"


async def pids(connection: Connection, count: int) -> list[int]:
    return [int(await connection.sink.frame(number)) for number in range(count)]


@pytest.mark.parametrize("way", WAYS)
async def test_after_close_no_descendant_is_alive_however_it_was_started(way: str) -> None:
    async with opened(*TREE, way, "stay") as connection:
        tree = await pids(connection, 2)
        assert all(is_alive(pid) for pid in tree)
        with anyio.fail_after(30):
            await connection.transport.close()
        assert [pid for pid in tree if is_alive(pid)] == []


@pytest.mark.requirement("S-30", "T-6", "L-7")
async def test_after_close_a_server_that_listens_to_nothing_is_dead() -> None:
    async with opened(*TREE, *WAYS, "deaf") as connection:
        tree = await pids(connection, 1 + len(WAYS))
        with anyio.fail_after(30):
            await connection.transport.close()
        assert [pid for pid in tree if is_alive(pid)] == []


async def test_after_close_the_children_of_a_wrapper_are_dead() -> None:
    wrapper = "sleep 600 & echo $!; (setsid sleep 600 & echo $!); echo $$; wait"
    async with opened("sh", "-c", wrapper) as connection:
        tree = await pids(connection, 3)
        with anyio.fail_after(30):
            await connection.transport.close()
        assert [pid for pid in tree if is_alive(pid)] == []


async def test_what_a_server_leaves_behind_when_it_exits_is_ended_soon_and_without_a_close() -> (
    None
):
    patient = ClientLimits(close_seconds_max=30.0)
    async with opened(*TREE, *WAYS, "stay", limits=patient) as connection:
        tree = await pids(connection, 1 + len(WAYS))
        connection.send(b"go")
        assert isinstance(await connection.sink.error(), ServerGoneError)
        await until_dead(tree)


@pytest.mark.requirement("T-6", "L-7")
async def test_a_server_gets_the_end_of_its_input_first_and_may_end_in_its_own_time(
    tmp_path: Path,
) -> None:
    note = tmp_path / "note"
    polite = f"import sys; sys.stdin.read(); open({str(note)!r}, 'w').write('orderly')"
    limits = ClientLimits(close_seconds_max=4.0)
    async with opened(*BARE, polite, limits=limits) as connection:
        with anyio.fail_after(4):
            await connection.transport.close()
    assert note.read_text() == "orderly"


@pytest.mark.requirement("S-30", "T-6", "L-7")
async def test_a_server_that_stays_after_its_input_ended_gets_sigterm_before_sigkill(
    tmp_path: Path,
) -> None:
    note = tmp_path / "note"
    program = (
        "import os, signal\n"
        "def end(*_):\n"
        f"    open({str(note)!r}, 'w').write('terminated'); os._exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "os.write(1, b'ready\\n')\n"
        "while True: signal.pause()"
    )
    async with opened(*BARE, program) as connection:
        await connection.sink.frame(0)
        await connection.transport.close()
    assert note.read_text() == "terminated"


async def test_close_can_be_called_again_and_by_two_at_once() -> None:
    async with opened(*TREE, "stay") as connection:
        (server,) = await pids(connection, 1)
        async with anyio.create_task_group() as closing:
            closing.start_soon(connection.transport.close)
            closing.start_soon(connection.transport.close)
        await connection.transport.close()
        assert not is_alive(server)
        assert len(connection.sink.lost) == 1


@asynccontextmanager
async def a_host(
    *command: str, lines: int, way: str = "plain"
) -> AsyncGenerator[tuple[int, list[int]]]:
    """A host in a process of its own, with a server; its id and the ids of the server's tree."""
    program = [sys.executable, str(SERVERS / "host.py"), way, str(lines), *command]
    lines += way == "forks"
    process = await anyio.open_process(program, stderr=None, start_new_session=True)
    try:
        assert process.stdout is not None
        printed = b""
        with anyio.fail_after(30):
            while printed.count(b"\n") < lines:
                printed += await process.stdout.receive()
        yield process.pid, [int(line) for line in printed.split()]
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with anyio.CancelScope(shield=True):
            await process.aclose()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
async def test_when_the_host_is_killed_nothing_of_its_servers_is_alive_two_seconds_later(
    number: signal.Signals,
) -> None:
    async with a_host(*TREE, *WAYS, "deaf", lines=1 + len(WAYS)) as (host, tree):
        (supervisor,) = supervisors(host)
        os.kill(host, number)
        await until_dead([*tree, supervisor], seconds=2.5)


async def test_a_process_that_the_host_forked_keeps_no_server_alive_after_it() -> None:
    async with a_host(*TREE, "deaf", lines=1, way="forks") as (host, (forked, server)):
        try:
            os.kill(host, signal.SIGKILL)
            await until_dead([server], seconds=2.5)
            assert is_alive(forked)
        finally:
            os.kill(forked, signal.SIGKILL)


async def test_when_the_supervisor_dies_its_servers_end_though_the_host_is_stopped() -> None:
    async with a_host(*TREE, *WAYS, "deaf", lines=1 + len(WAYS)) as (host, tree):
        (supervisor,) = supervisors(host)
        os.kill(host, signal.SIGSTOP)
        os.kill(supervisor, signal.SIGKILL)
        await until_dead(tree)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["int", "hup"])
async def test_the_signals_of_a_terminal_end_neither_supervisor_nor_keeper(
    number: signal.Signals,
) -> None:
    async with opened("cat") as connection:
        (supervisor,) = supervisors(os.getpid())
        for pid in (supervisor, *children(supervisor)):
            os.kill(pid, number)
        other = connection.another("cat")
        await other.transport.open(other.sink)
        for each in (connection, other):
            each.send(b"still here")
            assert await each.sink.frame(0) == b"still here"
        assert (supervisors(os.getpid()), connection.sink.lost) == ([supervisor], [])
        await other.transport.close()


async def test_ctrl_c_on_the_hosts_terminal_reaches_neither_supervisor_nor_servers() -> None:
    async with a_host(*TREE, "stay", lines=1) as (host, tree):
        (supervisor,) = supervisors(host)
        assert os.getpgid(host) == host
        assert {os.getsid(supervisor), os.getsid(tree[0])} & {os.getsid(host)} == set()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["kill", "term"])
async def test_when_the_supervisor_dies_its_servers_end_with_a_typed_error(
    number: signal.Signals,
) -> None:
    async with opened(*TREE, *WAYS, "deaf") as connection:
        tree = await pids(connection, 1 + len(WAYS))
        (supervisor,) = supervisors(os.getpid())
        os.kill(supervisor, number)
        assert isinstance(await connection.sink.error(), ServerGoneError)
        await until_dead(tree)


async def test_after_the_supervisor_died_the_next_start_makes_a_new_one() -> None:
    async with opened(*TREE, "stay") as connection:
        (old,) = supervisors(os.getpid())
        os.kill(old, signal.SIGKILL)
        await connection.sink.error()
        other = connection.another(*TREE, "stay")
        await other.transport.open(other.sink)
        assert is_alive((await pids(other, 1))[0])
        assert supervisors(os.getpid()) != [old]
        await other.transport.close()


async def test_a_server_that_kills_its_keeper_does_not_get_its_tree_away() -> None:
    program = (
        "import os, signal, sys\n"
        "if os.fork() == 0: os.setsid(); os.write(1, b'%d\\n' % os.getpid()); signal.pause()\n"
        "os.write(1, b'%d\\n' % os.getpid()); os.read(0, 1); os.kill(os.getppid(), 9)\n"
        "signal.pause()"
    )
    async with opened(*BARE, program) as connection:
        tree = await pids(connection, 2)
        connection.send(b"go")
        assert isinstance(await connection.sink.error(), ServerGoneError)
        await until_dead(tree)


@pytest.mark.parametrize("garbage", [b"x", b"/\x00nine\x00true", b"\x00" * 100], ids=repr)
def test_a_supervisor_that_gets_garbage_ends(garbage: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        program = [sys.executable, "-I", "-S", supervisor_main.__file__, str(theirs.fileno())]
        with theirs:
            process = subprocess.Popen(program, pass_fds=[theirs.fileno()], env={})
        ours.send(garbage)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize(
    "packet",
    [
        # what arrives of it is a whole request, with a long argument
        pytest.param(b"/\x002\x00true\x00" + b"x" * REQUEST_BYTES_MAX, id="cut off"),
        pytest.param(b"/\x00one\x00true", id="no count"),
        pytest.param(b"/\x000\x00true", id="no command"),
        pytest.param(b"/\x002\x00true", id="fewer than counted"),
        pytest.param(b"/\x001\x00true\x00NAME", id="a variable without a value"),
        pytest.param(b"/\x001\x00true\x00=value", id="a variable without a name"),
    ],
)
def test_a_request_that_makes_no_sense_starts_no_server_and_ends_the_supervisor(
    packet: bytes,
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, told:
        program = [sys.executable, "-I", "-S", supervisor_main.__file__, str(theirs.fileno())]
        with theirs:
            process = subprocess.Popen(program, pass_fds=[theirs.fileno()], env={})
        with control, open(os.devnull, "r+b") as null:
            socket.send_fds(ours, [packet], [*[null.fileno()] * 3, control.fileno()])
        told.settimeout(30)
        assert told.recv(64) == b""
        assert process.wait(timeout=30) == 0


BOUNDED = """
from mcp_client.transports.stdio import supervisor_main
supervisor_main.KILL_SECONDS_MAX = float({seconds!r})
supervisor_main.main()
"""


@pytest.mark.parametrize(("seconds", "last"), [("inf", b"gone"), ("0", b"left")])
def test_a_keeper_kills_until_nothing_is_left_or_its_time_is_over(
    seconds: str, last: bytes
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, told:
        program = [sys.executable, "-c", BOUNDED.format(seconds=seconds), str(theirs.fileno())]
        with theirs:
            process = subprocess.Popen(program, pass_fds=[theirs.fileno()], cwd=ROOT)
        with control, open(os.devnull, "r+b") as null:
            packet = b"/\x002\x00/bin/sleep\x00600"
            socket.send_fds(ours, [packet], [*[null.fileno()] * 3, control.fileno()])
        told.settimeout(30)
        assert told.recv(64).startswith(b"started ")
        told.send(b"kill")
        words = [told.recv(64).partition(b" ")[0] for _ in range(2)]
        ours.shutdown(socket.SHUT_WR)
        process.wait(timeout=30)
    assert (words[0] if last == b"left" else words[1]) == last


async def test_servers_of_one_host_share_one_supervisor() -> None:
    async with opened(*TREE, "stay") as connection:
        other = connection.another(*TREE, "stay")
        await other.transport.open(other.sink)
        assert len(supervisors(os.getpid())) == 1
        await other.transport.close()


async def test_keepers_that_end_while_the_supervisor_is_stopped_are_all_collected_after_it() -> (
    None
):
    async with opened(*TREE, "stay") as connection:
        ending = [connection.another(*TREE, "stay") for _ in range(2)]
        for each in ending:
            await each.transport.open(each.sink)
        (supervisor,) = supervisors(os.getpid())
        os.kill(supervisor, signal.SIGSTOP)
        for each in ending:
            await each.transport.close()
        os.kill(supervisor, signal.SIGCONT)
        # it collects before it starts another
        other = connection.another(*TREE, "stay")
        await other.transport.open(other.sink)
        assert len(offspring(supervisor)) == 2
        await other.transport.close()


async def test_the_end_of_one_server_leaves_another_alone() -> None:
    async with opened(*TREE, "stay") as connection:
        other = connection.another(*TREE, *WAYS, "deaf")
        await other.transport.open(other.sink)
        await pids(other, 1 + len(WAYS))
        await other.transport.close()
        (server,) = await pids(connection, 1)
        assert (is_alive(server), connection.sink.lost) == (True, [])


async def test_after_the_supervisor_is_closed_no_server_can_be_started() -> None:
    async with connected(*TREE, "stay") as connection:
        await connection.supervisor.close()
        with pytest.raises(StartError):
            await connection.transport.open(connection.sink)


async def test_a_supervisor_that_does_not_stay_alive_is_an_error_and_not_a_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    async with connected(*TREE, "stay") as connection:
        with anyio.fail_after(30), pytest.raises(StartError):
            await connection.transport.open(connection.sink)


@contextmanager
def sleepers(count: int) -> Generator[list[int]]:
    """Children of this process that end when they are killed, and not before."""
    started = [subprocess.Popen(["sleep", "600"]) for _ in range(count)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


async def test_a_sweep_goes_on_until_it_meets_nothing_that_lives() -> None:
    with sleepers(2) as born:
        rounds = 0

        def roots() -> list[int]:
            """One in the first round, and another that was born meanwhile."""
            nonlocal rounds
            rounds += 1
            return born[:rounds]

        done = anyio.Event()
        async with open_reactor() as reactor:
            sweep(reactor, roots, done.set)
            with anyio.fail_after(30):
                await done.wait()
        assert [pid for pid in born if is_alive(pid)] == []


async def test_a_sweep_that_takes_long_lets_others_run() -> None:
    order: list[str] = []
    done = anyio.Event()
    async with open_reactor() as reactor:

        def roots() -> list[int]:
            """Take all of a turn."""
            order.append("round")
            until = reactor.now() + SWEEP_STEP_SECONDS
            while reactor.now() < until:
                pass
            return []

        reactor.soon(order.append, "other")
        sweep(reactor, roots, done.set)
        with anyio.fail_after(30):
            await done.wait()
    assert order[:3] == ["round", "other", "round"]


IDLE_KEEPER = """
import os, signal, sys
if (server := os.fork()) == 0:
    os.execvp("sleep", ["sleep", "600"])
os.write(int(sys.argv[1]), b"started %d %d" % (server, os.getpid()))
while True: signal.pause()
"""
"""A keeper that takes no command, as one that is stopped whenever it is woken."""


@contextmanager
def idle_keeper() -> Generator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """The host's end of its socket, and the keeper."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(0)
    with theirs:
        program = [*BARE, IDLE_KEEPER, str(theirs.fileno())]
        keeper = subprocess.Popen(program, pass_fds=[theirs.fileno()])
    try:
        yield ours, keeper
    finally:
        keeper.kill()
        keeper.wait()


async def test_where_a_keeper_does_not_do_its_work_the_host_ends_its_tree_and_the_keeper() -> None:
    with idle_keeper() as (ours, keeper):
        async with open_reactor() as reactor:
            process = ServerProcess(reactor, ours, list[int])
            with anyio.fail_after(30):
                assert await process.started() is None
                process.kill()
                await process.gone()
        await until_dead([process.pid])
        assert keeper.wait(timeout=30) == -signal.SIGKILL
