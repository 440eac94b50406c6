from __future__ import annotations

import io
import re
from collections.abc import Generator
from typing import Final

import pytest

from orchestrator.agents.events import (
    AgentEnded,
    AgentEvent,
    AgentNoted,
    AgentStarted,
    CallEnded,
    CallProgressed,
    CallStarted,
    TurnEnded,
)
from orchestrator.core.errors import Delivery, DenyReason
from orchestrator.core.ids import AgentId
from orchestrator.core.outcomes import CallOutcome, RunStatus
from orchestrator.surfaces.progress import (
    HELD_LINES_MAX,
    Board,
    ProgressStyle,
    event_line,
    open_progress,
    style_for,
)
from tests.orchestrator.surfaces.terminal import Terminal, open_terminal

HOSTILE: Final = "\x1b]52;c;aGk=\x07\x1b[2J\x9b3J\u202e\u200b\x08"
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def started(agent: str = "writer") -> AgentEvent:
    return AgentStarted(agent=AgentId(agent), model="recipe:r.py:f")


def call_started(agent: str = "writer", tool: str = "write_file") -> AgentEvent:
    return CallStarted(agent=AgentId(agent), server="files", tool=tool)


def denied(agent: str = "writer", tool: str = "write_file") -> AgentEvent:
    return CallEnded(
        agent=AgentId(agent),
        server="files",
        tool=tool,
        outcome=CallOutcome.DENIED,
        seconds=0.0,
        delivery=Delivery.NOT_SENT,
        reason=DenyReason.FORBIDDEN,
        rule='"no-env" (p.policy:7)',
    )


def refused() -> AgentEvent:
    return CallEnded(
        agent=AgentId("historian"),
        server="git",
        tool="git_status",
        outcome=CallOutcome.REFUSED,
        seconds=0.0,
        delivery=Delivery.NOT_SENT,
        reason=DenyReason.SERVER_REMOVED,
    )


def ended(agent: str = "writer") -> AgentEvent:
    return AgentEnded(agent=AgentId(agent), status=RunStatus.OK, seconds=1.25)


def noted(text: str) -> AgentEvent:
    return AgentNoted(agent=AgentId("writer"), text=text)


def zero() -> float:
    return 0.0


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[Terminal]:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with open_terminal() as opened:
        yield opened


def plain(*events: AgentEvent) -> list[str]:
    stream = io.StringIO()
    with open_progress(stream, ProgressStyle.PLAIN, now=zero) as progress:
        for event in events:
            progress.emit(event)
    return stream.getvalue().splitlines()


def live(terminal: Terminal, *events: AgentEvent) -> str:
    with open_progress(terminal.writes, ProgressStyle.LIVE, now=zero) as progress:
        for event in events:
            progress.emit(event)
    return terminal.close()


# ---------------------------------------------------------------------------------------- plain lines


def test_a_denied_call_is_a_line_with_its_rule():
    (line,) = plain(denied())

    assert line.split("  ") == [
        "denied",
        " writer",
        *[""] * 2,
        " files/write_file",
        "forbidden",
        'rule "no-env" (p.policy:7)',
        "bytes sent: 0",
    ]


def test_a_call_that_nothing_permits_is_not_said_to_have_a_rule():
    event = CallEnded(
        agent=AgentId("a"),
        server="s",
        tool="t",
        outcome=CallOutcome.DENIED,
        seconds=0.0,
        delivery=Delivery.NOT_SENT,
        reason=DenyReason.NO_PERMIT,
        rule='nearest "x" (p.policy:1)',
    )

    assert plain(event) == [
        'denied   a            s/t  no_permit  nearest "x" (p.policy:1)  bytes sent: 0'
    ]


def test_a_refused_call_is_a_line_with_what_was_sent():
    assert plain(refused()) == [
        "refused  historian    git/git_status  server_removed  bytes sent: 0"
    ]


def test_a_result_that_was_dropped_says_that_the_server_had_answered():
    event = CallEnded(
        agent=AgentId("a"),
        server="s",
        tool="t",
        outcome=CallOutcome.REFUSED,
        seconds=0.0,
        delivery=Delivery.ANSWERED,
        reason=DenyReason.AGENT_CANCELLED,
        bytes_sent=90,
    )

    assert (event_line(event) or "").endswith("bytes sent: 90 (answered)")


def test_an_agents_life_is_told_line_by_line():
    ok = CallEnded(
        agent=AgentId("writer"), server="files", tool="x", outcome=CallOutcome.OK, seconds=0.5
    )

    assert plain(started(), call_started(), noted("half way"), ok, ended()) == [
        "started  writer       recipe:r.py:f",
        "note     writer       half way",
        "ok       writer       files/x  0.50 s",
        "ended    writer       ok  1.2 s",
    ]


def test_a_failed_call_says_why():
    event = CallEnded(
        agent=AgentId("a"),
        server="s",
        tool="t",
        outcome=CallOutcome.LOST,
        seconds=2.0,
        message="the deadline passed",
    )

    assert plain(event) == ["lost     a            s/t  2.00 s  the deadline passed"]


@pytest.mark.parametrize(
    "event", [started(HOSTILE), denied(HOSTILE, HOSTILE), noted(HOSTILE), ended(HOSTILE)]
)
def test_no_text_moves_a_terminal_by_a_plain_line(event: AgentEvent):
    (line,) = plain(event)

    assert re.findall(r"[\x00-\x1f\x7f-\x9f\u202e\u200b]", line) == []


def test_quiet_shows_nothing():
    stream = io.StringIO()

    with open_progress(stream, ProgressStyle.QUIET, now=zero) as progress:
        progress.emit(denied())

    assert stream.getvalue() == ""


def test_a_stream_that_was_closed_ends_no_run():
    stream = io.StringIO()

    with open_progress(stream, ProgressStyle.PLAIN, now=zero) as progress:
        stream.close()
        progress.emit(denied())


def test_lines_wait_while_a_person_is_asked():
    stream = io.StringIO()

    with open_progress(stream, ProgressStyle.PLAIN, now=zero) as progress, progress.paused():
        progress.emit(noted("now"))
        meanwhile = stream.getvalue()

    assert meanwhile == ""
    assert stream.getvalue() == "note     writer       now\n"


def test_one_line_too_many_is_dropped_and_counted():
    stream = io.StringIO()

    with open_progress(stream, ProgressStyle.PLAIN, now=zero) as progress, progress.paused():
        for number in range(HELD_LINES_MAX + 1):
            progress.emit(noted(str(number)))

    lines = stream.getvalue().splitlines()
    assert lines[0] == "lines left out: 1; the audit log has every call"
    assert [lines[1].split()[-1], len(lines)] == ["1", HELD_LINES_MAX + 1]


# ---------------------------------------------------------------------------------------- the board


def board_of(*events: AgentEvent) -> Board:
    board = Board()
    for moment, event in enumerate(events):
        board = board.after(event, float(moment))
    return board


def test_the_board_counts_calls_and_those_turned_down():
    (row,) = board_of(started(), call_started(), denied(), call_started()).rows

    assert (row.calls, row.denied, row.refused, row.state) == (2, 1, 0, "running")


def test_the_board_counts_seconds_until_the_agent_ends():
    running = board_of(noted(""), started()).rows[0]
    over = board_of(started(), ended()).rows[0]

    assert running.elapsed(4.0) == 3.0
    assert over.elapsed(99.0) == 1.25


def test_the_board_counts_tokens_and_keeps_what_was_spent():
    turns = [
        TurnEnded(agent=AgentId("writer"), number=n, calls=0, tokens=5, usd=n / 4) for n in (1, 2)
    ]
    (row,) = board_of(started(), *turns).rows

    assert (row.tokens, row.usd) == (10, 0.5)


@pytest.mark.parametrize(
    ("done", "total", "shown"),
    [(3, 12.0, "3 of 12"), (0.25, None, "0.25"), (1e7, 2e7, "10,000,000 of 20,000,000")],
)
def test_the_board_shows_how_far_the_last_call_has_come(
    done: float, total: float | None, shown: str
):
    told = CallProgressed(
        agent=AgentId("writer"), server="files", tool="index", done=done, total=total
    )
    (row,) = board_of(started(), call_started(), told).rows

    assert (row.calls, row.last) == (1, f"files/index {shown}")


def test_steps_wait_on_the_board_until_they_begin():
    board = Board.of(["reader", "writer"]).after(started("reader"), 3.0)

    assert [(row.agent, row.state) for row in board.rows] == [
        ("reader", "running"),
        ("writer", "waiting"),
    ]


def test_items_of_a_map_are_one_branch_with_those_at_work_below():
    events = [event for n in range(1, 5) for event in (started(f"reader-{n}"),)]
    board = Board.of(["reader", "writer"])
    for event in (*events, ended("reader-1"), ended("reader-2")):
        board = board.after(event, 0.0)

    shown = [(item.row.agent, item.depth, item.of, item.row.state) for item in board.branches()]
    assert shown == [
        ("reader", 0, 4, "2 running, 2 ok"),
        ("reader-3", 1, 1, "running"),
        ("reader-4", 1, 1, "running"),
        ("writer", 0, 1, "waiting"),
    ]


def test_a_child_stands_below_its_parent():
    board = board_of(started("a"), started("b"), started("a/helper"), started("a/helper/own"))

    assert [(item.row.agent, item.depth) for item in board.branches()] == [
        ("a", 0),
        ("a/helper", 1),
        ("a/helper/own", 2),
        ("b", 0),
    ]


def test_agents_at_work_are_shown_first_where_not_all_fit():
    board = board_of(started("a"), ended("a"), started("b"), started("c"), ended("c"))

    rows, left_out = board.shown(2)

    assert ([item.row.agent for item in rows], left_out) == (["b", "c"], 1)


# ---------------------------------------------------------------------------------------- the live table


def test_a_terminal_gets_a_table_with_its_agents(terminal: Terminal):
    with open_progress(terminal.writes, ProgressStyle.LIVE, now=zero) as progress:
        progress.emit(started("historian"))
        progress.emit(call_started("historian", "list_files"))
        text = terminal.wait_for("files/list_files")

    assert "last call" in text
    assert "historian" in text


def test_calls_turned_down_are_lines_that_stay(terminal: Terminal):
    text = live(terminal, started(), denied(), refused())

    assert "denied   writer" in text
    assert "git/git_status  server_removed  bytes sent: 0" in text


def test_the_table_is_taken_away_at_the_end(terminal: Terminal):
    text = live(terminal, started())

    # up a line and erased, for each of its two lines
    assert text.endswith("\x1b[1A\x1b[2K\x1b[1A\x1b[2K")


def test_no_text_of_a_server_moves_the_terminal(terminal: Terminal):
    text = live(
        terminal,
        started(f"a{HOSTILE}"),
        call_started(f"a{HOSTILE}", f"t{HOSTILE}"),
        denied(f"a{HOSTILE}", f"t{HOSTILE}"),
        noted(f"n{HOSTILE}"),
        noted("[red]not markup[/red] :smile:"),
        ended(f"a{HOSTILE}"),
    )

    assert [
        bad for bad in ("\x1b]", "\x1b[2J", "\x9b", "\u202e", "\u200b", "\x08") if bad in text
    ] == []
    assert "[red]not markup[/red] :smile:" in text


def test_turned_down_calls_have_a_colour(terminal: Terminal):
    assert "\x1b[31m" in live(terminal, denied())


def test_no_color_is_heeded(terminal: Terminal, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")

    assert "\x1b[31m" not in live(terminal, denied())


@pytest.mark.parametrize("columns", [20, 40, 60, 80])
def test_the_table_fits_its_terminal(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
):
    monkeypatch.setenv("COLUMNS", str(columns))

    text = live(terminal, started("a" * 100), call_started("a" * 100, "t" * 100))

    lines = _CONTROL.sub("", text).replace("\r", "").split("\n")
    assert max(map(len, lines)) <= columns
    assert any("agent" in line for line in lines)


def test_a_table_that_is_too_long_says_how_much_is_left_out(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LINES", "10")

    text = live(terminal, *(started(f"agent{number}") for number in range(50)))

    assert "and 45 more" in text


def test_the_table_makes_room_for_a_question(terminal: Terminal):
    with open_progress(terminal.writes, ProgressStyle.LIVE, now=zero) as progress:
        progress.emit(started())
        with progress.paused():
            progress.emit(denied())
            terminal.writes.write("QUESTION")
            terminal.writes.flush()
            before = terminal.wait_for("QUESTION")
        after = terminal.wait_for("denied   writer")

    assert "denied   writer" not in before
    assert after.index("QUESTION") < after.index("denied   writer")


def test_the_table_takes_nothing_off_the_question_when_it_comes_back(terminal: Terminal):
    with open_progress(terminal.writes, ProgressStyle.LIVE, now=zero) as progress:
        progress.emit(started())
        with progress.paused():
            terminal.writes.write("QUESTION\n")
            terminal.writes.flush()
        progress.emit(denied())
        text = terminal.wait_for("denied   writer")

    until_the_table = text.partition("QUESTION")[2].partition("seconds")[0]
    assert "\x1b[1A" not in until_the_table


# ---------------------------------------------------------------------------------------- the style


@pytest.mark.parametrize(
    ("quiet", "term", "style"),
    [
        (True, "xterm", ProgressStyle.QUIET),
        (False, "xterm", ProgressStyle.LIVE),
        (False, "dumb", ProgressStyle.PLAIN),
        (False, "", ProgressStyle.PLAIN),
    ],
)
def test_a_terminal_gets_the_style_it_can_show(
    terminal: Terminal, quiet: bool, term: str, style: ProgressStyle
):
    assert style_for(terminal.writes, quiet=quiet, environ={"TERM": term}) is style


def test_what_is_no_terminal_gets_lines():
    found = style_for(io.StringIO(), quiet=False, environ={"TERM": "xterm"})

    assert found is ProgressStyle.PLAIN
