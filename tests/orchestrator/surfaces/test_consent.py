from __future__ import annotations

import hashlib
import io
import json
import re
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from orchestrator.core.capability import CapabilityKind, CapabilityRef
from orchestrator.core.errors import ConfigError
from orchestrator.core.ids import AgentId, CallId, ServerName
from orchestrator.core.ports import ApprovalRequest
from orchestrator.sessions.approvals import Item, ItemKind, Origin
from orchestrator.sessions.state import keep_shown
from orchestrator.surfaces.consent import (
    ARGUMENT_CHARS_MAX,
    ARGUMENT_LINES_MAX,
    ITEM_LINES_MAX,
    TerminalApprover,
    always_lines,
    approval_lines,
)
from tests.orchestrator.surfaces.terminal import Terminal, open_terminal

PROMPT = "[y/N]"


@pytest.fixture
def terminal() -> Generator[Terminal]:
    with open_terminal() as opened:
        yield opened


def request(
    arguments: dict[str, object] | None = None, *, agent: str = "writer", tool: str = "send"
) -> ApprovalRequest:
    return ApprovalRequest(
        agent=AgentId(agent),
        ref=CapabilityRef(ServerName("mail"), CapabilityKind.TOOL, tool, "0" * 64),
        call=CallId("c1"),
        arguments=arguments or {},
        rule='"mail" (p.policy:5)',
    )


class Hands:
    """A clock that a test sets, or that goes on by `pace` each time that somebody looks at it."""

    def __init__(self) -> None:
        self.time = 0.0
        self.pace = 0.0

    def now(self) -> float:
        self.time += self.pace
        return self.time


def approver(terminal: Terminal, hands: Hands | None = None) -> TerminalApprover:
    return TerminalApprover(
        answers=terminal.reads, questions=terminal.writes, now=(hands or Hands()).now
    )


async def shown(terminal: Terminal, wanted: str, times: int = 1) -> str:
    return await anyio.to_thread.run_sync(lambda: terminal.wait_for(wanted, times=times))


async def answered(terminal: Terminal, typed: str, question: ApprovalRequest | None = None) -> bool:
    """Ask, type once the question stands there, and return the answer."""
    answers: list[bool] = []
    asking = approver(terminal)

    async def ask() -> None:
        answers.append(await asking.approve(question or request()))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await shown(terminal, PROMPT)
            terminal.type(typed)
    return answers[0]


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("y\n", True),
        ("Y\n", True),
        ("yes\n", True),
        ("\n", False),
        ("n\n", False),
        ("yy\n", False),
        ("nay\n", False),
        ("\x04", False),
        ("y" * 300 + "\n", False),
    ],
)
async def test_only_a_yes_is_a_yes(terminal: Terminal, typed: str, answer: bool):
    assert await answered(terminal, typed) is answer


@pytest.mark.requirement("F-1")
async def test_the_question_names_agent_call_rule_and_arguments(terminal: Terminal):
    await answered(terminal, "n\n", request({"to": "a@b.c"}))

    text = terminal.close()
    assert "writer wants to call mail/send" in text
    assert '"mail" (p.policy:5)' in text
    assert '"to": "a@b.c"' in text


async def test_no_text_of_a_server_or_model_moves_the_terminal(terminal: Terminal):
    hostile = "\x1b]52;c;aGk=\x07\x1b[2J\x9b1A\u202e\x08\r"

    await answered(
        terminal, "n\n", request({hostile: hostile}, agent=f"a{hostile}", tool=f"t{hostile}")
    )

    text = terminal.close().replace("\r\n", "\n")
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text) == []
    assert "<U+202E>" in text


async def test_what_was_typed_before_the_question_is_no_answer(terminal: Terminal):
    terminal.type("y\n")

    assert await answered(terminal, "\n") is False


async def test_an_interrupt_is_a_no_and_reaches_nobody_else(terminal: Terminal):
    answers: list[bool] = []

    async def ask() -> None:
        answers.append(await approver(terminal).approve(request()))

    before = signal.getsignal(signal.SIGINT)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await shown(terminal, PROMPT)
            signal.raise_signal(signal.SIGINT)

    assert answers == [False]
    assert signal.getsignal(signal.SIGINT) is before


async def test_a_question_can_be_given_up_while_it_stands(terminal: Terminal):
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(approver(terminal).approve, request())
            await shown(terminal, PROMPT)
            group.cancel_scope.cancel()


async def withdrawn(terminal: Terminal, asking: TerminalApprover) -> None:
    """Ask, and give the question up while it stands."""
    async with anyio.create_task_group() as group:
        group.start_soon(asking.approve, request(tool="harmless"))
        await shown(terminal, PROMPT)
        group.cancel_scope.cancel()


async def test_a_question_that_was_given_up_takes_no_later_answer(terminal: Terminal):
    hands = Hands()
    asking = approver(terminal, hands)
    answers: list[bool] = []

    async def ask() -> None:
        answers.append(await asking.approve(request()))

    with anyio.fail_after(30):
        await withdrawn(terminal, asking)
        hands.time += 60.0
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await shown(terminal, PROMPT, times=2)
            # the thread of the first question may still look; it must not eat this
            terminal.type("y\n")

    assert answers == [True]


async def test_a_question_that_was_given_up_says_so(terminal: Terminal):
    with anyio.fail_after(30):
        await withdrawn(terminal, approver(terminal))

        assert await shown(terminal, "this question is withdrawn")


@pytest.mark.parametrize("typed", ["y\n", "y"])
async def test_a_yes_to_a_question_that_was_given_up_is_none_to_the_next(
    terminal: Terminal, typed: str
):
    hands = Hands()
    asking = approver(terminal, hands)
    answers: list[bool] = []
    text = ""

    async def ask() -> None:
        answers.append(await asking.approve(request(tool="dangerous")))

    with anyio.fail_after(30):
        await withdrawn(terminal, asking)
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            # the next one is already there, and says that it is another one
            text = await shown(terminal, "this is another one")
            terminal.type(typed)
            await shown(terminal, "another one)\r\ny")
            # what was typed may be read only now: the clock has to pass after that, too
            hands.pace = 1.0
            await shown(terminal, PROMPT, times=2)
            terminal.type("\n")

    assert "mail/dangerous" in text
    assert answers == [False]


async def test_one_question_stands_at_a_time(terminal: Terminal):
    asking = approver(terminal)
    answers: list[bool] = []
    first = ""

    async def ask(agent: str) -> None:
        answers.append(await asking.approve(request(agent=agent)))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, "one")
            group.start_soon(ask, "two")
            first = await shown(terminal, PROMPT)
            terminal.type("y\n")
            await shown(terminal, PROMPT, times=2)
            terminal.type("n\n")

    assert first.count("wants to call") == 1
    assert answers == [True, False]


async def test_nothing_else_is_drawn_while_a_question_stands(terminal: Terminal):
    marks: list[str] = []

    @contextmanager
    def pause() -> Generator[None]:
        marks.append("paused")
        yield
        marks.append("resumed")

    asking = TerminalApprover(answers=terminal.reads, questions=terminal.writes, pause=pause)
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(asking.approve, request())
            await shown(terminal, PROMPT)
            marks.append("asked")
            terminal.type("n\n")

    assert marks == ["paused", "asked", "resumed"]


async def test_items_are_shown_whole_before_they_are_approved(terminal: Terminal):
    item = Item(
        name="jira",
        kind=ItemKind.SERVER,
        digest="0" * 64,
        origin=Origin.PROJECT,
        description_lines=("runs: node server.js", "hidden\u200b here"),
        text="permit \x1b[8mall\n  of it\n",
    )
    answers: list[bool] = []
    text = ""

    async def ask() -> None:
        answers.append(await approver(terminal).confirm_items([item]))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            text = await shown(terminal, PROMPT)
            terminal.type("y\n")

    assert answers == [True]
    assert "server jira\r\n  runs: node server.js\r\n  hidden<U+200B> here\r\n" in text
    assert "  | permit <U+001B>[8mall\r\n  |   of it\r\n" in text


async def test_a_terminal_that_went_away_is_a_no():
    with open_terminal() as opened, anyio.fail_after(30):
        answers: list[bool] = []
        asking = approver(opened)

        async def ask() -> None:
            answers.append(await asking.approve(request()))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await shown(opened, PROMPT)
            opened.type("\x04")

        assert answers == [False]


@pytest.mark.parametrize("which", ["answers", "questions"])
async def test_without_a_terminal_nobody_is_asked(terminal: Terminal, which: str):
    nowhere = io.StringIO("y\n")
    asking = TerminalApprover(
        answers=nowhere if which == "answers" else terminal.reads,
        questions=nowhere if which == "questions" else terminal.writes,
    )

    with anyio.fail_after(30):
        assert asking.interactive is False
        assert await asking.approve(request()) is False


def test_a_terminal_is_interactive(terminal: Terminal):
    assert approver(terminal).interactive


def test_arguments_within_the_bound_are_shown_whole():
    arguments: dict[str, object] = {"text": "x" * (ARGUMENT_CHARS_MAX - 20)}

    lines = approval_lines(request(arguments))

    assert json.loads("".join(line.strip() for line in lines[3:])) == arguments


def test_arguments_past_the_bound_say_how_much_is_not_shown():
    lines = approval_lines(request({"text": "x" * ARGUMENT_CHARS_MAX}))

    assert lines[-1].strip() == "16 MORE CHARACTERS ARE NOT SHOWN"


def test_arguments_of_one_line_too_many_say_how_much_is_not_shown():
    fits = approval_lines(request({str(n): 1 for n in range(ARGUMENT_LINES_MAX - 2)}))
    long = approval_lines(request({str(n): 1 for n in range(ARGUMENT_LINES_MAX - 1)}))

    assert "NOT SHOWN" not in fits[-1]
    assert long[-1].strip() == "2 MORE CHARACTERS ARE NOT SHOWN"


def test_arguments_past_the_bound_stand_whole_in_a_file():
    kept: list[str] = []

    def keep(text: str) -> tuple[Path, str]:
        kept.append(text)
        return Path("/state/shown/f.txt"), "f" * 64

    arguments: dict[str, object] = {"text": "x" * ARGUMENT_CHARS_MAX, "to": "evil"}
    lines = approval_lines(request(arguments), keep=keep)

    assert json.loads(kept[0]) == arguments
    assert any("STAND IN THE FILE /state/shown/f.txt" in line for line in lines)
    assert lines[-1].strip() == "SHA-256 " + "f" * 64


def test_arguments_that_cannot_be_kept_say_how_much_is_not_shown():
    def keep(text: str) -> tuple[Path, str]:
        raise ConfigError("the disk is full", code="E-STATE-IO")

    lines = approval_lines(request({"text": "x" * ARGUMENT_CHARS_MAX}), keep=keep)

    assert lines[-1].strip() == "16 MORE CHARACTERS ARE NOT SHOWN"


def test_an_argument_that_is_folded_cannot_pass_for_a_line_of_ours():
    lines = approval_lines(request({"text": "x" * 500 + " rule none"}))

    assert max(map(len, lines)) <= 78
    assert [line for line in lines[3:] if not line.startswith("    ")] == []


def kept_in(folder: Path) -> list[Path]:
    return list(folder.glob("*"))


@pytest.mark.parametrize("more", [0, 1])
async def test_what_is_too_long_for_a_terminal_stands_whole_in_a_file(
    terminal: Terminal, tmp_path: Path, more: int
):
    # one line is its title
    lines = tuple(f"l{number}" for number in range(ITEM_LINES_MAX - 2 + more))
    item = Item(
        name="a",
        kind=ItemKind.SERVER,
        digest="0" * 64,
        origin=Origin.PROJECT,
        description_lines=lines,
    )
    last = replace(item, name="last", description_lines=())
    asking = TerminalApprover(
        answers=terminal.reads,
        questions=terminal.writes,
        keep=lambda text: keep_shown(tmp_path / "shown", text),
    )

    text = ""
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(asking.confirm_items, [item, last])
            text = (await shown(terminal, PROMPT)).replace("\r\n", "\n")
            terminal.type("n\n")

    files = kept_in(tmp_path / "shown")
    assert len(files) == more
    for file in files:
        assert file.read_text() == "\n".join([*item.shown(), *last.shown(), ""])
        assert f"1 MORE LINES; ALL {ITEM_LINES_MAX + 1} STAND IN THE FILE\n  {file}" in text
        assert hashlib.sha256(file.read_bytes()).hexdigest() in text
        assert "\n  server last\n" in text


def test_blanks_cannot_push_anything_out_of_sight():
    lines = approval_lines(request({"text": "a" + " " * 500 + "b"}))

    assert any("a <500 blanks> b" in line for line in lines)


def test_a_call_without_a_policy_says_so():
    asked = ApprovalRequest(
        agent=AgentId("a"),
        ref=CapabilityRef(ServerName("s"), CapabilityKind.TOOL, "t", "0" * 64),
        call=CallId("c"),
    )

    assert approval_lines(asked)[1:] == (
        "  rule       none (no policy: every call is asked about)",
        "  arguments  none",
    )


def test_a_permit_with_a_hostile_name_moves_no_terminal_and_is_shown_whole():
    hostile = 't"\x1b[2J\u202e\U000e0041'
    lines = always_lines(
        f'policy x v1 {{\n  permit "{hostile}" call on "mail" tool "{hostile}"\n}}\n'
    )

    text = "\n".join(lines)
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\U000e0041]", text) == []
    assert "<U+202E>" in text
    assert "<U+E0041>" in text


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ("", False),
        ("x\n" * ARGUMENT_LINES_MAX, True),
        ("x\n" * (ARGUMENT_LINES_MAX + 1), False),
        ("x" * ARGUMENT_CHARS_MAX, True),
        ("x" * (ARGUMENT_CHARS_MAX + 1), False),
    ],
)
def test_a_permit_that_nobody_can_look_through_is_not_offered(rule: str, shown: bool):
    assert bool(always_lines(rule)) is shown
