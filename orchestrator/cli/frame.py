"""`remit` itself: its commands by name, and how it ends. Imports no command before it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Final, TextIO

import click

from orchestrator.cli.failures import OUTPUT, failure_of, render_traceback
from orchestrator.cli.groups import LazyCommand, LazyGroup
from orchestrator.core.errors import ExitCode

__all__ = ["COMMANDS", "ROOT", "main"]

PROGRAM: Final = "remit"

COMMANDS: Final = {
    "demo": LazyCommand(
        "orchestrator.cli.demo_command:demo", "Write a release brief of a git repository."
    ),
    "run": LazyCommand("orchestrator.cli.run:run", "Run a pipeline of agents."),
    "plan": LazyCommand("orchestrator.cli.plan:plan", "Show what a pipeline would do."),
    "runs": LazyCommand("orchestrator.cli.runs:runs", "Look at the runs there were."),
    "report": LazyCommand("orchestrator.cli.report:report", "Write the report of a run."),
    "ask": LazyCommand("orchestrator.cli.ask:ask", "Ask one question, over the servers there are."),
    "gateway": LazyCommand(
        "orchestrator.cli.gateway:gateway", "Serve an agent's snapshot to any MCP host."
    ),
    "acp": LazyCommand(
        "orchestrator.cli.acp:acp", "Serve an editor: the Agent Client Protocol on stdio."
    ),
    "agents": LazyCommand(
        "orchestrator.cli.agents:agents", "Look at the agents at work, and stop them."
    ),
    "approvals": LazyCommand(
        "orchestrator.cli.approvals:approvals", "Answer what agents ask people."
    ),
    "top": LazyCommand("orchestrator.cli.top:top", "Watch a session on a terminal."),
    "serve": LazyCommand("orchestrator.cli.serve:serve", "Show runs on a local page."),
    "search": LazyCommand("orchestrator.cli.search:search", "Search the tools there are."),
    "shell": LazyCommand(
        "orchestrator.cli.shell:shell", "Talk with your own agent, over the servers there are."
    ),
    "policy": LazyCommand(
        "orchestrator.cli.policy.group:policy", "Check policies, explain decisions."
    ),
    "audit": LazyCommand(
        "orchestrator.cli.audit.group:audit", "Verify and read the record of a run."
    ),
    "mcp": LazyCommand(
        "orchestrator.cli.mcp.group:mcp", "Look at the configured servers, add, approve, log in."
    ),
    "init": LazyCommand(
        "orchestrator.cli.init:init", "Write a policy and a pipeline to begin with."
    ),
    "doctor": LazyCommand(
        "orchestrator.cli.doctor:doctor", "Look whether remit can work here, and what mends it."
    ),
    "config": LazyCommand("orchestrator.cli.config:config", "Look at what is set."),
    "completion": LazyCommand(
        "orchestrator.cli.completion:completion", "Print the completion script of a shell."
    ),
}
"""Every command: where it is, and its line in `--help`."""

_EPILOG: Final = (
    "Exit codes: 0 ok, 1 failed, 2 usage or configuration, 3 denied, 4 input required, "
    "5 needs authorization, 6 pending approval, 130 interrupted."
)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    # not at the top: 20 ms that only this option needs
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version(PROGRAM)
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"{PROGRAM} {number}")
    context.exit()


ROOT: Final = LazyGroup(
    PROGRAM,
    COMMANDS,
    help="Runs agents over MCP servers, under a policy, with authority that can be taken back.",
    epilog=_EPILOG,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_print_version,
            help="Show the version and exit.",
        ),
        click.Option(
            ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error."
        ),
    ],
)
"""The command, for tests and for programs that call it themselves."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. Whatever goes wrong is told, and told once.

    Errors go to stderr; with `--json` to stdout, as an object. Completion exits by itself.
    """
    _open_closed_streams()
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a name of a file need not be text, and a terminal need not know every letter
            stream.reconfigure(errors="backslashreplace")
    try:
        result: object = ROOT.main(words, prog_name=PROGRAM, standalone_mode=False)
        code = result if isinstance(result, int) else ExitCode.OK.value
    except BrokenPipeError:
        code = ExitCode.FAILED.value
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        code = ExitCode.USAGE.value
    # the last place for errors; a group may hold an interrupt
    except (Exception, KeyboardInterrupt, BaseExceptionGroup) as error:  # noqa: BLE001
        code = _tell(error, words)
    return _written(code)


def _open_closed_streams() -> None:
    """Put /dev/null where the caller closed stdin, stdout or stderr.

    Else the next file that is opened takes that number, and gets what is printed.
    """
    import os

    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # it gets the lowest number that is free
    if sys.stdin is None:  # it was closed
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def _tell(error: BaseException, words: Sequence[str]) -> int:
    failure = failure_of(error)
    if failure.exit_code is ExitCode.INTERRUPTED:
        return failure.exit_code.value
    if failure.code == OUTPUT:
        _give_up(sys.stdout)
    machine = failure.code != OUTPUT and (_given("--json", words) or _given("--json-lines", words))
    with suppress(OSError):
        if _given("--debug", words):
            click.echo(render_traceback(error), err=True)
    try:
        click.echo(failure.as_json() if machine else failure.as_text(), err=not machine)
    except OSError as unsaid:
        if machine:
            return _unwritten(unsaid)
    return failure.exit_code.value


def _written(code: int) -> int:
    """Write what is still held back, and return the exit code: another one if that fails."""
    error = _flushed(sys.stdout)
    if error is not None:
        code = _unwritten(error)
    if _flushed(sys.stderr) is not None:
        _give_up(sys.stderr)
    return code


def _unwritten(error: OSError) -> int:
    """Tell that stdout cannot be written, unless whoever read it has had enough."""
    _give_up(sys.stdout)
    if not isinstance(error, BrokenPipeError):
        with suppress(OSError):
            click.echo(failure_of(error).as_text(), err=True)
    return ExitCode.FAILED.value


def _flushed(stream: TextIO) -> OSError | None:
    try:
        stream.flush()
    except OSError as error:
        return error
    return None


def _give_up(stream: TextIO) -> None:
    import os

    # the interpreter flushes it at its end, and would complain
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _given(option: str, words: Sequence[str]) -> bool:
    """True if an option stands among the words, which may not even be well-formed."""
    end = words.index("--") if "--" in words else len(words)
    return option in words[:end]
