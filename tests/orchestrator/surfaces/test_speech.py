"""What is said is written piece by piece: as one text, made safe, folded, and never over a question."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from orchestrator.agents.events import AgentSaid, AgentStarted, TurnEnded
from orchestrator.core.display import safe_text, wrapped
from orchestrator.core.ids import AgentId
from orchestrator.sessions.family import PARENT
from orchestrator.sessions.speech import TURN_CHARS_MAX, Speech
from orchestrator.surfaces.progress import ProgressStyle, open_progress
from tests.orchestrator.surfaces.terminal import Terminal, open_terminal

HOSTILE = "a\x1b]0;stolen\x07b\x1b[2J\x9b3J\u202ec\r\nd\re\tf"
_CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
_MOVES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def said(text: str, agent: AgentId = PARENT) -> AgentSaid:
    return AgentSaid(agent=agent, text=text)


def ended() -> TurnEnded:
    return TurnEnded(agent=PARENT, number=1, calls=0, tokens=0)


def heard(*pieces: str, columns: Callable[[], int] | None = None) -> tuple[Speech, str]:
    written: list[str] = []
    speech = Speech(written.append, columns=columns)
    for piece in pieces:
        speech.hear(said(piece))
    speech.hear(ended())
    return speech, "".join(written)


def test_a_piece_is_written_before_the_next_one_comes():
    written: list[str] = []
    speech = Speech(written.append)

    speech.hear(said("first "))
    early = list(written)
    speech.hear(said("then"))
    speech.hear(ended())

    assert early == ["first "]
    assert "".join(written) == "first then\n"


@_CALM
@given(st.lists(st.integers(0, len(HOSTILE)), max_size=6))
def test_a_sequence_in_several_pieces_moves_no_terminal(cuts: list[int]):
    places = [0, *sorted(cuts), len(HOSTILE)]
    pieces = [HOSTILE[a:b] for a, b in itertools.pairwise(places)]

    speech, written = heard(*pieces)

    assert _MOVES.search(written) is None
    assert written == safe_text(HOSTILE, reveal=True) + "\n"
    assert speech.told(safe_text(HOSTILE, reveal=True))


@_CALM
@given(
    st.text(st.sampled_from("ab \n字\t"), min_size=1, max_size=120),
    st.lists(st.integers(0, 120), max_size=8),
    st.integers(10, 30),
)
def test_folded_as_it_arrives_it_has_the_rows_of_the_whole(text: str, cuts: list[int], width: int):
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[a:b] for a, b in itertools.pairwise(places)]

    _, written = heard(*pieces, columns=lambda: width)

    rows = [
        row
        for line in text.replace("\t", "    ").split("\n")
        for row in wrapped(line, columns=width, indent="  ")
    ]
    assert written.rstrip("\n") == "\n".join(rows).rstrip("\n")


def test_what_an_agent_below_says_is_not_written():
    written: list[str] = []
    speech = Speech(written.append)

    speech.hear(said("not for you", AgentId("scout")))

    assert written == []


def test_only_the_last_turn_whole_counts_as_told():
    written: list[str] = []
    speech = Speech(written.append)
    speech.hear(said("I look."))
    speech.hear(ended())
    speech.hear(said("Done."))
    speech.hear(ended())

    assert speech.told("Done.\n")
    assert not speech.told("I look.")
    assert not speech.told("I look.Done.")
    assert not speech.told("")


def test_what_was_said_to_an_earlier_question_is_no_answer_to_this_one():
    speech, _ = heard("yes")

    speech.begin()

    assert not speech.told("yes")


def test_a_turn_past_its_bound_is_written_no_further_and_not_taken_for_told():
    at_most, whole = heard("x" * TURN_CHARS_MAX)
    past, written = heard("x" * TURN_CHARS_MAX, "y", "z")

    assert at_most.told("x" * TURN_CHARS_MAX)
    assert not past.told("x" * TURN_CHARS_MAX + "yz")
    assert written == whole


def test_a_question_stands_on_a_line_of_its_own_and_what_is_said_meanwhile_follows_it():
    written: list[str] = []
    speech = Speech(written.append)
    speech.hear(said("I ask"))

    with speech.paused():
        written.append("allow? [y/N] y\n")
        speech.hear(said(" you"))
        speech.hear(ended())
        speech.hear(said("Then"))
    speech.hear(ended())

    assert "".join(written) == "I ask\nallow? [y/N] y\n you\nThen\n"
    assert speech.told("Then")


def test_what_waits_behind_a_question_has_a_bound():
    written: list[str] = []
    speech = Speech(written.append)
    with speech.paused():
        for _ in range(3):
            speech.hear(said("x" * (TURN_CHARS_MAX // 2)))
            speech.hear(ended())

    assert len("".join(written)) <= TURN_CHARS_MAX + 3
    assert not speech.told("x" * (TURN_CHARS_MAX // 2))


def test_a_terminal_that_went_away_ends_nothing():
    def gone(text: str) -> None:
        raise OSError(text)

    speech = Speech(gone)
    speech.hear(said("hello"))
    speech.hear(ended())

    assert speech.told("hello")


def test_the_terminal_is_claimed_from_the_first_piece_to_the_end_of_the_turn():
    steps: list[str] = []

    @contextmanager
    def claim() -> Generator[None]:
        steps.append("claimed")
        yield
        steps.append("free")

    speech = Speech(steps.append, claim=claim)
    speech.hear(said("one\n"))
    speech.hear(said("two"))
    speech.hear(ended())
    speech.end_turn()

    assert steps == ["claimed", "one\n", "two", "\n", "free"]


@pytest.fixture
def terminal() -> Generator[Terminal]:
    with open_terminal() as opened:
        yield opened


def test_the_live_tree_is_not_drawn_while_text_is_written_even_after_a_question(
    terminal: Terminal,
):
    live = ProgressStyle.LIVE
    with open_progress(terminal.writes, live, now=lambda: 0.0, steps=("writer",)) as progress:
        terminal.wait_for("writer")
        speech = Speech(_into(terminal), claim=progress.paused)
        speech.hear(said("one "))
        with progress.paused(), speech.paused():
            _into(terminal)("sure? [y/N]\n")
        speech.hear(said("two "))
        speech.hear(said("three"))
        speech.hear(ended())
        terminal.wait_for("writer", times=2)
    shown = terminal.close().replace("\r\n", "\n")

    assert "one \nsure? [y/N]\ntwo three\n" in shown


def test_plain_lines_wait_for_the_end_of_the_turn():
    out = io.StringIO()
    with open_progress(out, ProgressStyle.PLAIN, now=lambda: 0.0) as progress:
        speech = Speech(lambda text: print(text, end="", file=out), claim=progress.paused)
        speech.hear(said("one "))
        progress.emit(AgentStarted(agent=PARENT, model="openai:x"))
        speech.hear(said("two"))
        speech.hear(ended())

    assert out.getvalue().startswith("one two\nstarted")


def _into(terminal: Terminal) -> Callable[[str], None]:
    def write(text: str) -> None:
        terminal.writes.write(text)
        terminal.writes.flush()

    return write
