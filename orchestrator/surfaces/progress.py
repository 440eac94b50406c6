"""What agents do, shown as it happens: a live table, plain lines, or nothing. Decides nothing.

A listener never raises: a terminal that went away must not end a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol, TextIO, assert_never

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentStarted,
    CallEnded,
    CallStarted,
    TurnEnded,
)
from orchestrator.core.display import safe_line
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.outcomes import CallOutcome

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

__all__ = [
    "HELD_LINES_MAX",
    "AgentRow",
    "Board",
    "Progress",
    "ProgressStyle",
    "event_line",
    "open_progress",
    "style_for",
]

HELD_LINES_MAX: Final = 1_000
"""Lines that wait while a person is asked something; then the oldest are counted and dropped."""

_NAME_CHARS: Final = 64
_WIDE: Final = 72
_MIDDLING: Final = 48
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
    stream: TextIO, style: ProgressStyle, *, now: Callable[[], float]
) -> Generator[Progress]:
    """Yield a listener that shows events on `stream`. `now` is a clock in monotonic seconds.

    The live table disappears at the end; lines about calls that were denied or refused stay.
    """
    match style:
        case ProgressStyle.QUIET:
            yield _Quiet()
        case ProgressStyle.PLAIN:
            yield _Plain(stream)
        case ProgressStyle.LIVE:
            table = _LiveTable(stream, now)
            try:
                table.start()
                yield table
            finally:
                table.stop()
        case _:
            assert_never(style)


# --------------------------------------------------------------------------------------- the pure part


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRow:
    """What is known of one agent by its events. `seconds` is set once it has ended."""

    agent: str
    started: float
    state: str = "running"
    calls: int = 0
    denied: int = 0
    refused: int = 0
    last: str = ""
    seconds: float | None = None

    def elapsed(self, now: float) -> float:
        """Return the seconds that it has worked, or worked in all."""
        return max(0.0, now - self.started) if self.seconds is None else self.seconds


@dataclass(frozen=True, slots=True)
class Board:
    """All agents of a run, in the order of their start. A new value for each event."""

    rows: tuple[AgentRow, ...] = ()

    def after(self, event: AgentEvent, now: float) -> Board:
        """Return the board with one more event in it."""
        row = next((row for row in self.rows if row.agent == event.agent), None)
        rows = self.rows
        if row is None:
            row = AgentRow(agent=event.agent, started=now)
            rows = (*rows, row)
        changed = _advanced(row, event, now)
        return Board(tuple(changed if each is row else each for each in rows))

    def shown(self, rows_max: int) -> tuple[tuple[AgentRow, ...], int]:
        """Return the rows that fit, those at work first, and how many are left out."""
        at_work = [row for row in self.rows if row.seconds is None]
        ended = [row for row in reversed(self.rows) if row.seconds is not None]
        kept = {row.agent for row in (*at_work, *ended)[:rows_max]}
        rows = tuple(row for row in self.rows if row.agent in kept)
        return rows, len(self.rows) - len(rows)


def _advanced(row: AgentRow, event: AgentEvent, now: float) -> AgentRow:
    match event:
        case AgentStarted():
            return replace(row, started=now, state="running", seconds=None)
        case CallStarted():
            return replace(row, calls=row.calls + 1, last=f"{event.server}/{event.tool}")
        case CallEnded():
            return replace(
                row,
                denied=row.denied + (event.outcome is CallOutcome.DENIED),
                refused=row.refused + (event.outcome is CallOutcome.REFUSED),
                last=f"{event.server}/{event.tool} {event.outcome.value}",
            )
        case AgentEnded():
            return replace(row, state=event.status.value, seconds=event.seconds)
        case AgentNoted():
            return replace(row, last=event.text)
        case TurnEnded():
            return row
        case _:
            assert_never(event)


def event_line(event: AgentEvent) -> str | None:
    """Return one plain line about an event, safe for a terminal; None for what is not worth one."""
    match event:
        case AgentStarted():
            return _line("started", event.agent, safe_line(event.model))
        case AgentNoted():
            return _line("note", event.agent, safe_line(event.text))
        case CallEnded():
            return _line(event.outcome.value, event.agent, _ending(event))
        case AgentEnded():
            message = f"  {safe_line(event.message)}" if event.message else ""
            return _line(
                "ended", event.agent, f"{event.status.value}  {event.seconds:.1f} s{message}"
            )
        case CallStarted() | TurnEnded():
            return None
        case _:
            assert_never(event)


def _line(word: str, agent: str, rest: str) -> str:
    """Return one line; `rest` has been made safe."""
    return f"{word:<8} {_name(agent):<12} {rest}".rstrip()


def _ending(event: CallEnded) -> str:
    """Return what became of a call: for one that was turned down the cause, and what was sent."""
    target = f"{_name(event.server)}/{_name(event.tool)}"
    reason = event.reason.value if event.reason is not None else ""
    match event.outcome:
        case CallOutcome.OK:
            return f"{target}  {event.seconds:.2f} s"
        case CallOutcome.DENIED:
            # without a permit no rule decided; what stands there says itself what it is
            word = "" if event.reason is DenyReason.NO_PERMIT else "rule "
            rule = f"{word}{safe_line(event.rule)}" if event.rule else ""
            return "  ".join(part for part in (target, reason, rule, _sent(event)) if part)
        case CallOutcome.REFUSED:
            return "  ".join(part for part in (target, reason, _sent(event)) if part)
        case CallOutcome.FAILED | CallOutcome.LOST:
            message = safe_line(event.message)
            return "  ".join(part for part in (target, f"{event.seconds:.2f} s", message) if part)
        case _:
            assert_never(event.outcome)


def _sent(event: CallEnded) -> str:
    sent = f"bytes sent: {event.bytes_sent}"
    return sent if event.delivery is Delivery.NOT_SENT else f"{sent} ({event.delivery.value})"


def _name(text: str) -> str:
    return safe_line(text, reveal=True, chars_max=_NAME_CHARS)


# ------------------------------------------------------------------------------------------- the shells


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

    def resume(self) -> None:
        self._pauses -= 1
        if self._pauses:
            return
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
            self._lines.resume()

    def _write(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # it went away, or was closed; the run goes on
            return


class _LiveTable:
    """A table that is drawn anew, with lines above it for calls that were turned down."""

    def __init__(self, stream: TextIO, now: Callable[[], float]) -> None:
        from rich.console import Console

        self._now = now
        # rich draws from a thread of its own; it sees one whole value, never half of a change
        self._board = Board()
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
            self.start()
            self._lines.resume()

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
        return _table(self._board, self._now(), self._console)


def _table(board: Board, now: float, console: Console) -> RenderableType:
    """Return the table, with as many columns and rows as there is room for."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    width = console.width
    rows, left_out = board.shown(max(1, console.height - 4))
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 1), expand=False)
    table.add_column("agent", no_wrap=True, overflow="ellipsis", max_width=max(8, width // 4))
    table.add_column("state", no_wrap=True)
    for heading in ("calls", "denied", "refused") if width >= _MIDDLING else ("calls",):
        table.add_column(heading, justify="right", no_wrap=True)
    if width >= _WIDE:
        table.add_column("last call", no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column("seconds", justify="right", no_wrap=True)
    for row in rows:
        cells = [_name(row.agent), row.state, str(row.calls)]
        if width >= _MIDDLING:
            cells += [str(row.denied), str(row.refused)]
        if width >= _WIDE:
            cells.append(safe_line(row.last, reveal=True, chars_max=160))
        cells.append(f"{row.elapsed(now):.1f}")
        table.add_row(*(Text(cell) for cell in cells))
    if not left_out:
        return table
    return Group(table, Text(f"and {left_out} more"))
