"""`remit policy`: checks policy files and explains decisions. Starts nothing and changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, assert_never

import click

from orchestrator.cli.groups import LazyCommand, LazyGroup
from orchestrator.cli.options import (
    json_option,
    parameters_option,
    policy_files,
    print_json,
    print_text,
    split_pairs,
)
from orchestrator.core.display import safe_line
from orchestrator.core.errors import ExitCode
from orchestrator.core.nearest import did_you_mean

if TYPE_CHECKING:
    from policies import Effect, PolicySet

__all__ = ["check", "explain", "policy"]

_ROOM: Final = "orchestrator.cli.policy"

policy = LazyGroup(
    "policy",
    {
        "check": LazyCommand(f"{_ROOM}.group:check", "Find what is wrong in policy files."),
        "explain": LazyCommand(
            f"{_ROOM}.group:explain", "Say what a call would be answered, and why."
        ),
        "fmt": LazyCommand(f"{_ROOM}.layout:fmt", "Write policy files in their one layout."),
        "test": LazyCommand(f"{_ROOM}.testing:test", "Run the tests in policy files."),
        "diff": LazyCommand(f"{_ROOM}.comparing:diff", "Say what an edited policy newly allows."),
        "subset": LazyCommand(
            f"{_ROOM}.comparing:subset", "Say whether one policy allows no more than another."
        ),
        "convert": LazyCommand(
            f"{_ROOM}.converting:convert",
            "Carry rules over from other programs, or to Cedar or JSON.",
        ),
        "schema": LazyCommand(
            f"{_ROOM}.converting:schema", "Print the JSON Schema of a policy's JSON form."
        ),
        "always": LazyCommand(
            f"{_ROOM}.always:always", "Show, and take back, what you let through always."
        ),
    },
    short_help="Check policies, explain decisions.",
    help="Check policies, explain decisions.",
)
"""`remit policy`: its commands, each in a module that is imported when it is called."""


@click.command(short_help="Find what is wrong in policy files.")
@policy_files
@parameters_option
@click.option(
    "--servers",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Check the names of servers, and of tools already shown to you, by this file.",
)
@click.option(
    "--role-use",
    "roles",
    multiple=True,
    metavar="ROLE",
    help="A role that an agent has. May be given several times.",
)
@click.option("--sarif", "as_sarif", is_flag=True, help="Print findings in SARIF 2.1.0.")
@json_option
@click.pass_context
def check(
    context: click.Context,
    files: tuple[Path, ...],
    parameters: tuple[str, ...],
    servers: Path | None,
    roles: tuple[str, ...],
    as_sarif: bool,
    as_json: bool,
) -> None:
    """Find what is wrong in policy files.

    A parameter without a value is checked with its name in its place. Exit code 2 if there is an
    error; warnings leave it at 0.
    """
    from orchestrator.cli.policy.checking import check_files

    report = check_files(
        files, parameters=split_pairs("--param", parameters), servers=servers, roles=roles
    )
    if as_sarif:
        from orchestrator.cli.policy.sarif import sarif

        print_json(sarif(report.findings))
    elif as_json:
        print_json(report.to_json())
    else:
        if report.findings:
            print_text(report.findings_text(), to_stderr=True)
        print_text(report.last_line(), to_stderr=not report.ok)
    context.exit(ExitCode.OK.value if report.ok else ExitCode.USAGE.value)


@click.command(short_help="Say what a call would be answered, and by which rule.")
@policy_files
@click.option("--role", required=True, metavar="ROLE", help="The role of the agent.")
@click.option("--agent", default="", metavar="AGENT", help="The agent's name.")
@click.option(
    "--depth",
    default=1,
    show_default=True,
    type=click.IntRange(min=0),
    help="How far the agent is below the parent's own, which has 0.",
)
@click.option(
    "--call", "target", required=True, metavar="SERVER/TOOL", help="The tool to be called."
)
@click.option(
    "--arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="An argument: a JSON value, else text. May be given several times.",
)
@parameters_option
@json_option
@click.pass_context
def explain(
    context: click.Context,
    files: tuple[Path, ...],
    role: str,
    agent: str,
    depth: int,
    target: str,
    arguments: tuple[str, ...],
    parameters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what a call would be answered, and by which rule.

    Exit code 0 for permit, 3 for forbid, 4 for ask.
    """
    from orchestrator.cli.policy.checking import load_files, read_argument
    from policies import Context, Operation, Principal, Request, Resource, explain

    server, slash, tool = target.partition("/")
    if not server or not slash or not tool:
        raise click.UsageError(f"--call needs SERVER/TOOL, not {target!r}", context)
    values = {name: read_argument(text) for name, text in split_pairs("--arg", arguments).items()}
    rules = load_files(files, split_pairs("--param", parameters))
    _warn_of_role(rules, role)
    explanation = explain(
        rules,
        Request(
            principal=Principal(role=role, agent=agent, depth=depth),
            action=Operation.CALL,
            resource=Resource(server, "tool", tool),
            context=Context(values),
        ),
    )
    if as_json:
        print_json(explanation.to_json())
    else:
        print_text(explanation.to_text())
    context.exit(_exit_code(explanation.decision.effect).value)


def _warn_of_role(rules: PolicySet, role: str) -> None:
    """Say that no policy declares a role: a misspelt one is denied like any other."""
    declared = {item.name for policy in rules.policies for item in policy.roles}
    if declared and role not in declared:
        shown = safe_line(role, reveal=True)
        advice = did_you_mean(role, declared)
        print_text(f"warning: no policy declares the role {shown!r}; {advice}", to_stderr=True)


def _exit_code(effect: Effect) -> ExitCode:
    from policies import Effect

    match effect:
        case Effect.PERMIT:
            return ExitCode.OK
        case Effect.ASK:
            return ExitCode.INPUT_REQUIRED
        case Effect.FORBID:
            return ExitCode.DENIED
        case _:
            assert_never(effect)
