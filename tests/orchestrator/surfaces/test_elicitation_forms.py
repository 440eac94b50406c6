"""What a server wants of the person at a terminal: shown whole, collected field by field, or opened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread
import pytest

from mcp_client.protocol.peer.elicitation import (
    CANCEL,
    DECLINE,
    ElicitationAction,
    ElicitationAnswer,
)
from mcp_client.protocol.peer.forms import (
    BooleanField,
    Choice,
    ChoiceField,
    Field,
    NumberField,
    TextField,
    TextFormat,
)
from orchestrator.core.ids import AgentId
from orchestrator.sessions.elicitations import Elicitation, ElicitationMode, SamplingWish
from orchestrator.sessions.form_filling import LEFT_OUT, Fault, read_value
from orchestrator.surfaces.consent import (
    FIELD_BYTES_MAX,
    TRIES_MAX,
    TerminalApprover,
    elicitation_lines,
)
from tests.orchestrator.surfaces.terminal import Terminal, open_terminal

T = TypeVar("T")

BRANCH = TextField(name="branch", required=True, length_max=20)
COUNT = NumberField(name="count", is_integer=True, minimum=1, default=3)
KIND = ChoiceField(name="kind", choices=(Choice("merge", "merge"), Choice("rebase", "rebase")))
FORM = Elicitation(
    server="git",
    agent=AgentId("scout/helper"),
    mode=ElicitationMode.FORM,
    message="which branch?",
    fields=(BRANCH, COUNT, KIND),
)
VISIT = Elicitation(
    server="git",
    agent=AgentId("scout"),
    mode=ElicitationMode.URL,
    message="log in there",
    url="https://example.com/consent?x=1",
    host="example.com",
)
START = "or nothing:"


@pytest.fixture
def terminal() -> Generator[Terminal]:
    with open_terminal() as opened:
        yield opened


async def answering(
    terminal: Terminal,
    ask: Callable[[TerminalApprover], Awaitable[T]],
    *steps: tuple[str, str],
    opened: list[str] | None = None,
) -> T:
    """Ask, and type each line once what it answers is shown."""
    person = TerminalApprover(
        answers=terminal.reads,
        questions=terminal.writes,
        now=lambda: 0.0,
        open_url=None if opened is None else opened.append,
    )
    found: list[T] = []
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                found.append(await ask(person))

            group.start_soon(run)
            typed = 0
            for prompt, line in steps:
                # what was typed before a question was put is no answer to it, and is dropped
                await anyio.to_thread.run_sync(partial(terminal.wait_for, prompt, after=typed))
                typed = terminal.shown_bytes
                terminal.type(line)
    return found[0]


def filling(elicitation: Elicitation) -> Callable[[TerminalApprover], Awaitable[ElicitationAnswer]]:
    return lambda person: person.elicit(elicitation)


@pytest.mark.requirement("C-22")
@pytest.mark.requirement("S-10")
async def test_a_form_is_collected_field_by_field_and_shown_before_it_is_sent(terminal: Terminal):
    answer = await answering(
        terminal,
        filling(FORM),
        (START, "y\n"),
        ("branch: ", "main\n"),
        ("count [3]: ", "\n"),
        ("kind: ", "2\n"),
        ("send this to git? [y/N]", "y\n"),
    )

    expected = {"branch": "main", "count": 3, "kind": "rebase"}
    assert answer == ElicitationAnswer(ElicitationAction.ACCEPT, expected)
    shown = terminal.close()
    assert "agent scout/helper" in shown
    assert "kind = rebase" in shown


@pytest.mark.requirement("S-10")
@pytest.mark.parametrize(
    ("typed", "expected"), [("n\n", DECLINE), ("\n", CANCEL), ("\x04", CANCEL)]
)
@pytest.mark.parametrize("elicitation", [FORM, VISIT], ids=["form", "url"])
async def test_no_declines_and_nothing_cancels(
    terminal: Terminal, elicitation: Elicitation, typed: str, expected: ElicitationAnswer
):
    assert await answering(terminal, filling(elicitation), (START, typed)) == expected


@pytest.mark.requirement("S-10")
@pytest.mark.parametrize(("typed", "expected"), [("/decline\n", DECLINE), ("/cancel\n", CANCEL)])
async def test_a_form_can_be_given_up_in_the_middle(
    terminal: Terminal, typed: str, expected: ElicitationAnswer
):
    assert await answering(terminal, filling(FORM), (START, "y\n"), ("branch: ", typed)) == expected


async def test_a_form_that_was_filled_in_is_not_sent_without_a_last_yes(terminal: Terminal):
    form = replace(FORM, fields=(BRANCH,))

    answer = await answering(
        terminal, filling(form), (START, "y\n"), ("branch: ", "main\n"), ("[y/N]", "\n")
    )

    assert answer == CANCEL


async def test_what_does_not_fit_is_asked_for_again_with_the_reason(terminal: Terminal):
    form = replace(FORM, fields=(COUNT,))

    answer = await answering(
        terminal,
        filling(form),
        (START, "y\n"),
        ("count [3]: ", "many\n"),
        ("not taken: it is a whole number", "0\n"),
        ("not taken: it is smaller than it may be", "7\n"),
        ("[y/N]", "y\n"),
    )

    assert answer.content == {"count": 7}


async def test_one_attempt_more_than_there_are_cancels_the_form(terminal: Terminal):
    form = replace(FORM, fields=(COUNT,))
    with anyio.fail_after(10):
        person = TerminalApprover(
            answers=terminal.reads, questions=terminal.writes, now=lambda: 0.0
        )
        found: list[ElicitationAnswer] = []
        async with anyio.create_task_group() as group:

            async def run() -> None:
                found.append(await person.elicit(form))

            group.start_soon(run)
            await anyio.to_thread.run_sync(lambda: terminal.wait_for(START))
            terminal.type("y\n")
            for number in range(1, TRIES_MAX + 1):
                await anyio.to_thread.run_sync(
                    lambda number=number: terminal.wait_for("count [3]: ", times=number)
                )
                terminal.type("many\n")
    assert found == [CANCEL]


async def test_one_byte_more_than_a_field_takes_is_no_answer(terminal: Terminal):
    form = replace(FORM, fields=(TextField(name="text"),))
    long = "x" * FIELD_BYTES_MAX  # and the newline

    answer = await answering(terminal, filling(form), (START, "y\n"), ("text: ", long + "\n"))

    assert answer == CANCEL


@pytest.mark.requirement("C-25")
@pytest.mark.requirement("S-10")
async def test_an_address_is_opened_after_consent_as_one_argument(terminal: Terminal):
    opened: list[str] = []

    answer = await answering(terminal, filling(VISIT), (START, "y\n"), opened=opened)

    assert answer == ElicitationAnswer(ElicitationAction.ACCEPT)
    assert opened == ["https://example.com/consent?x=1"]
    shown = terminal.close()
    assert "https://example.com/consent?x=1" in shown
    assert "host       example.com" in shown


@pytest.mark.requirement("C-25")
@pytest.mark.requirement("S-10")
@pytest.mark.parametrize("typed", ["n\n", "\n"])
async def test_an_address_is_not_opened_without_consent(terminal: Terminal, typed: str):
    opened: list[str] = []

    await answering(terminal, filling(VISIT), (START, typed), opened=opened)

    assert opened == []


@pytest.mark.requirement("S-48")
async def test_a_servers_words_move_no_terminal(terminal: Terminal):
    bad = "\x1b[2J\x1b]0;stolen\x07\u202e"
    field = TextField(name=f"a{bad}", title=f"b{bad}", description=f"c{bad}", default=f"d{bad}")
    form = replace(FORM, message=f"e{bad}", fields=(field,))

    await answering(terminal, filling(form), (START, "y\n"), ("optional", "\n"), ("[y/N]", "n\n"))

    shown = terminal.close()
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "<U+202E>" in shown


@pytest.mark.requirement("C-25")
def test_a_long_address_is_shown_whole_and_within_the_screen():
    url = "https://example.com/" + "a" * 500

    lines = elicitation_lines(replace(VISIT, url=url))

    assert "".join(line.strip() for line in lines).count("a" * 400) == 1
    assert max(map(len, lines)) <= 80


@pytest.mark.requirement("C-25")
def test_a_host_that_is_not_what_it_looks_like_is_marked():
    lines = elicitation_lines(replace(VISIT, is_punycode=True))

    assert any("NOT WHAT ITS LETTERS LOOK LIKE" in line for line in lines)


@pytest.mark.parametrize(
    ("field", "typed", "expected"),
    [
        (TextField(name="a"), "", LEFT_OUT),
        (TextField(name="a", required=True), "", Fault("it has to be filled in")),
        (TextField(name="a", format=TextFormat.EMAIL), "x", Fault("it has another form")),
        (NumberField(name="a"), "1.5", 1.5),
        (NumberField(name="a", is_integer=True), "1.5", Fault("it is a whole number")),
        (NumberField(name="a"), "nan", Fault("it is a number")),
        (BooleanField(name="a"), "Yes", True),
        (BooleanField(name="a"), "perhaps", Fault("it is yes or no")),
        (BooleanField(name="a", default=False), "", False),
        (KIND, "1", "merge"),
        (KIND, "3", Fault("it is none of the values")),
        (replace(KIND, is_multiple=True), "1, rebase", ["merge", "rebase"]),
        (replace(KIND, is_multiple=True), "1,1", Fault("it holds a value twice")),
        (replace(KIND, default=("rebase",)), "", "rebase"),
    ],
)
def test_a_typed_line_stands_for_a_value_or_is_told_why_not(
    field: Field, typed: str, expected: object
):
    assert read_value(field, typed) == expected


async def test_sampling_shows_all_that_is_sent_and_takes_another_text_instead(terminal: Terminal):
    wish = SamplingWish(
        server="git", agent=AgentId("scout"), prompt="[user]\nsum it up", tokens_max=100
    )

    sent = await answering(
        terminal,
        lambda person: person.sample(wish),
        ("[e]dit, or no:", "e\n"),
        ("send this instead:", "another question\n"),
    )

    assert sent == "another question"
    assert "sum it up" in terminal.close()


@pytest.mark.requirement("S-43")
@pytest.mark.parametrize(("typed", "sent"), [("y\n", "sum it up"), ("\n", None), ("n\n", None)])
async def test_sampling_takes_a_yes(terminal: Terminal, typed: str, sent: str | None):
    wish = SamplingWish(server="git", agent=AgentId("scout"), prompt="sum it up", tokens_max=100)

    said = await answering(terminal, lambda person: person.sample(wish), ("[e]dit, or no:", typed))

    assert said == sent
