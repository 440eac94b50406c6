# pyright: reportUnknownMemberType=false, reportMissingTypeArgument=false, reportUnknownParameterType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pexpect has no types of its own: they are given here, once.
"""A command on a terminal of its own, 60 columns wide: type into it, and wait for what it shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import pexpect

from tests.orchestrator.cli.running import ROOT_FOLDER

__all__ = ["COLUMNS", "Child", "on_terminal"]

COLUMNS = 60
_SECONDS_MAX = 30.0


class Child:
    """One command at work."""

    def __init__(self, spawned: pexpect.spawn) -> None:
        self._spawned = spawned

    def type(self, keys: str) -> None:
        """Press keys."""
        self._spawned.send(keys)

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self._spawned.sendintr()

    def resize(self, columns: int) -> None:
        """Give the terminal another width."""
        self._spawned.setwinsize(30, columns)

    def shows(self, *wanted: str) -> str:
        """Wait for each of the texts, in their order; return all that was shown on the way."""
        shown = ""
        for text in wanted:
            self._spawned.expect_exact(text)
            shown += f"{self._spawned.before}{text}"
        return shown

    def said(self, line: str, *wanted: str) -> str:
        """Type a line, and wait for each of the texts; return all that was shown on the way."""
        self.type(line + "\r")
        return self.shows(*wanted)

    def to_the_end(self) -> str:
        """Wait for its end; return all that was shown on the way."""
        self._spawned.expect(pexpect.EOF)
        return str(self._spawned.before)

    def ended(self) -> int | None:
        """Wait for its end, and return its exit code."""
        self._spawned.expect(pexpect.EOF)
        self._spawned.close()
        return self._spawned.exitstatus


@contextmanager
def on_terminal(*words: str, columns: int = COLUMNS) -> Generator[Child]:
    """Start `remit` with these words; whatever happens, it has ended after the block."""
    spawned = pexpect.spawn(
        sys.executable,
        ["-m", "orchestrator.cli", *words],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT_FOLDER),
            "PROMPT_TOOLKIT_NO_CPR": "1",
            "NO_COLOR": "1",
            "TERM": "xterm",
            "PATH": "/nonexistent",  # no browser is there
        },
        dimensions=(30, columns),
        encoding="utf-8",
        timeout=_SECONDS_MAX,
    )
    try:
        yield Child(spawned)
    finally:
        spawned.close(force=True)
