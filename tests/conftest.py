"""What every test run shares: its processes, and the requirements' counts at its end.

Fixtures live further down.
"""

from __future__ import annotations

import os
import sys
from typing import Final

import pytest

from tests.marks import marks_below
from tests.requirements import ROOT, requirements, tally

PROCESSES_MAX: Final = 8
"""With more of them, tests of time limits wait for one another."""


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the whole suite among the processors; what somebody names runs in one process.

    `-n 0` keeps the whole suite in one process as well.
    """
    if hasattr(config, "workerinput"):  # one of those processes: it makes none
        return
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    if config.pluginmanager.hasplugin("xdist") and config.getoption("numprocesses") is None:
        # xdist's own count is that of all cores, of which some may not be ours
        config.option.numprocesses = min(_processors(), PROCESSES_MAX)
        config.option.dist = "worksteal"


def _processors() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many lines of the requirements manifest are proven."""
    counts = tally(requirements(), marks_below(ROOT / "tests"))
    terminalreporter.write_line(f"requirements: {counts}")
