"""The lines that were typed, in a file of their owner's alone. Knows no terminal and no line's meaning."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from prompt_toolkit.history import History

from orchestrator.core.errors import ConfigError
from orchestrator.sessions.reading import TooLargeError, read_regular
from orchestrator.sessions.state import replace_text

__all__ = ["HISTORY_BYTES_MAX", "HISTORY_LINES_MAX", "PrivateHistory"]

HISTORY_LINES_MAX: Final = 1_000
"""Lines that are kept; the oldest go first."""
HISTORY_BYTES_MAX: Final = 1024 * 1024
"""Of the file: one that is larger is not ours, and is left alone."""
_LINE_CHARS_MAX: Final = 4_000
"""Of a line that is kept: who pastes a document does not look for it by the arrow keys."""


class PrivateHistory(History):
    """A history in a file with mode 0600, written whole, and never beyond its bounds."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._lines = self._read()

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines, the newest first."""
        return reversed(self._lines)

    def store_string(self, string: str) -> None:
        """Keep one more line. A disk that is full costs the history, and not the shell."""
        if "\n" in string or len(string) > _LINE_CHARS_MAX:
            return
        self._lines = [*self._lines, string][-HISTORY_LINES_MAX:]
        while sum(map(len, self._lines)) * 4 > HISTORY_BYTES_MAX:
            self._lines = self._lines[len(self._lines) // 4 + 1 :]
        self._write()

    def _read(self) -> list[str]:
        try:
            content = read_regular(self._path, bytes_max=HISTORY_BYTES_MAX)
        except (OSError, TooLargeError):
            return []
        return content.decode(errors="replace").splitlines()[-HISTORY_LINES_MAX:]

    def _write(self) -> None:
        with suppress(ConfigError, OSError):
            replace_text(self._path, "".join(f"{line}\n" for line in self._lines), mode=0o600)
