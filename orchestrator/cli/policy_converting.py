"""`remit policy convert`: rules of other programs as policies, and policies as Cedar."""

from __future__ import annotations

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

__all__ = ["convert"]

_FORMS: Final = ("claude", "gemini", "cedar", "policy")


@click.command(short_help="Carry rules over from other programs, or to Cedar.")
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
    type=click.Choice(("policy", "cedar")),
    default="policy",
    show_default=True,
    help="What to write. Cedar is written from a policy only.",
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
    """Carry rules over from other programs, or to Cedar.

    What a policy includes is written with it. The result goes to stdout, and what could not be carried over to stderr, each with what stands
    there instead. Nothing is allowed by the result that the original denied.
    """
    if (source == "policy") != (target == "cedar"):
        raise click.UsageError("a policy is written as Cedar, everything else as a policy", context)
    converted = _converted(file, source, name, split_pairs("--param", parameters))
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


def _converted(file: Path, source: str, name: str, parameters: Mapping[str, str]) -> Converted:
    from orchestrator.cli.checking import load_assuming, read_sources
    from orchestrator.core.documents import read_json, read_toml
    from policies import convert
    from policies.formatting import format_text

    if source == "policy":
        return convert.write_cedar(load_assuming([file], parameters).policies)
    (read,) = read_sources([file])
    match source:
        case "claude":
            made = convert.read_claude(read_json(read.text, read.path).root, name=name)
        case "gemini":
            made = convert.read_gemini(read_toml(read.text, read.path).root, name=name)
        case _:
            made = convert.read_cedar(read.text, read.path, name=name)
    return convert.Converted(format_text(made.text, read.path), made.losses)
