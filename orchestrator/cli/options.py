"""Options and outputs that commands share. Knows no command."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from orchestrator.core.display import safe_text

__all__ = [
    "inbox_hint",
    "inbox_option",
    "json_option",
    "parameters_option",
    "policy_files",
    "print_json",
    "print_text",
    "split_pairs",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_VALUES_MAX: Final = 1_000
"""Values of one repeated option: a command line holds hardly more."""


def json_option(command: _Command) -> _Command:
    """Add `--json`, handed over as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")(command)


def inbox_option(command: _Command) -> _Command:
    """Add `--inbox`, handed over as `inbox`."""
    return click.option(
        "--inbox",
        is_flag=True,
        help="Let what a rule asks about wait for `remit approvals` in another terminal.",
    )(command)


def inbox_hint(run: str) -> str:
    """Return the line that says where a run's asks are answered."""
    return f"what a rule asks about waits for: remit approvals list --run {run}"


def policy_files(command: _Command) -> _Command:
    """Add `FILE...`, handed over as `files`."""
    path = click.Path(path_type=Path)
    return click.argument("files", nargs=-1, required=True, metavar="FILE...", type=path)(command)


def parameters_option(command: _Command) -> _Command:
    """Add `--param`, handed over as `parameters`."""
    return click.option(
        "--param",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="What ${NAME} stands for. May be given several times.",
    )(command)


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on stdout: in ASCII, on one line."""
    click.echo(json.dumps(value))


def print_text(text: str, *, to_stderr: bool = False) -> None:
    """Print all of a text that may quote a file or a server: nothing in it moves the terminal."""
    click.echo(safe_text(text, reveal=True, chars_max=None), err=to_stderr)


def split_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Read `NAME=VALUE` values of a repeated option. Raises UsageError for anything else."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise click.UsageError(f"{option} needs NAME=VALUE, not {text!r}")
        if name in pairs:
            raise click.UsageError(f"{option} {name} is given twice")
        pairs[name] = value
        if len(pairs) > _VALUES_MAX:
            raise click.UsageError(f"more than {_VALUES_MAX} values of {option}")
    return pairs
