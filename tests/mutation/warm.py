"""Tests that were collected once, each mutant tried in a fork: no interpreter, import or grammar again.

All tests are run once while nothing is broken, and it is noted which lines each of them runs: a
mutant is shown to those that run its line, the quick ones first. A test that fails has noticed it
only if it fails once more with the mutant, and passes with the original right after: a machine on
which a bound of time is over by chance says nothing.

A mutant is put in place by the code of its functions, in the modules that the tests have imported
already, and stands in its file for the processes that a test starts. What does not stand in a
function cannot be put in place so: it is to be tried by itself.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Final, NoReturn, cast

import coverage
import pytest

from tests.mutation.placing import function_at, put_in_place
from tests.mutation.sandbox import (
    LOG,
    FirstFailure,
    be_the_child,
    end_all,
    run_pytest,
    settle_in,
    stand_in,
    watch,
    write_no_bytecode,
)

__all__ = ["Asked", "Warm"]

REMEMBERED_MAX: Final = 12
"""Tests that noticed something lately, and are asked first."""
QUICK_SECONDS: Final = 0.5
"""What took longer is not asked first, whatever it noticed."""
TEST_SECONDS_MAX: Final = 30
"""Processor time of one test: what takes more with a mutant loops."""
NAME_BYTES_MAX: Final = 4096
_NOTES: Final = "what-runs-which-line.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A mutant of the module at `path`. `elsewhere`: the module is run by other processes, too."""

    path: str
    line: int
    original: str
    mutant: str
    elsewhere: bool

    @property
    def module(self) -> str:
        """Its name, to import it by."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


class Warm:
    """A child that has collected some tests of the copy in `folder`, and forks for each mutant.

    `paths` are the modules that will be broken. What the child has to say of tests that fail
    although nothing is broken, and are left out, is told to `say`.
    """

    def __init__(
        self,
        folder: Path,
        tests: Sequence[str],
        paths: Sequence[str],
        *,
        seconds: float,
        say: Callable[[str], None],
    ) -> None:
        asks, self._asks = os.pipe()
        self._answers, answers = os.pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._asks)
            os.close(self._answers)
            be_the_child(
                folder,
                lambda: run_pytest(tests, [_Forking(asks, answers, paths, seconds)]),
                answers,
                parent,
                seconds=None,
                keep_bytecode=True,
            )
        os.close(asks)
        os.close(answers)
        self._stream = os.fdopen(self._answers, "r", encoding="utf-8", errors="replace")
        while (line := self._stream.readline().rstrip("\n")) != "ready":
            if not line:
                log = (folder / LOG).read_text("utf-8", "replace")[-4000:]
                message = f"tests that are collected once cannot be run:\n{log}"
                raise RuntimeError(message)
            say(line)

    def noticed(self, asked: Asked) -> str | None:
        """Return a test that fails with this mutant, "" if none does; None if nobody can tell here."""
        os.write(self._asks, json.dumps(asdict(asked)).encode() + b"\n")
        return cast("str | None", json.loads(self._stream.readline()))

    def close(self) -> None:
        """End the child."""
        os.close(self._asks)
        self._stream.close()
        os.waitpid(self.pid, 0)


class _Forking:
    """In place of the loop that runs all tests: for each mutant that is asked about, a fork."""

    def __init__(self, asks: int, answers: int, paths: Sequence[str], seconds: float) -> None:
        self._asks = asks
        self._answers = answers
        self._paths = paths
        self._seconds = seconds
        self._current = mmap.mmap(-1, NAME_BYTES_MAX)  # of the test that a fork is in
        self._recent: dict[str, list[str]] = {}
        self._took: dict[str, float] = {}
        self._runs: dict[str, dict[int, list[str]]] = {}
        self._items: dict[str, pytest.Item] = {}
        self._unmeasured: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        # what the first test has read and built is there for every fork
        _run(session.items[0], None)
        settle_in()  # what a fork leaves behind falls to this process
        self._items = {item.nodeid: item for item in session.items}
        self._learn()
        gc.collect()
        gc.freeze()  # a fork that looks at everything would copy everything
        self._tell("ready")
        with os.fdopen(self._asks, encoding="utf-8") as asks:
            for line in asks:
                asked = Asked(**json.loads(line))
                found = self._noticed(asked)
                if found and self._took[found] <= QUICK_SECONDS:
                    recent = self._recent.setdefault(asked.path, [])
                    recent[:] = [found, *(name for name in recent if name != found)]
                    del recent[REMEMBERED_MAX:]
                self._tell(json.dumps(found))
        os._exit(0)

    def _tell(self, line: str) -> None:
        os.write(self._answers, line.encode() + b"\n")

    # ---- which test runs which line

    def _learn(self) -> None:
        """Run every test with nothing broken; leave out what fails."""
        notes = Path(_NOTES)
        child = os.fork()
        if child == 0:
            _leave(lambda: notes.write_text(json.dumps(self._lines_run()), "utf-8"))
        watch(child, 20 * self._seconds)
        end_all()
        learned = json.loads(notes.read_text("utf-8"))
        self._took = learned["took"]
        self._runs = {
            path: {int(line): names for line, names in lines.items()}
            for path, lines in learned["runs"].items()
        }
        for name in learned["failed"]:
            self._reconsider(name)

    def _reconsider(self, name: str) -> None:
        """Leave out a test that fails; if it does only while it is measured, ask it always."""
        source = Path(self._paths[0]).read_text("utf-8")
        nothing = Asked(
            path=self._paths[0], line=0, original=source, mutant=source, elsewhere=False
        )
        if self._failed(nothing, source, [self._items[name]]):
            del self._items[name]
            self._tell(f"(left out, for it fails although nothing is broken: {name})")
        else:
            self._unmeasured.add(name)

    def _lines_run(self) -> dict[str, object]:
        failed = _Failed()
        took: dict[str, float] = {}
        here = Path.cwd()
        measured = coverage.Coverage(
            data_file=None, config_file=False, include=[str(here / path) for path in self._paths]
        )
        # what only other processes run is run by no test here
        measured.set_option("run:disable_warnings", ["no-data-collected"])
        measured.start()
        for item, following in _with_next([*self._items.values()]):
            name = item.nodeid
            item.config.pluginmanager.register(failed, "failed")
            measured.switch_context(name)
            began = time.monotonic()  # a program's own pace, not a test's
            _run(item, following)
            took[name] = time.monotonic() - began
            item.config.pluginmanager.unregister(name="failed")
        measured.stop()
        data = measured.get_data()
        return {
            "failed": sorted(failed.names),
            "took": took,
            "runs": {p: data.contexts_by_lineno(str(here / p)) for p in self._paths},
        }

    def _to_ask(self, asked: Asked) -> list[pytest.Item]:
        """Return the tests that run the mutant's line, those first that are most likely to fail.

        Where no test runs the line: those that run its function. A test that runs neither can tell
        nothing, unless it starts a process that does.
        """
        lines = self._runs[asked.path]
        ask = {*lines.get(asked.line, ())}
        if not ask:
            within = function_at(asked.original, asked.line)
            ask = {name for line in within for name in lines.get(line, ())}
        rank = {name: number for number, name in enumerate(self._recent.get(asked.path, ()))}
        also = self._items if asked.elsewhere else self._unmeasured
        names = (name for name in self._items if name in ask or name in also)

        def order(name: str) -> tuple[int, bool, float]:
            return rank.get(name, len(rank)), name not in ask, self._took[name]

        return [self._items[name] for name in sorted(names, key=order)]

    # ---- trying

    def _noticed(self, asked: Asked) -> str | None:
        module = sys.modules.get(asked.module)
        # what nobody has imported is read by whoever will, where the mutant is written
        if module is not None and not self._fits(asked, module):
            return None
        left = self._to_ask(asked)
        try:
            while left and (found := self._failed(asked, asked.mutant, left)):
                item = self._items[found]
                if self._failed(asked, asked.mutant, [item]) and not self._failed(
                    asked, asked.original, [item]
                ):
                    return found
                del left[: left.index(item) + 1]
        finally:
            stand_in(Path(asked.path), asked.original)
        return ""

    def _fits(self, asked: Asked, module: ModuleType) -> bool:
        child = os.fork()
        if child == 0:
            fits = put_in_place(module, asked.original, asked.mutant)
            os._exit(0 if fits else 1)
        return os.waitpid(child, 0)[1] == 0

    def _failed(self, asked: Asked, source: str, items: Sequence[pytest.Item]) -> str:
        """Run tests until one fails, and return its name; "" if none does."""
        stand_in(Path(asked.path), source)
        report, written = os.pipe()
        self._note_current("")
        child = os.fork()
        if child == 0:
            _leave(lambda: self._try(asked, source, items, written))
        os.close(written)
        why = watch(child, 4 * self._seconds)
        end_all()
        with os.fdopen(report, "rb") as stream:
            told = stream.read().decode("utf-8", "replace")
        current = self._current[:].rstrip(b"\0").decode()
        return (told and current) or (why and (current or items[0].nodeid))

    def _try(self, asked: Asked, source: str, items: Sequence[pytest.Item], report: int) -> None:
        write_no_bytecode()
        module = sys.modules.get(asked.module)
        if module is not None and source != asked.original:
            put_in_place(module, asked.original, source)
        plugins = items[0].config.pluginmanager
        plugins.register(FirstFailure(report))
        signal.signal(signal.SIGXCPU, _end_here)
        for item, following in _with_next(items):
            self._note_current(item.nodeid)
            used = int(time.process_time())  # what the kernel counts
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (used + TEST_SECONDS_MAX, hard))
            _run(item, following)

    def _note_current(self, name: str) -> None:
        self._current[:] = name.encode()[:NAME_BYTES_MAX].ljust(NAME_BYTES_MAX, b"\0")


class _Failed:
    """Notes which tests failed."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.names.add(report.nodeid)


def _leave(act: Callable[[], object]) -> NoReturn:
    """Do `act` and end this process, a fork: nothing of the parent's own is ever run here."""
    code = 70
    try:
        act()
        code = 0
    except BaseException:  # noqa: BLE001  # this process is not the program's own
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(code)


def _end_here(_number: int, _frame: object) -> NoReturn:
    os._exit(1)


def _with_next(items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, pytest.Item | None]]:
    return zip(items, [*items[1:], None], strict=True)


def _run(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
