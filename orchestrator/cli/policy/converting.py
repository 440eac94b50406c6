"""`remit policy convert`: rules of other programs as policies, policies as Cedar or JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from orchestrator.cli.options import (
    json_option,
    parameters_option,
    print_json,
    print_text,
    split_pairs,
)
from orchestrator.core.errors import ExitCode

if TYPE_CHECKING:
    from policies.convert import Converted

__all__ = ["convert", "schema"]

_FORMS: Final = ("claude", "gemini", "cedar", "policy")


@click.command(short_help="Carry rules over from other programs, or to Cedar or JSON.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "source",
    required=True,
    type=click.Choice(_FORMS),
    help="What FILE is: Claude Code's settings, Gemini CLI's rules, Cedar, or a policy.",
)
@click.option(
    "--to",
    "target",
    type=click.Choice(("policy", "cedar", "json")),
    default="policy",
    show_default=True,
    help="What to write. Cedar and JSON are written from a policy only.",
)
@click.option("--name", default="converted", show_default=True, help="The new policy's name.")
@click.option("--strict", is_flag=True, help="End with 1 if anything could not be carried over.")
@parameters_option
@json_option
@click.pass_context
def convert(
    context: click.Context,
    file: Path,
    source: str,
    target: str,
    name: str,
    strict: bool,
    parameters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Carry rules over from other programs, or to Cedar or JSON.

    What a policy includes is written with it. The result goes to stdout, and what could not be carried over to stderr, each with what stands
    there instead. Nothing is allowed by the result that the original denied.
    """
    if (source == "policy") != (target != "policy"):
        message = "a policy is written as Cedar or JSON, everything else as a policy"
        raise click.UsageError(message, context)
    values = split_pairs("--param", parameters)
    if source == "policy":
        converted = _written(file, target, values)
    else:
        converted = _converted(file, source, name)
    if as_json:
        print_json(
            {
                "text": converted.text,
                "losses": [
                    {
                        "where": loss.where,
                        "what": loss.what,
                        "why": loss.why,
                        "effect": loss.effect.value,
                    }
                    for loss in converted.losses
                ],
            }
        )
    else:
        for loss in converted.losses:
            print_text(f"{loss.effect.value}: {loss}", to_stderr=True)
        print_text(converted.text.removesuffix("\n"))
    context.exit((ExitCode.FAILED if strict and converted.losses else ExitCode.OK).value)


def _written(file: Path, target: str, parameters: Mapping[str, str]) -> Converted:
    from orchestrator.cli.policy.checking import load_assuming
    from policies import convert
    from policies.serializing import to_json

    policy_set = load_assuming([file], parameters)
    if target == "cedar":
        return convert.write_cedar(policy_set.policies)
    return convert.Converted(f"{json.dumps(to_json(policy_set), indent=2)}\n", ())


def _converted(file: Path, source: str, name: str) -> Converted:
    from orchestrator.cli.policy.checking import read_sources
    from orchestrator.core.documents import read_json, read_toml
    from policies import convert
    from policies.formatting import format_text

    (read,) = read_sources([file])
    match source:
        case "claude":
            made = convert.read_claude(read_json(read.text, read.path).root, name=name)
        case "gemini":
            made = convert.read_gemini(read_toml(read.text, read.path).root, name=name)
        case _:
            made = convert.read_cedar(read.text, read.path, name=name)
    return convert.Converted(format_text(made.text, read.path), made.losses)


@click.command(short_help="Print the JSON Schema of a policy's JSON form.")
def schema() -> None:
    """Print the JSON Schema of what `convert --to json` writes."""
    from policies.serializing import json_schema

    print_json(json_schema())
