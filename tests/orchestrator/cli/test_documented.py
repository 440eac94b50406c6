from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from typing import Final

import click
import pytest

from mcp_client.protocol import errors as client_errors
from orchestrator.agents.budget import Resource
from orchestrator.cli.frame import ROOT
from orchestrator.core.errors import DenyReason, ExitCode
from tests.architecture.sources import ROOT as PROJECT, Source, source_from, sources

CODES_PAGE: Final = (PROJECT / "docs/reference/errors.md").read_text("utf-8")
COMMANDS_PAGE: Final = (PROJECT / "docs/reference/cli.md").read_text("utf-8")

_CODE: Final = re.compile(r"E(?:-[A-Z][A-Z0-9]*)+")
_FAMILY: Final = re.compile(r"E(?:-[A-Z][A-Z0-9]*)+-")
_ROW: Final = re.compile(r"^\| `(E-[A-Z0-9-]+)(…?)` \|", re.MULTILINE)


def texts(files: Iterable[Source]) -> Iterator[str]:
    for source in files:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def codes_in(files: Iterable[Source]) -> set[str]:
    """Codes that stand in the source as they are."""
    return {text for text in texts(files) if _CODE.fullmatch(text)}


def families_in(files: Iterable[Source]) -> set[str]:
    """Beginnings of codes that the source completes."""
    return {text for text in texts(files) if _FAMILY.fullmatch(text)}


def documented() -> tuple[set[str], set[str]]:
    """The codes that the page lists, and the families."""
    rows = _ROW.findall(CODES_PAGE)
    return {code for code, more in rows if not more}, {code for code, more in rows if more}


def test_every_code_of_the_source_is_documented():
    assert codes_in(sources()) - documented()[0] == set()


def test_every_family_of_codes_is_documented():
    assert families_in(sources()) == documented()[1]


def test_every_documented_code_is_in_the_source():
    families = tuple(families_in(sources()))
    left = documented()[0] - codes_in(sources())

    assert {code for code in left if not code.startswith(families)} == set()


def test_no_code_is_documented_twice():
    rows = [code for code, more in _ROW.findall(CODES_PAGE) if not more]

    assert sorted(rows) == sorted(set(rows))


@pytest.mark.parametrize("reason", DenyReason)
def test_every_reason_of_a_refusal_is_documented(reason: DenyReason):
    assert "E-AUTHORITY-" + reason.name.replace("_", "-") in documented()[0]


@pytest.mark.parametrize("resource", Resource)
def test_every_budget_is_documented(resource: Resource):
    assert f"E-BUDGET-{resource.name}" in documented()[0]


def test_every_way_a_call_can_fail_is_documented():
    names = [name for name in client_errors.__all__ if name.endswith("Error")]
    codes = {f"E-CALL-{name.removesuffix('Error').upper()}" for name in names}

    assert codes - documented()[0] == set()


def test_a_code_that_is_not_documented_is_found():
    source = source_from('raise X("no", code="E-NEW-THING")\ny = f"E-NEW-{z}"', "policies/x.py")

    assert (codes_in([source]), families_in([source])) == ({"E-NEW-THING"}, {"E-NEW-"})


# -------------------------------------------------------------------------------------------- commands


def commands(group: click.Group = ROOT, above: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words; groups of groups included."""
    context = click.Context(group, info_name="remit")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, f"{above}{name} ")
        elif command is not None:
            yield f"{above}{name}", command


def part_of(name: str) -> str:
    """What the page says under a command's heading."""
    _, _, after = COMMANDS_PAGE.partition(f"\n## `remit {name}")
    return after.partition("\n## ")[0]


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_every_command_is_documented(name: str):
    assert part_of(name) != ""


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_every_option_is_documented_and_no_other(name: str, command: click.Command):
    options = {
        option
        for each in command.params
        if isinstance(each, click.Option)
        for option in (*each.opts, *each.secondary_opts)
    }
    rows = re.findall(r"^\| (`-.*?) \|", part_of(name), re.MULTILINE)

    assert {word for row in rows for word in re.findall(r"`(--?[a-z-]+)", row)} == options


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_documented(code: ExitCode):
    assert f"\n| {code.value} |" in COMMANDS_PAGE
