"""A pseudo-terminal for tests: what is written to it can be read, and answers can be typed."""

from __future__ import annotations

import os
import pty
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import TextIO

__all__ = ["Terminal", "open_terminal"]

_SECONDS_MAX = 30.0
"""Only a failure waits so long; a program that starts on a busy machine takes its time."""


class Terminal:
    """One terminal. `stream` is the program's end of it, for reading and for writing."""

    def __init__(self, keyboard: int, reads: TextIO, writes: TextIO) -> None:
        self.reads = reads
        self.writes = writes
        self._keyboard = keyboard
        self._seen = bytearray()
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._keyboard, text.encode())

    def wait_for(self, wanted: str, *, times: int = 1, after: int = 0) -> str:
        """Wait until `wanted` has been shown so many times; return all that was shown.

        `after` leaves out of account what had been shown by then: so many bytes; and then the screen
        has to end with a question, since what is typed before it is put is dropped.
        """

        def is_shown() -> bool:
            ends = not after or self._seen.endswith((b": ", b"] "))
            return ends and self._seen[after:].count(wanted.encode()) >= times

        with self._changed:
            shown = self._changed.wait_for(is_shown, _SECONDS_MAX)
            text = self._seen.decode(errors="replace")
        assert shown, f"{wanted!r} is not in {text!r}"
        return text

    @property
    def shown_bytes(self) -> int:
        """How much has been shown by now."""
        with self._changed:
            return len(self._seen)

    def close(self) -> str:
        """Close the program's end; return all that was ever shown."""
        self.reads.close()
        self.writes.close()
        self._reader.join(_SECONDS_MAX)
        assert not self._reader.is_alive()
        os.close(self._keyboard)
        return self._seen.decode(errors="replace")

    def _read(self) -> None:
        while True:
            try:
                piece = os.read(self._keyboard, 4096)
            except OSError:  # how Linux says that the other end was closed
                return
            if not piece:
                return
            with self._changed:
                self._seen += piece
                self._changed.notify_all()


@contextmanager
def open_terminal() -> Generator[Terminal]:
    """Open a terminal; whoever has not closed it by the end of the block has it closed."""
    keyboard, program = pty.openpty()
    reads = os.fdopen(os.dup(program), encoding="utf-8")
    writes = os.fdopen(program, "w", encoding="utf-8")
    terminal = Terminal(keyboard, reads, writes)
    try:
        yield terminal
    finally:
        if not writes.closed:
            terminal.close()
