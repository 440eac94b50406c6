"""What every test run shares: its processes, and the requirements' counts at its end.

Fixtures live further down.
"""

from __future__ import annotations

import pytest

from tests.marks import marks_below
from tests.requirements import ROOT, requirements, tally


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the whole suite among the processors; what somebody names runs in one process.

    `-n 0` keeps the whole suite in one process as well.
    """
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    if config.pluginmanager.hasplugin("xdist") and config.getoption("numprocesses") is None:
        config.option.numprocesses = "auto"
        config.option.dist = "worksteal"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many lines of the requirements manifest are proven."""
    counts = tally(requirements(), marks_below(ROOT / "tests"))
    terminalreporter.write_line(f"requirements: {counts}")
