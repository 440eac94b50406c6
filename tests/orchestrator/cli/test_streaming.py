"""A language model on a real terminal: what it says is shown while it says it, and shown once."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from tests.orchestrator.agents.loopback import Connect
from tests.orchestrator.cli.child import on_terminal
from tests.orchestrator.cli.running import Remit
from tests.servers.openai_like import OpenAiLike, Reply, stream

pytestmark = pytest.mark.subprocess

MODEL = ("--model", "openai:loopback-1")
PROMPT = "you>"
PIECES = ({"content": "first \x1b]0;sto"}, {"content": "len\x07 and \x1b"}, {"content": "[2Jlast"})
WHOLE = "first <U+001B>]0;stolen<U+0007> and <U+001B>[2Jlast"


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    return Connect(monkeypatch)


def held(rest: threading.Event) -> Reply:
    return stream(*PIECES, hold=rest, held_from=1)


def plain(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")


@pytest.mark.parametrize("quiet", [["--quiet"], []])
def test_ask_shows_a_piece_before_the_next_one_is_sent_and_the_answer_once(
    home: Path, connect: Connect, quiet: list[str]
):
    rest = threading.Event()
    with OpenAiLike(held(rest)) as server:
        connect(server)
        with on_terminal("ask", "say it", *MODEL, *quiet) as child:
            shown = child.shows("first <U+001B>]0;sto")
            rest.set()
            shown += child.to_the_end()

    assert plain(shown).count("first ") == 1
    assert plain(shown).count(f"{WHOLE}\n") == 1
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown


def test_ask_into_a_pipe_prints_the_answer_and_streams_nothing(
    remit: Remit, home: Path, connect: Connect
):
    with OpenAiLike(stream(*PIECES), stream(*PIECES)) as server:
        connect(server)
        text = remit("ask", "say it", *MODEL, "--quiet")
        told = remit("ask", "say it", *MODEL, "--json")

    assert text.out == f"{WHOLE}\n"
    assert told.json["status"] == "ok"


@pytest.mark.parametrize("columns", [60, 40])
def test_the_shell_shows_a_piece_before_the_next_one_is_sent_and_the_answer_once(
    home: Path, connect: Connect, columns: int
):
    rest = threading.Event()
    with OpenAiLike(held(rest)) as server:
        connect(server)
        with on_terminal("shell", *MODEL, columns=columns) as child:
            child.shows("/quit ends", PROMPT)
            shown = child.said("say it", "first ")
            rest.set()
            shown += child.shows("[2Jlast", PROMPT)

    rows = plain(shown).split("\n")
    assert plain(shown).count("first ") == 1
    assert plain(shown).count("[2Jlast") == 1
    assert "\x1b]0;" not in shown
    assert [row for row in rows if len(row) > columns and PROMPT not in row] == []


def test_a_turn_that_ctrl_c_stops_ends_its_line(home: Path, connect: Connect):
    rest = threading.Event()
    with OpenAiLike(held(rest)) as server:
        connect(server)
        with on_terminal("shell", *MODEL) as child:
            child.shows("/quit ends", PROMPT)
            child.said("say it", "first ")
            child.interrupt()
            shown = child.shows("(stopped)", PROMPT)
            rest.set()

    assert "\n(stopped)" in plain(shown)
