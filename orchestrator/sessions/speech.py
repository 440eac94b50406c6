"""What the parent's own agent says, written while it says it, on one terminal. Runs nothing.

Every piece is made safe with what came before it. A question to a person, and a line about something
else, ends the line that is open; what is said meanwhile waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Final

from orchestrator.agents.events import AgentEvent, AgentSaid, TurnEnded
from orchestrator.core.display import safe_text, wrapped
from orchestrator.sessions.family import PARENT

__all__ = ["TURN_CHARS_MAX", "Speech"]

TURN_CHARS_MAX: Final = 1024 * 1024
"""Of one turn, written as it arrives: what is longer is printed once, as the answer that it is."""

_INDENT: Final = "  "
_TAB: Final = "    "


class Speech:
    """Writes a turn as it arrives. Synchronous; a terminal that went away is no error.

    `columns` is asked at the start of each line, which is folded within so many; without it the
    terminal folds. `claim` is held while a turn is being written, so that nothing else is drawn.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        columns: Callable[[], int] | None = None,
        claim: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._write = write
        self._lines = _Whole() if columns is None else _Folded(columns)
        self._claim = claim
        self._claimed: ExitStack | None = None
        self._turn = _Turn()
        self._over = False
        self._line_open = False
        self._pauses = 0
        self._waiting = ""

    def hear(self, event: AgentEvent) -> None:
        """Write a piece of the parent's own agent, or end its turn; all else is left alone."""
        if event.agent != PARENT:
            return
        if isinstance(event, AgentSaid):
            if self._over:
                self._turn, self._over = _Turn(), False
            self._say(self._turn.take(event.text))
        elif isinstance(event, TurnEnded):
            self.end_turn()

    def begin(self) -> None:
        """Forget what was said for an earlier question."""
        self._turn, self._over = _Turn(), False

    def break_line(self) -> None:
        """End the line that is open: something else is written next."""
        rest = self._lines.rest()
        if rest or self._line_open:
            self._put(f"{rest}\n")
        self._line_open = False

    @contextmanager
    def paused(self) -> Generator[None]:
        """Leave the terminal to a question; what is said meanwhile is written afterwards."""
        self.break_line()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                waiting, self._waiting = self._waiting, ""
                self._say(waiting)
                if self._over:
                    self.end_turn()

    def end_turn(self) -> None:
        """End the turn that is being written, however it ended. Idempotent."""
        self._over = True
        if self._pauses:
            self._waiting += "\n" if self._waiting else ""
            return
        self.break_line()
        if self._claimed is not None:
            self._claimed.close()
            self._claimed = None

    def told(self, answer: str) -> bool:
        """Return True if the last turn was written whole, and was this answer, made safe."""
        return bool(answer.strip()) and self._turn.text.strip() == answer.strip()

    def _say(self, text: str) -> None:
        if not text:
            return
        if self._pauses:
            if len(self._waiting) + len(text) > TURN_CHARS_MAX:
                self._turn.give_up()
            else:
                self._waiting += text
            return
        if self._claimed is None:
            self._claimed = ExitStack()
            self._claimed.enter_context(self._claim())
        shown = self._lines.add(text)
        if shown:
            self._put(shown)
            self._line_open = not shown.endswith("\n")

    def _put(self, text: str) -> None:
        try:
            self._write(text)
        except (OSError, ValueError):  # the terminal went away; the turn goes on
            return


class _Turn:
    """The pieces of one turn, made safe as one text."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = TURN_CHARS_MAX
        self._return = ""

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def give_up(self) -> None:
        """Count it as not written whole, and write no more of it."""
        self._pieces.clear()
        self._room = 0

    def take(self, piece: str) -> str:
        """Return what may be written of a piece now.

        Each character is made safe by itself, so that a sequence in two pieces is none. Only a
        carriage return waits for its newline.
        """
        piece = self._return + piece
        self._return = "\r" if piece.endswith("\r") else ""
        safe = safe_text(piece.removesuffix(self._return), reveal=True, chars_max=None)
        if len(safe) > self._room:
            self.give_up()
            return ""
        self._room -= len(safe)
        self._pieces.append(safe)
        return safe


class _Whole:
    """Lines as they are."""

    def add(self, text: str) -> str:
        return text

    def rest(self) -> str:
        return ""


class _Folded:
    """Lines of at most so many columns: what of a line is written stays, a begun word waits."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns
        self._width = 0
        self._row = ""
        self._written = 0

    def add(self, text: str) -> str:
        """Return what is written now."""
        first, *others = text.replace("\t", _TAB).split("\n")
        out = self._extend(first)
        for line in others:
            out += f"{self.rest()}\n{self._extend(line)}"
        return out

    def rest(self) -> str:
        """Return what waits of the line, which ends here."""
        rest = self._row[self._written :]
        self._row, self._written = "", 0
        return rest

    def _extend(self, text: str) -> str:
        if not self._row:
            self._width = self._columns()
        # a fold is behind the last blank or where the row is full: never in what is written
        *full, self._row = wrapped(self._row + text, columns=self._width, indent=_INDENT)
        out = ""
        for row in full:
            out += f"{row[self._written :]}\n"
            self._written = 0
        ready = max(self._row.rfind(" ") + 1, self._written)
        out, self._written = out + self._row[self._written : ready], ready
        return out
