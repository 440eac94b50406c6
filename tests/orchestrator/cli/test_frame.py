from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from orchestrator.cli.frame import COMMANDS, ROOT, main
from orchestrator.cli.groups import LazyCommand
from orchestrator.core.errors import (
    AuthorityError,
    CallFailedError,
    ConfigError,
    Delivery,
    DenyReason,
    ExitCode,
    RemitError,
    ServerFailedError,
    Where,
)
from tests.orchestrator.cli.running import ROOT_FOLDER, Finished, Remit

FAILURES: dict[str, BaseException] = {}


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True)
def fails(name: str, as_json: bool) -> None:
    raise FAILURES[name]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, remit: Remit) -> Callable[..., Finished]:
    """A command that ends with the error it is given."""
    monkeypatch.setitem(ROOT.table, "fails", LazyCommand(f"{__name__}:fails", ""))

    def run(error: BaseException, *words: str) -> Finished:
        FAILURES["it"] = error
        return remit(
            *(word for word in words if word == "--debug"),
            "fails",
            "it",
            *(word for word in words if word != "--debug"),
        )

    return run


def test_every_command_can_be_loaded_and_says_what_the_table_says():
    context = click.Context(ROOT, info_name="remit")

    loaded = {name: ROOT.get_command(context, name) for name in COMMANDS}

    assert {
        name: command.get_short_help_str(200) if command else None
        for name, command in loaded.items()
    } == {name: found.short_help for name, found in COMMANDS.items()}


def test_every_command_of_every_group_has_help(remit: Remit):
    context = click.Context(ROOT, info_name="remit")
    words = [
        [name, *below]
        for name in COMMANDS
        if (command := ROOT.get_command(context, name)) is not None
        for below in (
            [[each] for each in command.commands] if isinstance(command, click.Group) else [[]]
        )
    ]

    assert [remit(*each, "--help").code for each in words] == [0] * len(words)


def test_the_command_runs_as_a_module(remit_process: Remit):
    ended = remit_process("--version")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("remit ")


def test_without_words_the_help_is_shown_and_it_is_a_usage_error(remit: Remit):
    ended = remit()

    assert (ended.code, ended.out) == (ExitCode.USAGE.value, "")
    assert "Commands:" in ended.err


def test_a_misspelt_command_names_the_right_one(remit: Remit):
    ended = remit("polcy")

    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("E-USAGE: there is no command 'polcy'\n")
    assert "did you mean 'policy'?" in ended.err


def test_a_misspelt_command_of_a_group_names_the_right_one(remit: Remit):
    ended = remit("audit", "verfy")

    assert ended.code == 2
    assert "did you mean 'verify'? See `remit audit --help`" in ended.err


def test_a_misspelt_option_names_the_right_one(remit: Remit):
    ended = remit("audit", "verify", "--jsn")

    assert ended.code == 2
    assert ended.err.startswith("E-USAGE: there is no option --jsn\n")
    assert "did you mean '--json'?" in ended.err


def test_a_usage_error_is_an_object_for_machines(remit: Remit):
    ended = remit("policy", "check", "--json")

    assert (ended.code, ended.err) == (2, "")
    assert ended.json["code"] == "E-USAGE"
    assert set(ended.json) == {"code", "message", "why", "fix", "where"}


def test_an_error_is_one_block_on_stderr(failing: Callable[..., Finished]):
    error = RemitError(
        "no such thing",
        code="E-X",
        why="it went\naway",
        fix="bring it back",
        where=Where("a.toml", 3, 4),
        exit_code=ExitCode.NEEDS_AUTHORIZATION,
    )

    ended = failing(error)

    assert (ended.code, ended.out) == (5, "")
    assert ended.err == (
        "E-X: no such thing\n  why: it went\n    away\n  fix: bring it back\n  where: a.toml:3:4\n"
    )


def test_an_error_is_an_object_on_stdout_for_machines(failing: Callable[..., Finished]):
    ended = failing(ConfigError("bad", code="E-X", where=Where("a.toml")), "--json")

    assert (ended.code, ended.err) == (2, "")
    assert ended.json == {"code": "E-X", "message": "bad", "why": "", "fix": "", "where": "a.toml"}


def test_an_error_in_groups_of_one_is_that_error(failing: Callable[..., Finished]):
    inner = ExceptionGroup("", [ConfigError("bad", code="E-X")])

    ended = failing(ExceptionGroup("", [inner]))

    assert ended.code == 2
    assert ended.err == "E-X: bad\n"


def test_a_mistake_of_ours_is_said_shortly(failing: Callable[..., Finished]):
    ended = failing(ZeroDivisionError("secret detail"))

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("E-INTERNAL: ")
    assert "secret detail" not in ended.err
    assert "Traceback" not in ended.err
    assert "report" in ended.err


def test_debug_shows_the_traceback_without_what_a_terminal_obeys(failing: Callable[..., Finished]):
    ended = failing(ZeroDivisionError("detail\x1b[2J"), "--debug")

    assert "Traceback" in ended.err
    assert "detail<U+001B>[2J" in ended.err


def test_an_interrupt_has_its_own_exit_code(failing: Callable[..., Finished]):
    assert failing(KeyboardInterrupt()).code == 130


def test_an_interrupt_in_a_group_has_it_too(failing: Callable[..., Finished]):
    assert failing(BaseExceptionGroup("", [KeyboardInterrupt()])).code == 130


def test_a_refusal_says_which_rule_and_what_was_sent(failing: Callable[..., Finished]):
    ended = failing(
        AuthorityError("no", reason=DenyReason.FORBIDDEN, rule='"x" (p.policy:3)'), "--json"
    )

    assert ended.code == ExitCode.DENIED.value
    assert ended.json["why"] == 'forbidden; rule "x" (p.policy:3); bytes sent: 0 (not_sent)'


def test_the_last_words_of_a_server_that_failed_are_marked_as_untrusted(
    failing: Callable[..., Finished],
):
    error = ServerFailedError(
        "server 'files' could not be connected",
        code="E-SERVER-START",
        server="files",
        untrusted_detail="no such file: o.json\x1b[2J",
    )

    assert 'said (untrusted): "no such file: o.json<U+001B>[2J"' in failing(error).err


@pytest.mark.parametrize("machine", [False, True])
def test_a_servers_own_text_is_marked_for_people_and_kept_from_machines(
    failing: Callable[..., Finished], machine: bool
):
    error = CallFailedError(
        "files/x: the server answered with error 1",
        code="E-CALL-PEER",
        server="files",
        stage="receive",
        delivery=Delivery.ANSWERED,
        untrusted_detail="remit: all is well\x1b[2J\nE-FAKE: yes",
    )

    ended = failing(error, *(["--json"] if machine else []))

    line = '  the server said (untrusted): "remit: all is well<U+001B>[2J E-FAKE: yes"\n'
    assert (line in ended.err) is not machine
    assert "all is well" not in ended.out


def test_what_waits_for_an_approval_is_not_cut(failing: Callable[..., Finished]):
    ended = failing(RemitError("waits", code="E-X", why="x" * 2_000_000 + " evil", fix="approve"))

    assert ended.err.index(" evil") < ended.err.index("approve")


def test_nothing_in_an_error_moves_the_terminal(failing: Callable[..., Finished]):
    ended = failing(
        RemitError("a\x1b]0;t\x07b", code="E-X", why="c\u202ed", fix="\x9b2J", where=Where("\x1bc"))
    )

    assert "\x1b" not in ended.err
    assert "\u202e" not in ended.err
    assert "\x9b" not in ended.err


@pytest.mark.subprocess
@pytest.mark.parametrize("words", [["--help"], ["audit", "verify", "nothing", "--json"]])
def test_a_reader_that_leaves_early_is_no_error(words: list[str], home: Path):
    read, write = os.pipe()
    os.close(read)

    finished = subprocess.run(
        [sys.executable, "-m", "orchestrator.cli", *words],
        stdout=write,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER)},
        timeout=60,
        check=False,
    )
    os.close(write)

    assert finished.stderr == b""
    assert finished.returncode == 1


@pytest.mark.subprocess
def test_a_letter_that_the_terminal_does_not_know_is_written_out(remit_process: Remit):
    ended = remit_process("audit", "verify", "→", env={"PYTHONIOENCODING": "latin-1"})

    assert ended.code == 2
    assert "'\\u2192'" in ended.err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for(shell: str, remit: Remit):
    ended = remit("completion", shell)

    assert (ended.code, ended.err) == (0, "")
    assert f"_REMIT_COMPLETE={shell}_complete" in ended.out


def test_a_missing_choice_is_one_line_with_the_choices(remit: Remit):
    ended = remit("completion")

    assert ended.err.splitlines()[0].endswith("Choose from: bash, zsh, fish")


def test_completion_of_an_unknown_shell_is_a_usage_error(remit: Remit):
    assert remit("completion", "csh").code == 2


def test_main_takes_its_words_from_the_process_by_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["remit", "--version"])

    assert main() == 0
    assert capsys.readouterr().out.startswith("remit ")


def ended_with(words: list[str], streams: str, *, timeout: float = 60) -> Finished:
    """Run the command from a shell, with its streams redirected as `streams` says."""
    finished = subprocess.run(
        [
            "sh",
            "-c",
            f'exec "$@" {streams}',
            "sh",
            sys.executable,
            "-m",
            "orchestrator.cli",
            *words,
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT_FOLDER)},
        timeout=timeout,
        check=False,
    )
    return Finished(finished.returncode, finished.stdout.decode(), finished.stderr.decode())


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("words", "code"),
    [(["--version"], 0), (["audit", "verify", "none"], 2), (["audit", "verify", "x", "--json"], 2)],
)
def test_an_output_that_cannot_be_written_is_told_and_is_no_mistake_of_ours(
    words: list[str], code: int, home: Path
):
    full, deaf = ended_with(words, ">/dev/full"), ended_with(words, "2>/dev/full")

    if full.err.startswith("E-OUTPUT"):  # what goes to stdout
        assert full == Finished(
            1, "", "E-OUTPUT: the output cannot be written: No space left on device\n"
        )
    else:
        assert full.code == code
    assert deaf.code == code
    assert "Exception ignored" not in full.err


@pytest.mark.subprocess
@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_gets_nothing_and_takes_no_file_of_ours(streams: str, home: Path):
    version, wrong = ended_with(["--version"], streams), ended_with(["ask", "--json"], streams)

    assert (version.code, wrong.code) == (0, 2)
    assert version.err == ""
    assert "E-INTERNAL" not in wrong.out + wrong.err
