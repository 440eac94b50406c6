"""One run of tests in a copy of the tree, in a child that can neither outlive it nor multiply.

A mutant may loop, fill the memory or start processes without end. Whatever a run has started is
found below this process, which takes the place of a dead parent, and is killed by its own id.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

import pytest

from mcp_client.transports.stdio.process_tree import (
    become_subreaper,
    descendants,
    die_with_parent,
)

__all__ = [
    "LOG",
    "FirstFailure",
    "Ran",
    "be_the_child",
    "end_all",
    "run_pytest",
    "run_tests",
    "settle_in",
    "stand_in",
    "watch",
    "write_no_bytecode",
]

PROCESSES_MAX: Final = 200
"""Processes that one run may have at a time: the busiest of the tests starts some forty, and what it kills takes a while on a busy machine."""
MEMORY_BYTES_MAX: Final = 6 * 2**30
ROOT: Final = str(Path(__file__).resolve().parents[2])
LOG: Final = "last-run.log"
OWN: Final = ("orchestrator", "mcp_client", "policies", "tests")
HANG_SECONDS: Final = 60
"""After which a test that waits for what never comes is ended, and has failed."""
LOOK_SECONDS: Final = 0.02
ROUNDS_MAX: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What came of a run. `failed` names the first test that failed; "" if all passed."""

    failed: str


def settle_in() -> None:
    """Become the process that orphans of a run fall to."""
    become_subreaper()


def run_tests(folder: Path, tests: Sequence[str], *, seconds: float, keep_bytecode: bool) -> Ran:
    """Run these tests of the copy in `folder` in a child until the first that fails."""
    report, written = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(report)
        be_the_child(
            folder,
            lambda: run_pytest(tests, [FirstFailure(written)]),
            written,
            parent,
            seconds=seconds,
            keep_bytecode=keep_bytecode,
        )
    os.close(written)
    why = watch(child, seconds)
    end_all()
    with os.fdopen(report, "rb") as stream:
        failed = stream.read().decode("utf-8", "replace")
    return Ran(failed=failed or why)


def watch(child: int, seconds: float) -> str:
    """Wait for the child; return why its run is to be taken for a failure, "" if it passed."""
    deadline = time.monotonic() + seconds
    while True:
        # like init: what its parent has left and is dead is no process any more
        while (pid := (ended := os.waitpid(-1, os.WNOHANG))[0]) not in (0, child):
            pass
        if pid:
            code = os.waitstatus_to_exitcode(ended[1])
            return "" if code == 0 else f"(the run ended with {code})"
        if len(_below()) > PROCESSES_MAX:
            return "(too many processes)"
        if time.monotonic() > deadline:
            return "(the run did not end)"
        time.sleep(LOOK_SECONDS)  # noqa: TID251  # a program's own pace, not a test's


def end_all() -> None:
    """Kill and reap everything below this process, until nothing is left."""
    for _ in range(ROUNDS_MAX):
        below = _below()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in below:
                _signal(pid, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(LOOK_SECONDS / 2)  # noqa: TID251  # until the kernel has let them go
    message = "processes of a mutant cannot be ended"
    raise RuntimeError(message)


def _below() -> list[int]:
    own = os.getpid()
    return [pid for pid in descendants([own]) if pid != own]


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def be_the_child(
    folder: Path,
    act: Callable[[], int],
    report: int,
    parent: int,
    *,
    seconds: float | None,
    keep_bytecode: bool,
) -> NoReturn:
    """Do `act` in the copy, and leave: nothing of the parent's own is ever run here."""
    code = 70
    try:
        os.setsid()
        if not die_with_parent(signal.SIGKILL, parent):
            os._exit(code)
        if seconds is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        log = os.open(folder / LOG, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for number in (0, 1, 2):
            os.dup2(log, number)
        os.chdir(folder)
        _forget_the_original(folder, keep_bytecode)
        code = act()
    except BaseException as error:  # noqa: BLE001  # this process is not the program's own
        os.write(report, f"(the run could not begin: {error!r})".encode())
        code = 71
    finally:
        os._exit(code)


def _forget_the_original(folder: Path, keep_bytecode: bool) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
        del sys.modules[name]
    sys.path[:] = [str(folder), *(each for each in sys.path if each not in ("", ROOT))]
    sys.path_importer_cache.clear()
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if not keep_bytecode:
        write_no_bytecode()


def write_no_bytecode() -> None:
    """Leave none behind: a mutant of the same size in the same second would be taken for another."""
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


def stand_in(target: Path, source: str) -> None:
    """Write a module's source in place of what is there, and forget what was compiled of that."""
    for stale in (target.parent / "__pycache__").glob(f"{target.stem}.*"):
        stale.unlink()
    target.write_text(source, "utf-8")


class FirstFailure:
    """Tells which test failed first, and ends the process."""

    def __init__(self, report: int) -> None:
        self._report = report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(f"{report.nodeid} (collecting)")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: int | pytest.ExitCode) -> None:
        """Leave when the last test has ended: nobody reads the summary, which costs seconds."""
        os._exit(int(exitstatus))

    def _tell(self, name: str) -> None:
        os.write(self._report, name.encode()[:2000])
        os._exit(1)


def run_pytest(tests: Sequence[str], plugins: Sequence[object]) -> int:
    """Run these tests, or what a plugin makes of them; the same examples each time."""
    import hypothesis

    hypothesis.settings.register_profile(
        "mutation",
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
        database=None,
        derandomize=True,
        # a busy machine is no failure
        deadline=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("mutation")
    words = ["-q", "-x", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANG_SECONDS}"]
    # plugins are among what was loaded before
    words += ["-W", "ignore:Module already imported:pytest.PytestAssertRewriteWarning", *tests]
    return int(pytest.main(words, plugins=plugins))
