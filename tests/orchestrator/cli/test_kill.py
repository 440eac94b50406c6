"""The demo, killed or interrupted at any moment: no process is left, and the record verifies."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from random import Random

import pytest

from orchestrator.audit.read import verify_file
from tests.orchestrator.cli.repository import environment, make_repository
from tests.orchestrator.cli.running import Finished

pytestmark = [
    pytest.mark.subprocess,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]

SECONDS_MAX = 20.0


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("kill") / "thing")


class Running:
    """One demo under way."""

    def __init__(self, home: Path, repository: Path) -> None:
        self.home = home
        self._process = subprocess.Popen(
            [
                sys.executable,
                *("-m", "orchestrator.cli", "demo", str(repository)),
                *("--out", str(home / "made")),
            ],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []

    @property
    def pid(self) -> int:
        return self._process.pid

    def until(self, enough: Callable[[str], object]) -> bool:
        """Read its lines until one is enough; False if it ended before that."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line)
            if enough(line):
                return True
        return False

    def send(self, number: signal.Signals) -> Finished:
        """Send a signal, and wait for its end."""
        self._process.send_signal(number)
        out, err = self._process.communicate(timeout=SECONDS_MAX)
        return Finished(self._process.returncode, out, "".join(self.lines) + err)

    def close(self) -> None:
        """End it, if a test has not."""
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def demo_under_way(tmp_path: Path, repository: Path) -> Generator[Running]:
    own = shutil.copytree(repository, tmp_path / "thing")  # by which its servers are known
    running = Running(tmp_path / "home", own)
    try:
        yield running
    finally:
        running.close()


def descendants(of: int) -> set[int]:
    """Return the processes below one, however deep."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                after_name = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(after_name[1])
    found = {of}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {of}


def alive(pids: set[int]) -> dict[int, str]:
    """Return those that still run, with what they run. A dead one that nobody reaped does not run."""
    found: dict[int, str] = {}
    for pid in pids:
        with contextlib.suppress(OSError, IndexError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in ("Z", "X"):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                found[pid] = command.decode(errors="replace")
    return found


def mentioning(text: str) -> Mapping[int, str]:
    """Return every process that has a text in its command or its environment, but this one."""
    found: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (folder / "cmdline").read_bytes()
            if text.encode() in command + (folder / "environ").read_bytes():
                found[int(folder.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def gone(pids: set[int], place: Path) -> None:
    """Wait until none of them runs, nor anything else that knows this test's folder."""
    for pid in pids | set(mentioning(str(place))):
        with contextlib.suppress(ProcessLookupError):
            ends = os.pidfd_open(pid)
            try:
                poll = select.poll()
                poll.register(ends, select.POLLIN)
                poll.poll(SECONDS_MAX * 1000)
            finally:
                os.close(ends)
    assert alive(pids) == {}
    assert mentioning(str(place)) == {}


def logs_of(running: Running) -> list[Path]:
    return list(running.home.glob("state/runs/*/audit.jsonl"))


MOMENTS: Mapping[str, Callable[[str], object]] = {
    "its first line": lambda line: line.startswith("remit demo"),
    "the first pin": lambda line: line.startswith("pinned git"),
    "the last pin": lambda line: line.startswith("pinned files"),
    "the first answer": lambda line: line.startswith("ok"),
    "git being taken away": lambda line: line.startswith("note"),
}


@pytest.mark.requirement("I24")
@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_leaves_no_process_and_a_record_that_verifies(
    tmp_path: Path, repository: Path, moment: str
) -> None:
    with demo_under_way(tmp_path, repository) as running:
        assert running.until(MOMENTS[moment])
        below = descendants(running.pid)

        finished = running.send(signal.SIGKILL)

        assert finished.code == -signal.SIGKILL
        gone(below, tmp_path)
        assert all(verify_file(log).ok for log in logs_of(running))
        assert logs_of(running) or moment == "its first line"


@pytest.mark.parametrize("seed", range(2))
def test_kill_9_after_any_number_of_events_leaves_nothing(
    tmp_path: Path, repository: Path, seed: int
) -> None:
    wanted = Random(seed).randint(4, 16)
    with demo_under_way(tmp_path, repository) as running:
        running.until(lambda _: len(running.lines) >= wanted)
        below = descendants(running.pid)

        running.send(signal.SIGKILL)

        gone(below, tmp_path)
        assert all(verify_file(log).ok for log in logs_of(running))


def test_there_is_something_to_leave_behind(tmp_path: Path, repository: Path) -> None:
    with demo_under_way(tmp_path, repository) as running:
        running.until(MOMENTS["the first answer"])
        commands = " ".join(alive(descendants(running.pid)).values())
        running.send(signal.SIGKILL)

        for server in ("mcp_server_git", "mcp_server_time", "files_server.py", "supervisor"):
            assert server in commands


@pytest.mark.parametrize("moment", ["its first line", "the last pin", "the first answer"])
def test_an_interrupt_ends_it_with_130_and_leaves_nothing(
    tmp_path: Path, repository: Path, moment: str
) -> None:
    with demo_under_way(tmp_path, repository) as running:
        assert running.until(MOMENTS[moment])
        below = descendants(running.pid)

        finished = running.send(signal.SIGINT)

        assert finished.code == 130
        assert "Traceback" not in finished.err
        gone(below, tmp_path)
        assert all(verify_file(log).ok for log in logs_of(running))
