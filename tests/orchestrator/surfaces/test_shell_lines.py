"""The shell's lines, without a terminal: what each means, and what may stand at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.core.calls import PromptSpec, ResourceSpec
from orchestrator.surfaces.shell.commands import (
    COMMANDS,
    LINE_CHARS_MAX,
    MENTIONS_MAX,
    Action,
    Invoked,
    Mention,
    Nothing,
    PromptUsed,
    Said,
    Wrong,
    parse_line,
)
from orchestrator.surfaces.shell.completing import (
    CANDIDATES_MAX,
    Known,
    Remote,
    candidates,
    prompt_table,
)
from orchestrator.surfaces.shell.history import HISTORY_LINES_MAX, PrivateHistory

REVIEW = PromptSpec(
    server="git", name="review", description="", arguments={"path": True, "depth": False}
)
KNOWN = Known(
    agents=("parent", "scout"),
    servers=("git", "docs"),
    tools=("git/log", "git/show"),
    asks=("1",),
    prompts=prompt_table([REVIEW]),
    resources=(
        ResourceSpec(server="docs", uri="doc:///handbook", name="", description=""),
        ResourceSpec(
            server="docs", uri="doc:///{+path}", name="", description="", is_template=True
        ),
    ),
)


def texts(before: str, known: Known = KNOWN) -> list[str]:
    return [each.text for each in candidates(before, known)[0]]


@pytest.mark.parametrize("action", list(Action))
def test_every_action_has_its_command(action: Action):
    assert COMMANDS[action.value].action is action
    assert COMMANDS[action.value].usage.startswith(f"/{action.value}")


@pytest.mark.parametrize("line", ["", "  ", "\t"])
def test_an_empty_line_means_nothing(line: str):
    assert parse_line(line) == Nothing()


def test_a_line_without_a_slash_is_for_the_agent():
    assert parse_line(" what is new? ") == Said("what is new?")


def test_what_a_line_names_is_handed_over_each_once():
    said = parse_line("compare @docs:doc:///a with @docs:doc:///b and @docs:doc:///a")

    assert isinstance(said, Said)
    assert said.mentions == (Mention("docs", "doc:///a"), Mention("docs", "doc:///b"))


def test_an_address_of_mail_hands_nothing_over():
    assert parse_line("write to me@docs:x") == Said("write to me@docs:x")


def test_one_resource_more_than_a_line_hands_over_is_refused():
    names = " ".join(f"@docs:doc:///{number}" for number in range(MENTIONS_MAX))

    assert isinstance(parse_line(names), Said)
    assert isinstance(parse_line(f"{names} @docs:doc:///more"), Wrong)


def test_one_character_more_than_a_line_has_is_refused():
    assert isinstance(parse_line("x" * LINE_CHARS_MAX), Said)
    assert isinstance(parse_line("x" * (LINE_CHARS_MAX + 1)), Wrong)


def test_a_command_comes_with_its_words():
    assert parse_line('/search "two words" more') == Invoked(
        COMMANDS["search"], ("two words", "more")
    )


@pytest.mark.parametrize("line", ["/kill", "/kill a b", "/cost now", "/spawn scout"])
def test_a_wrong_number_of_words_is_told_with_the_right_form(line: str):
    wrong = parse_line(line)

    assert isinstance(wrong, Wrong)
    assert "it is written /" in wrong.reason


def test_a_misspelt_command_names_the_right_one():
    wrong = parse_line("/sevrers")

    assert isinstance(wrong, Wrong)
    assert "servers" in wrong.fix


def test_an_open_quotation_mark_is_told():
    assert isinstance(parse_line('/search "open'), Wrong)


def test_a_prompt_is_used_with_its_arguments():
    used = parse_line('/mcp__git__review path="a b" rest', KNOWN.prompts)

    assert used == PromptUsed("mcp__git__review", {"path": "a b"}, ("rest",))


def test_a_word_that_two_prompts_have_is_nobodys():
    one = PromptSpec(server="a", name="b__c", description="")
    other = PromptSpec(server="a__b", name="c", description="")

    assert prompt_table([one, other]) == {}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("/se", ["/servers", "/search"]),
        ("/mcp", ["/mcp__git__review"]),
        ("/kill s", ["scout"]),
        ("/kill scout s", []),
        ("/login g", ["git"]),
        ("/explain git/l", ["git/log"]),
        ("/allow ", ["1"]),
        ("/mcp__git__review pa", ["path="]),
        ("/mcp__git__review path=x ", ["depth="]),
        ("look at @do", ["@docs:"]),
        ("look at @docs:doc:///ha", ["doc:///handbook"]),
        ("look at @docs:do", ["doc:///handbook", "doc:///"]),
        ("what is", []),
        ("", []),
    ],
)
def test_what_may_stand_at_the_end_of_a_line(before: str, expected: list[str]):
    assert texts(before) == expected


def test_a_server_is_asked_for_the_values_of_a_prompts_argument():
    _, remote = candidates("/mcp__git__review depth=2 path=al", KNOWN)

    assert remote == Remote(
        server="git", name="review", argument="path", value="al", typed=2, context={"depth": "2"}
    )


def test_a_server_is_asked_for_the_values_of_a_templates_variable():
    _, remote = candidates("read @docs:doc:///al", KNOWN)

    assert remote is not None
    assert (remote.name, remote.argument, remote.value, remote.before) == (
        "doc:///{+path}",
        "path",
        "al",
        "doc:///",
    )


def test_no_name_that_moves_a_terminal_is_offered():
    known = Known(servers=("a\x1b[2J", "a\u202eb", "a b", "fine"))

    assert texts("/login ", known) == ["fine"]


def test_one_candidate_more_than_anybody_reads_is_left_out():
    known = Known(agents=tuple(f"a{number}" for number in range(CANDIDATES_MAX + 1)))

    assert len(texts("/kill a", known)) == CANDIDATES_MAX


def test_what_was_typed_is_kept_for_its_owner_alone(tmp_path: Path):
    file = tmp_path / "history"
    PrivateHistory(file).store_string("what is new?")

    assert file.stat().st_mode & 0o777 == 0o600
    assert list(PrivateHistory(file).load_history_strings()) == ["what is new?"]


def test_one_line_more_than_is_kept_pushes_the_oldest_out(tmp_path: Path):
    file = tmp_path / "history"
    file.write_text("".join(f"{number}\n" for number in range(HISTORY_LINES_MAX)))
    history = PrivateHistory(file)

    history.store_string("new")

    lines = file.read_text().splitlines()
    assert len(lines) == HISTORY_LINES_MAX
    assert (lines[0], lines[-1]) == ("1", "new")
