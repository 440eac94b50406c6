"""What agents do, shown as it happens: a live tree, plain lines, or nothing. Decides nothing.

A listener never raises: a terminal that went away must not end a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TextIO, assert_never

from orchestrator.agents.events import AgentEnded, AgentEvent, AgentNoted, CallEnded
from orchestrator.core.outcomes import CallOutcome
from orchestrator.surfaces.progress.board import Board
from orchestrator.surfaces.progress.lines import event_line
from orchestrator.surfaces.progress.tree import tree_of

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

__all__ = ["HELD_LINES_MAX", "Progress", "ProgressStyle", "open_progress", "style_for"]

HELD_LINES_MAX: Final = 1_000
"""Lines that wait while a person is asked something; then the oldest are counted and dropped."""

_BADGES: Final = {CallOutcome.DENIED: "red", CallOutcome.REFUSED: "yellow"}


class ProgressStyle(Enum):
    """How progress is shown."""

    LIVE = "live"
    PLAIN = "plain"
    QUIET = "quiet"


class Progress(Protocol):
    """A listener for the events of a run."""

    def emit(self, event: AgentEvent) -> None:
        """Show one event. Synchronous; never raises."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """Leave the terminal to a question; what happens meanwhile is shown afterwards."""
        ...


def style_for(stream: TextIO, *, quiet: bool, environ: Mapping[str, str]) -> ProgressStyle:
    """Return the style that suits a stream: live only on a terminal that can move its cursor."""
    if quiet:
        return ProgressStyle.QUIET
    capable = environ.get("TERM", "") not in ("", "dumb")
    return ProgressStyle.LIVE if capable and stream.isatty() else ProgressStyle.PLAIN


@contextmanager
def open_progress(
    stream: TextIO, style: ProgressStyle, *, now: Callable[[], float], steps: Sequence[str] = ()
) -> Generator[Progress]:
    """Yield a listener that shows events on `stream`. `now` is a clock in monotonic seconds.

    `steps` are the agents that will be started, shown as waiting until they are. The live tree
    disappears at the end; lines about calls that were denied or refused stay.
    """
    match style:
        case ProgressStyle.QUIET:
            yield _Quiet()
        case ProgressStyle.PLAIN:
            yield _Plain(stream)
        case ProgressStyle.LIVE:
            table = _LiveTree(stream, now, steps)
            try:
                table.start()
                yield table
            finally:
                table.stop()
        case _:
            assert_never(style)


class _Quiet:
    """Shows nothing."""

    def emit(self, event: AgentEvent) -> None:
        """Do nothing."""

    @contextmanager
    def paused(self) -> Generator[None]:
        """There is nothing to pause."""
        yield


class _Lines:
    """Lines that are written at once, or held while a question stands on the terminal."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._held: deque[str] = deque()
        self._pauses = 0
        self._dropped = 0

    def put(self, line: str) -> None:
        if not self._pauses:
            self._write(line)
            return
        self._held.append(line)
        if len(self._held) > HELD_LINES_MAX:
            self._held.popleft()
            self._dropped += 1

    def pause(self) -> None:
        self._pauses += 1

    def resumes(self) -> bool:
        """Take one pause back; True if it was the last."""
        self._pauses -= 1
        return not self._pauses

    def let_go(self) -> None:
        """Write what was held."""
        if self._dropped:
            self._write(f"lines left out: {self._dropped}; the audit log has every call")
            self._dropped = 0
        while self._held:
            self._write(self._held.popleft())


class _Plain:
    """One line for each event."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines = _Lines(self._write)

    def emit(self, event: AgentEvent) -> None:
        """Write the event's line."""
        line = event_line(event)
        if line is not None:
            self._lines.put(line)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Hold the lines."""
        self._lines.pause()
        try:
            yield
        finally:
            if self._lines.resumes():
                self._lines.let_go()

    def _write(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # it went away, or was closed; the run goes on
            return


class _LiveTree:
    """A tree that is drawn anew, with lines above it for calls that were turned down."""

    def __init__(self, stream: TextIO, now: Callable[[], float], steps: Sequence[str]) -> None:
        from rich.console import Console

        self._now = now
        # rich draws from a thread of its own; it sees one whole value, never half of a change
        self._board = Board.of(steps)
        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._live: Live | None = None
        self._lines = _Lines(self._print)

    def start(self) -> None:
        """Show the table."""
        from rich.live import Live

        # A new one each time: one that was stopped still knows how high its table was, and would
        # take as many lines off what a person was asked in between.
        self._live = Live(
            get_renderable=self._render,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=8,
        )
        self._guarded(self._live.start)

    def stop(self) -> None:
        """Take the table away."""
        if self._live is not None:
            self._guarded(self._live.stop)

    def emit(self, event: AgentEvent) -> None:
        """Take the event into the table; print its line if a call was turned down, or as a note."""
        self._board = self._board.after(event, self._now())
        turned_down = isinstance(event, CallEnded) and event.outcome is not CallOutcome.OK
        failed = isinstance(event, AgentEnded) and event.message
        if turned_down or failed or isinstance(event, AgentNoted):
            line = event_line(event)
            if line is not None:
                self._lines.put(line)

    @contextmanager
    def paused(self) -> Generator[None]:
        """Take the table away and hold the lines."""
        self._lines.pause()
        self.stop()
        try:
            yield
        finally:
            if self._lines.resumes():  # another question may stand, or text be written
                self.start()
                self._lines.let_go()

    def _print(self, line: str) -> None:
        from rich.text import Text

        word = line.partition(" ")[0]
        style = next((badge for outcome, badge in _BADGES.items() if outcome.value == word), "")
        self._guarded(lambda: self._console.print(Text(line, style=style), soft_wrap=True))

    def _guarded(self, show: Callable[[], None]) -> None:
        try:
            show()
        except (OSError, ValueError):  # the terminal went away; the run goes on
            return

    def _render(self) -> RenderableType:
        return tree_of(self._board, self._now(), self._console)
